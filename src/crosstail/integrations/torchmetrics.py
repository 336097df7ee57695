"""Metrics of every (domain, class) pair as torchmetrics metrics: batch by batch, over all processes."""

from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from crosstail.metrics import VIEWS, Answers, PairValues, find
from crosstail.metrics._views import pair_index

try:
    _TORCHMETRICS: Any = import_module("torchmetrics")
except ImportError as error:
    how = "pip install 'crosstail[torchmetrics]'"
    raise ImportError(f"crosstail.integrations.torchmetrics needs torchmetrics: {how}", name="torchmetrics") from error


class PairMetric(_TORCHMETRICS.Metric):  # type: ignore[misc]
    """A metric of every pair (`accuracy`, `log_loss`, …, or a file of yours), of which `compute` returns one `view`.

    `update` takes scores (B, C) or, for metrics that need nothing else, predicted classes (B,). `counts` (D, C) are the
    training counts, which `as_they_come` and shot groups need. After `compute`, `pairs` has the values of all pairs
    with their intervals, such as a `PairAccuracy`. A sampler that repeats samples, such as DistributedSampler where
    they cannot be shared evenly, makes them count twice.
    """

    full_state_update = False
    pairs: PairValues | None = None

    def __init__(
        self, num_domains: int, num_classes: int, *, metric: str = "accuracy", view: str = "pair_average",
        counts: ArrayLike | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        if view not in VIEWS:
            raise ValueError(f"view is {view!r}, expected one of {', '.join(VIEWS)}")
        self.metric, self.view, shape = find(metric), view, (num_domains, num_classes)
        if self.metric.frequent and counts is None:
            raise ValueError(f"{metric} weighs pairs by their training samples: give it counts (D, C)")
        self.counts = np.ones(shape, np.int64) if counts is None else np.asarray(counts, np.int64)
        if self.counts.shape != shape:
            raise ValueError(f"counts is {self.counts.shape}, expected {shape}")
        needs = {self.metric.needs} - {"predicted"}
        for name in ("y", "domain", "predicted", *needs):
            self.add_state(name, [], dist_reduce_fx="cat")

    @property
    def higher_is_better(self) -> bool:
        return self.metric.higher_is_better

    def update(self, scores: Tensor, y: Tensor, domain: Tensor) -> None:
        """Add a batch: scores (B, C) or classes (B,), y (B,), domain (B,)."""
        (d, c), needs = self.counts.shape, self.metric.needs
        pair_index(y.cpu(), domain.cpu(), num_domains=d, num_classes=c)  # checks them
        if scores.ndim == 2 and scores.shape[1] == c:
            log_p = scores.detach().float().log_softmax(1)
            if needs != "predicted":
                getattr(self, needs).append(log_p if needs == "log_p" else log_p.gather(1, y[:, None])[:, 0])
            scores = log_p.argmax(1)
        elif scores.ndim != 1 or scores.is_floating_point() or needs != "predicted":
            given = f"scores (B, {c})" + (" or classes (B,)" if needs == "predicted" else "")
            raise ValueError(f"scores is {scores.dtype} of shape {tuple(scores.shape)}, expected {given}")
        for name, values in (("y", y), ("domain", domain), ("predicted", scores)):
            getattr(self, name).append(values.long())

    def compute(self) -> Tensor:
        """The view of all samples so far; NaN without samples."""
        (d, c), cat = self.counts.shape, _TORCHMETRICS.utilities.dim_zero_cat
        seen: dict[str, Any] = {name: cat(getattr(self, name)).cpu().numpy() for name in self._defaults}
        names = [str(i) for i in range(d)], [str(i) for i in range(c)]
        self.pairs = self.metric.values(Answers(domains=names[0], classes=names[1], counts=self.counts, **seen))
        value = getattr(self.pairs, self.view)
        return torch.tensor(np.nan if value is None else value, device=self.device)

"""A Lightning callback that writes the page of a run after every validation and test."""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from crosstail.integrations._collector import PredictionCollector

_LIGHTNING: Any = import_module("lightning.pytorch" if find_spec("lightning") else "pytorch_lightning")


class PairReport(_LIGHTNING.Callback):  # type: ignore[misc]
    """Write `out`, an .html page, from the batches (x, y, domain) of `trainer.test`, or of validation.

    `module(x)` must return the scores (B, C) of the classes. See `write_report` for the other arguments;
    `features(module, x)` returns the features (B, F), for the graph.
    """

    def __init__(
        self,
        out: str | Path,
        *,
        classes: Sequence[str],
        domain_names: Sequence[str],
        train_counts: ArrayLike,
        features: Callable[[Any, Any], Tensor] | None = None,
    ) -> None:
        self.found, self.features = PredictionCollector(out, classes, domain_names, train_counts), features

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        if trainer.world_size > 1:
            raise ValueError("PairReport needs all samples in one process: evaluate with Trainer(devices=1)")
        self.found.batches = []

    on_test_start = on_validation_start

    def on_validation_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if not isinstance(batch, (tuple, list)) or len(batch) != 3:
            raise ValueError(f"PairReport: a batch is a {type(batch).__name__}, expected (x, y, domain)")
        x, y, domain = batch
        with torch.no_grad():
            self.found.add(
                module(x), labels=y, domains=domain, features=self.features(module, x) if self.features else None
            )

    on_test_batch_end = on_validation_batch_end

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if not trainer.sanity_checking:
            title = f"{type(module).__name__}, validation after step {trainer.global_step:,}"
            self.found.write(title=title, notes=["These are validation samples: they may have selected the model."])

    def on_test_end(self, trainer: Any, module: Any) -> None:
        self.found.write(title=type(module).__name__)

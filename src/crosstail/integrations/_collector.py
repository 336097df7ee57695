"""Predictions that a callback collects during an evaluation, for the page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from crosstail.reports.external import write_report


class PredictionCollector:
    """Predicted classes, labels, domains and features, batch by batch."""

    def __init__(
        self, out: str | Path, classes: Sequence[str], domain_names: Sequence[str], train_counts: ArrayLike
    ) -> None:
        self.out = out
        self.about: dict[str, Any] = {"classes": classes, "domain_names": domain_names, "train_counts": train_counts}
        self.batches: list[dict[str, Tensor]] = []

    def add(self, scores: Tensor, **given: Tensor | None) -> None:
        """The scores (B, C) of a batch, with its labels, domains and features (B, F) where they are known."""
        found = {"predictions": scores.argmax(1), **given}
        self.batches.append({name: values.detach().cpu() for name, values in found.items() if values is not None})

    def write(self, **more: Any) -> None:
        more |= {name: torch.cat([batch[name] for batch in self.batches]).numpy() for name in self.batches[0]}
        write_report(self.out, **self.about, **more)

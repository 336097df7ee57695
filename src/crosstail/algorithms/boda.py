"""Balanced domain-class distribution alignment."""

from dataclasses import dataclass
from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms._algorithm import Algorithm, Task
from crosstail.algorithms._hparams import LogUniform, hp
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch
from crosstail.losses import BoDALoss, PairStatistics


class BoDA(Algorithm):
    """BoDA: cross-entropy + ω · the calibrated BoDA loss on the features (Yang, Wang and Katabi, 2022, equation 3)."""

    @dataclass(frozen=True, kw_only=True)
    class Hparams(Algorithm.Hparams):
        """Those of the paper, and how the statistics are kept."""

        # Differs from the paper: it has 0.1 and 10^U(-2, -0.5), for a term that shrinks as the counts grow.
        weight: float = hp(1.0, LogUniform(10**-1.5, 10**0.5), "ω, the weight of the BoDA term")
        nu: float = hp(1.0, LogUniform(10**-0.5, 1.0), "ν, how strongly counts calibrate the distances")
        temperature: float | str = hp("auto", None, 'divides the distances: a number, or "auto"')
        warmup: int = hp(0, None, "steps before the term sets in")
        window: int = hp(100, None, "samples that a pair's moving statistics remember at most")
        refresh: int = hp(
            0, None, "steps between full passes for the statistics (the paper's way); 0: from the batches"
        )
        momentum: float = hp(0.2, None, "weight of the old statistics at a full pass")

    balanced = True
    covariance: Literal["none", "diagonal"] = "none"

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__(backbone, task, hparams)
        self.criterion = BoDALoss(
            task.num_domains,
            task.num_classes,
            backbone.num_features,
            task.counts,
            nu=hparams.nu,
            temperature=hparams.temperature,
            balanced=self.balanced,
            covariance=self.covariance,
            window=None if hparams.refresh else hparams.window,
        )

    def losses(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Cross-entropy on the scores, BoDA on the features."""
        z = self.backbone(batch.x)
        weight = self.hparams.weight if self.step >= self.hparams.warmup else 0.0
        return {
            "cross_entropy": F.cross_entropy(self.head(z), batch.y),
            "boda": weight * self.criterion(z, batch.y, batch.domain),
        }

    def refresh_due(self, step: int) -> bool:
        """The paper's way: every `refresh` steps, and before the term first sets in."""
        since = step - self.hparams.warmup
        return self.hparams.refresh > 0 and since >= 0 and since % self.hparams.refresh == 0

    def statistics(self) -> PairStatistics:
        """Empty statistics with the covariance that the loss uses."""
        d, c, f = self.criterion.statistics.mean.shape
        return PairStatistics(d, c, f, self.covariance)

    def refresh(self, statistics: PairStatistics) -> None:
        """μ ← m μ + (1 − m) μ of the full pass."""
        self.criterion.statistics.blend(statistics, self.hparams.momentum)

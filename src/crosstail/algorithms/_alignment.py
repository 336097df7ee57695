"""What DA, BoDA and BoDA-M share: an alignment term on the features, added to those of another algorithm."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from crosstail.algorithms._algorithm import Task
from crosstail.algorithms._hparams import LogUniform, hp
from crosstail.algorithms.erm import ERM
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch
from crosstail.losses import BoDALoss, PairStatistics


class Alignment(ERM):
    """The terms of the next class + ω · an alignment term; a subclass says which one.

    The next class is ERM, or in `boda+coral` the one behind the plus: both are bases of one class, and `super()` goes
    from one to the other.
    """

    family = "ours"

    @dataclass(frozen=True, kw_only=True)
    class Hparams(ERM.Hparams):
        """The term's weight and scale, and how the statistics are kept."""

        weight: float = hp(0.1, LogUniform(10**-2, 10**-0.5), "ω, the weight of the alignment term")
        temperature: float | str = hp("auto", None, 'divides the distances: a number, or "auto"')
        warmup: int = hp(0, None, "steps before the term sets in")
        window: int = hp(100, None, "samples that a pair's moving statistics remember at most")
        refresh: int = hp(
            0, None, "steps between full passes for the statistics (the paper's way); 0: from the batches"
        )
        momentum: float = hp(0.2, None, "weight of the old statistics at a full pass")

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__(backbone, task, hparams)
        if hparams.refresh < 0 or (hparams.refresh == 0 and hparams.window < 1):
            raise ValueError(
                f"window is {hparams.window} and refresh {hparams.refresh}, so nothing would keep the statistics of "
                "the alignment term: expected a window of 1 or more, or a refresh of 1 or more"
            )
        self.criterion = BoDALoss(
            task.num_domains,
            task.num_classes,
            backbone.num_features,
            task.counts,
            temperature=hparams.temperature,
            window=None if hparams.refresh else hparams.window,
            validate=False,  # labels are checked when data are loaded, loss terms at every evaluation
            **self.term(),
        )

    def term(self) -> dict[str, Any]:
        """What makes `BoDALoss` this algorithm's term."""
        raise TypeError(f"{type(self).__name__} must define term()")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Those of the next class, and the alignment term on the features."""
        weight = self.hparams.weight if self.step >= self.hparams.warmup else 0.0
        alignment = weight * self.criterion(z, batch.y, batch.domain)
        return super().losses(z, batch) | {"alignment": alignment}

    def refresh_due(self, step: int) -> bool:
        """The paper's way: every `refresh` steps, and before the term first sets in."""
        since = step - self.hparams.warmup
        return self.hparams.refresh > 0 and since >= 0 and since % self.hparams.refresh == 0

    def statistics(self) -> PairStatistics:
        """Empty statistics with the covariance that the loss uses."""
        kept = self.criterion.statistics
        d, c, f = kept.mean.shape
        return PairStatistics(d, c, f, kept.covariance)

    def refresh(self, statistics: PairStatistics) -> None:
        """μ ← m μ + (1 − m) μ of the full pass."""
        self.criterion.statistics.blend(statistics, self.hparams.momentum)

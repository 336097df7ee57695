"""The alignment term of DA, BoDA and BoDA-M, added to the loss of another algorithm."""

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
    """The loss of the next class + ω · an alignment term, which a subclass defines.

    The next class is ERM or, in `boda+coral`, CORAL: both are bases of one class, and `super()` reaches the second.
    """

    family = "ours"

    @dataclass(frozen=True, kw_only=True)
    class Hparams(ERM.Hparams):
        weight: float = hp(0.1, LogUniform(10**-2, 10**-0.5), "ω, weight of the alignment term")
        temperature: float | str = hp("auto", None, 'divisor of the distances: a number, or "auto"')
        warmup: int = hp(0, None, "steps before the term is added")
        window: int = hp(100, None, "samples that a pair's moving statistics span at most")
        refresh: int = hp(0, None, "steps between full passes for the statistics, as in the paper; 0: use the batches")
        momentum: float = hp(0.2, None, "weight of the old statistics at a full pass")

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__(backbone, task, hparams)
        if hparams.refresh < 0 or (hparams.refresh == 0 and hparams.window < 1):
            raise ValueError(
                f"window is {hparams.window} and refresh {hparams.refresh}, so the statistics of the alignment term "
                "would never be updated: expected a window of 1 or more, or a refresh of 1 or more"
            )
        self.criterion = BoDALoss(
            task.num_domains,
            task.num_classes,
            backbone.num_features,
            task.counts,
            temperature=hparams.temperature,
            window=None if hparams.refresh else hparams.window,
            validate=False,  # labels are checked at loading, loss terms at every evaluation
            **self.term(),
        )

    def term(self) -> dict[str, Any]:
        """Options of `BoDALoss`."""
        raise TypeError(f"{type(self).__name__} must define term()")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        weight = self.hparams.weight if self.step >= self.hparams.warmup else 0.0
        alignment = weight * self.criterion(z, batch.y, batch.domain)
        return super().losses(z, batch) | {"alignment": alignment}

    def refresh_due(self, step: int) -> bool:
        """Every `refresh` steps, as in the paper, starting when the term is first added."""
        since = step - self.hparams.warmup
        return self.hparams.refresh > 0 and since >= 0 and since % self.hparams.refresh == 0

    def statistics(self) -> PairStatistics:
        kept = self.criterion.statistics
        d, c, f = kept.mean.shape
        return PairStatistics(d, c, f, kept.covariance)

    def refresh(self, statistics: PairStatistics) -> None:
        """μ ← m μ + (1 − m) μ of the full pass."""
        self.criterion.statistics.blend(statistics, self.hparams.momentum)

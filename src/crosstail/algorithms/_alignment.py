"""The alignment term of DA, BoDA and BoDA-M, added to the loss of another algorithm."""

from typing import Any

from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, first_step, hp, when
from crosstail.losses import BoDALoss, PairStatistics


class Alignment(ERM):
    """The loss of the next class + ω · an alignment term, which a subclass defines.

    The next class is ERM or, in `boda+coral`, CORAL: both are bases of one class, and `super()` reaches the second.
    """

    family = "ours"
    adds_term = True
    differs: tuple[str, ...] = (
        "the mean over the samples that have a positive, where the equation is a sum: the joint loss adds it to a mean",
        "centroids are moving averages over batches, where the paper makes a full pass after every epoch (`refresh`)",
        "the term is added after a warm-up",
    )

    class Hparams(ERM.Hparams):
        weight: float = hp(0.1, LogUniform(10**-2, 10**-0.5), "ω, weight of the alignment term", at_least=0)
        temperature: float = hp(1.0, None, "divisor of the distances", above=0)
        rescaled: bool = hp(False, None, "distances relative to their mean, counts (if any) outside the exponent")
        pooled: bool = hp(False, None, "pooled centroids: rare pairs are shrunk, and those without samples take part")
        negatives: int = hp(
            0, None, "pairs that are drawn in each step for the denominator; 0: all of them", at_least=0
        )
        per_positive: bool = hp(False, None, "average over (sample, positive) combinations instead of samples")
        warmup: float = when(0.1, None, "when the term starts")
        window: int = hp(100, None, "samples that a pair's moving statistics span at most", at_least=1)
        refresh: int = hp(0, None, "steps between full passes for the statistics; 0: use the batches", at_least=0)
        momentum: float = hp(0.2, None, "weight of the old statistics at a full pass", at_least=0, at_most=1)

    def build(self) -> None:
        super().build()
        task, h = self.task, self.hparams
        self.criterion = BoDALoss(
            task.num_domains,
            task.num_classes,
            self.backbone.num_features,
            task.counts,
            temperature=h.temperature,
            rescaled=h.rescaled,
            pooled=h.pooled,
            negatives=h.negatives,
            window=None if h.refresh else h.window,
            reduction="positives" if h.per_positive else "mean",
            synchronise=False,  # the batch is whole already
            validate=False,  # labels are checked at loading, loss terms at every evaluation
            **self.term(),
        )

    def term(self) -> dict[str, Any]:
        """Options of `BoDALoss`."""
        raise TypeError(f"{type(self).__name__} must define term()")

    @property
    def start(self) -> int:
        """The first step with the term."""
        return first_step(self.hparams.warmup, self.steps)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        weight = self.hparams.weight if self.step >= self.start else 0.0
        alignment = weight * self.criterion(z, batch.y, batch.domain)
        return super().losses(z, batch) | {"alignment": alignment}

    def refresh_due(self, step: int) -> bool:
        """Every `refresh` steps, as in the paper, and at the latest when the term takes effect."""
        every = self.hparams.refresh
        return every > 0 and (step % every == 0 < step or step == self.start < every)

    def statistics(self) -> PairStatistics:
        kept = self.criterion.statistics
        d, c, f = kept.mean.shape
        return PairStatistics(d, c, f, kept.covariance)

    def refresh(self, statistics: PairStatistics) -> None:
        """μ ← m μ + (1 − m) μ of the full pass."""
        self.criterion.statistics.blend(statistics, self.hparams.momentum)

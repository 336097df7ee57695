"""Invariant risk minimisation."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._algorithm import Backward
from crosstail.algorithms._hparams import LogUniform, Rounded, hp
from crosstail.algorithms.erm import ERM
from crosstail.data import DomainBatch


class IRM(ERM):
    """IRM: features on which one classifier is optimal in every domain at once (Arjovsky et al., 2019).

    The penalty is the mean over domains of the squared gradient of the domain's risk R_d(w · scores) in w at w = 1.
    For cross-entropy, a sample's gradient is Σ_c p_c s_c − s_y with scores s and probabilities p.
    """

    family = "invariance"
    min_domains = 2
    differs = ("the weight of the penalty is 1 for some steps, and Adam starts anew when it changes, as in DomainBed",)

    @dataclass(frozen=True, kw_only=True)
    class Hparams(ERM.Hparams):
        """The weight of the penalty, and when it sets in."""

        penalty: float = hp(100.0, LogUniform(1e-1, 1e5), "λ, the weight of the penalty after the annealing")
        anneal: int = hp(
            500, Rounded(1, 1e4), "steps with a weight of 1 before that; λ is never used in a run of fewer steps"
        )

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Cross-entropy and the penalty."""
        scores = self.head(z)
        weight = self.hparams.penalty if self.step >= self.hparams.anneal else 1.0
        gradient = (scores.softmax(1) * scores).sum(1) - scores.gather(1, batch.y[:, None])[:, 0]
        penalty = squared_mean(batch.by_domain(gradient)).mean()
        return {"cross_entropy": F.cross_entropy(scores, batch.y), "irm": weight * penalty}

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """Adam's averages are of gradients with the old weight: they are dropped where it changes."""
        if self.step == self.hparams.anneal:
            for optimizer in optimizers:
                optimizer.state.clear()
        return super().update(batch, optimizers, backward)


def squared_mean(values: Tensor) -> Tensor:
    """An unbiased estimate of the squared expectation (K,) of K samples (K, n): the means of two halves, multiplied.

    It is 0 where n = 1, which leaves one half empty.
    """
    return values[:, ::2].mean(1) * values[:, 1::2].sum(1) / max(values.shape[1] // 2, 1)

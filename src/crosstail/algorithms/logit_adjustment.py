"""Logit adjustment."""

from dataclasses import dataclass

import torch
from torch import Tensor

from crosstail.algorithms._hparams import Choice, LogUniform, hp
from crosstail.algorithms.bsoftmax import BSoftmax


class LogitAdjustment(BSoftmax):
    """LogitAdjustment: cross-entropy of the scores + τ log π, π being the prior of the classes (Menon et al., 2021).

    With τ = 1 and the prior of the sample's domain it is BSoftmax: π = n / N, and a softmax does not see log N. The
    global prior is from the counts of all domains together: the paper's, and blind to tails that differ.
    """

    differs = ("by default the prior is that of the sample's domain; prior=global is the paper's",)

    @dataclass(frozen=True, kw_only=True)
    class Hparams(BSoftmax.Hparams):
        """How much of which prior."""

        tau: float = hp(1.0, LogUniform(0.5, 2.0), "τ, how strongly the prior counts")
        prior: str = hp("domain", Choice("domain", "global"), "whose classes are counted")

    def adjustment(self, counts: Tensor) -> Tensor:
        """τ log n (D, C)."""
        if self.hparams.prior == "global":
            counts = counts.sum(0).expand_as(counts)
        return torch.xlogy(self.hparams.tau, counts)

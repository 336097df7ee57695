import torch
from torch import Tensor

from crosstail.algorithms._hparams import Choice, LogUniform, hp
from crosstail.algorithms.bsoftmax import BSoftmax


class LogitAdjustment(BSoftmax):
    """LogitAdjustment: cross-entropy of the scores + τ log π, with class priors π (Menon et al., 2021).

    With τ = 1 and the prior of the sample's domain this is BSoftmax, since a softmax is invariant to log N. The
    global prior, used in the paper, pools the counts of all domains and ignores that their tails differ.
    """

    differs = (
        "the default prior is the sample's domain's; the paper's is prior=global",
        "a class that is absent from a domain has π = 0; the paper's code adds 1e-12 to every π^τ",
    )

    class Hparams(BSoftmax.Hparams):
        tau: float = hp(1.0, LogUniform(0.5, 2.0), "τ, strength of the adjustment")
        prior: str = hp(
            "domain", Choice("domain", "global"), "prior of the sample's domain, or of all domains together"
        )

    def adjustment(self, counts: Tensor) -> Tensor:
        if self.hparams.prior == "global":
            counts = counts.sum(0).expand_as(counts)
        return torch.xlogy(self.hparams.tau, counts)

from torch import Tensor

from crosstail.algorithms._base import DomainBatch
from crosstail.algorithms._hparams import Choice, LogUniform, hp
from crosstail.algorithms.bsoftmax import BSoftmax
from crosstail.losses.tails import logit_adjusted_loss


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

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        n = self.counts.sum(0).expand_as(self.counts) if self.hparams.prior == "global" else self.counts
        return {"cross_entropy": logit_adjusted_loss(self.head(z), batch.y, batch.domain, n, tau=self.hparams.tau)}

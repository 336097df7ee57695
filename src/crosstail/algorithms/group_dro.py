from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp
from crosstail.losses.host import occurrences
from crosstail.pairs import pair_number


class GroupDRO(ERM):
    """GroupDRO: Σ_g q_g loss_g, with weights that grow for groups of high loss (Sagawa et al., 2020).

    At each step q_g ← q_g exp(η loss_g) for the groups of the batch, normalised over those with training data.
    """

    family = "robust optimisation"
    min_domains = 2
    differs = (
        "groups are domains, as in DomainBed, or with pairs=true, (domain, class) pairs, as in SubpopBench; a step "
        "updates the weights of all groups in the batch",
        "a pair without training data has no weight; in SubpopBench it keeps one, which makes the loss smaller",
    )

    class Hparams(ERM.Hparams):
        eta: float = hp(0.01, LogUniform(1e-3, 1e-1), "η, step size of the weights")
        pairs: bool = hp(False, None, "weights for (domain, class) pairs instead of domains")

    log_q: Tensor  # (D,) or (D · C,), −inf for a group without training data
    known: Tensor  # numbers of the other groups

    def build(self) -> None:
        super().build()
        counts = self.task.counts.flatten() if self.hparams.pairs else self.task.counts.sum(1)
        self.register_buffer("log_q", (counts > 0).float().log().log_softmax(0))
        self.register_buffer("known", counts.nonzero()[:, 0], persistent=False)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        each = self.likelihood(self.head(z), batch.y, reduction="none")
        group = pair_number(batch.y, batch.domain, self.task.num_classes) if self.hparams.pairs else batch.domain
        number = occurrences(group, len(self.log_q))
        loss = each.new_zeros(len(number)).index_add(0, group, each) / number.clamp_min(1)
        self.log_q = (self.log_q + (self.hparams.eta * loss.detach()).to(self.log_q)).log_softmax(0)
        return {"group_dro": self.log_q[self.known].exp() @ loss[self.known]}

from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._base import Backward, DomainBatch, Uniform, descend, hp
from crosstail.algorithms._twin import Twin
from crosstail.losses.tails import generalised_cross_entropy


class LfF(Twin):
    """LfF: weigh samples by how much harder they are for a second network that prefers easy ones (Nam et al., 2020).

    The second network minimises (1 − p^q) / q, with p the label's probability; with the cross-entropies of both, a
    sample's weight is CE₂ / (CE₂ + CE₁).
    """

    passes = 2.0
    differs = (
        "cross-entropies are the batch's, as in SubpopBench, not moving averages per sample, scaled per class",
        "the second network's loss is the paper's; its code and SubpopBench multiply it by q",
    )

    class Hparams(Twin.Hparams):
        q: float = hp(0.7, Uniform(0.05, 0.95), "q, how strongly the second network prefers easy samples", above=0)

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        (z, whole), (other, _) = self.features(batch), self.features(batch, self.twin)
        own = self.likelihood(self.head(z), whole.y, reduction="none").detach()
        easy = self.twin_head(other)
        errors = self.likelihood(easy, whole.y, reduction="none").detach()
        self.sample_weights = errors / (errors + own + 1e-8)
        second = {"second_network": generalised_cross_entropy(easy, whole.y, q=self.hparams.q)}
        terms = self.losses(z, whole) | second
        descend(terms, optimizers, backward)
        return terms

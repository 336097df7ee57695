from torch import Tensor

from crosstail.algorithms import bsoftmax
from crosstail.algorithms._base import DomainBatch, Uniform, hp
from crosstail.losses.tails import seesaw_loss


class Seesaw(bsoftmax.BSoftmax):
    """Seesaw: frequent classes push rare ones down less, unless those are mistaken for them (Wang et al., 2021).

    In the softmax for the label y, class k has the factor min(1, n_k / n_y)^p · max(1, p_k / p_y)^q, with the
    probabilities p_k and p_y as constants.
    """

    differs = (
        "n is the count of each class in the sample's domain; the paper counts the samples seen so far",
        "a class that is absent from a domain has n = 0, and its samples do not affect it",
        "a plain classifier, where the paper's detector has one of normalised features and weights",
    )

    class Hparams(bsoftmax.BSoftmax.Hparams):
        mitigation: float = hp(0.8, Uniform(0.2, 1.2), "p, how far rare classes are spared")
        compensation: float = hp(2.0, Uniform(0.5, 3.0), "q, how far mistakes restore the pressure")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        options = {"mitigation": self.hparams.mitigation, "compensation": self.hparams.compensation}
        return {"cross_entropy": seesaw_loss(self.head(z), batch.y, batch.domain, self.counts, **options)}

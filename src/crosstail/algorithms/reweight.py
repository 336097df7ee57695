from torch import Tensor

from crosstail.algorithms._weighted import Weighted
from crosstail.losses.tails import inverse_weights


class Reweight(Weighted):
    """Reweight: weights ∝ 1 / n, so that all classes of a domain count equally (Huang et al., 2016).

    The weights of a domain's samples average 1, so that the loss has the scale of ERM's.
    """

    power = 1.0

    def weigh(self, counts: Tensor) -> Tensor:
        return inverse_weights(counts, power=self.power)

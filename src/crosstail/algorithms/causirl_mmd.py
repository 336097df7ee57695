from torch import Tensor

from crosstail.algorithms._causirl import CausIRL
from crosstail.losses.domains import two_sample_discrepancy


class CausIRLMMD(CausIRL):
    """CausIRL-MMD: minimise the MMD of features between two random mixtures of the domains (Chevalley et al., 2022)."""

    def distance(self, z: Tensor, first: Tensor, rest: Tensor) -> Tensor:
        return two_sample_discrepancy(z, first, rest)

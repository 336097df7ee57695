import torch
from torch import Tensor

from crosstail.algorithms._causirl import CausIRL
from crosstail.losses.domains import moments, squared_difference


class CausIRLCORAL(CausIRL):
    """CausIRL-CORAL: match the mean and covariance of two random mixtures of the domains (Chevalley et al., 2022)."""

    def distance(self, z: Tensor, first: Tensor, rest: Tensor) -> Tensor:
        both = zip(moments(z[first][None]), moments(z[rest][None]), strict=True)
        return torch.stack([squared_difference(torch.cat(pair)) for pair in both]).sum()

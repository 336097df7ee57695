"""Weights between none and the inverse frequency."""

from crosstail.algorithms import reweight


class SqrtReweight(reweight.Reweight):
    """SqrtReweight: weights ∝ 1 / √n, half way from ERM to Reweight (Mahajan et al., 2018)."""

    differs = ("samples are weighted by the root of the count in their domain, where the paper draws them by it",)
    power = 0.5

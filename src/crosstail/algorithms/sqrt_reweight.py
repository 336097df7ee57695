from crosstail.algorithms import reweight


class SqrtReweight(reweight.Reweight):
    """SqrtReweight: weights ∝ 1 / √n, halfway between ERM and Reweight (Mahajan et al., 2018)."""

    differs = (*reweight.Reweight.differs, "samples are weighted where the paper resamples them")
    power = 0.5

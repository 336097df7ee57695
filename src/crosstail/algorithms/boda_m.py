"""BoDA that also matches second-order statistics."""

from crosstail.algorithms import boda


class BoDAM(boda.BoDA):
    """BoDA-M: BoDA with the Mahalanobis distance of each pair's variances (Yang, Wang and Katabi, 2022)."""

    covariance = "diagonal"

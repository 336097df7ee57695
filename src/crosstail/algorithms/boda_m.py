"""BoDA that also matches second-order statistics."""

from typing import Any

from crosstail.algorithms import boda


class BoDAM(boda.BoDA):
    """BoDA-M: BoDA with the Mahalanobis distance of each pair's variances (Yang, Wang and Katabi, 2022)."""

    def term(self) -> dict[str, Any]:
        return {"nu": self.hparams.nu, "covariance": "diagonal"}

from typing import Any, ClassVar

from crosstail.algorithms import boda
from crosstail.algorithms._algorithm import Preset
from crosstail.algorithms._alignment import Alignment


class BoDAM(boda.BoDA):
    """BoDA-M: BoDA with the Mahalanobis distance of each pair's variances (Yang, Wang and Katabi, 2022)."""

    differs = (
        *Alignment.differs,
        "covariances are diagonal",
        "a pair's variances are shrunk towards the mean variances of all pairs, which weigh as much as 10 samples",
    )
    presets: ClassVar[dict[str, Preset]] = {"rescaled": boda.RESCALED}

    def term(self) -> dict[str, Any]:
        return {"nu": self.hparams.nu, "covariance": "diagonal"}

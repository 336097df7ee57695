"""Balanced domain-class distribution alignment."""

from dataclasses import dataclass
from typing import Any

from crosstail.algorithms._alignment import Alignment
from crosstail.algorithms._hparams import LogUniform, hp


class BoDA(Alignment):
    """BoDA: cross-entropy + ω · the calibrated BoDA loss on the features (Yang, Wang and Katabi, 2022, equation 3)."""

    @dataclass(frozen=True, kw_only=True)
    class Hparams(Alignment.Hparams):
        nu: float = hp(1.0, LogUniform(10**-0.5, 1.0), "ν, how strongly counts calibrate the distances")

    def term(self) -> dict[str, Any]:
        return {"nu": self.hparams.nu}

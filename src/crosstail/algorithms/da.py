"""Domain-class distribution alignment without balance: the ablation of BoDA."""

from typing import Any

from crosstail.algorithms._alignment import Alignment


class DA(Alignment):
    """DA: cross-entropy + ω · alignment without counts in the distances (Yang, Wang and Katabi, 2022, equation 1)."""

    def term(self) -> dict[str, Any]:
        return {"balanced": False}

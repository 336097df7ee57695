from typing import Any, ClassVar

from crosstail.algorithms._algorithm import Preset
from crosstail.algorithms._alignment import Alignment

RESCALED = Preset(
    "Rescaled: distances over the batch's mean distance (Yang, Wang and Katabi, 2022).",
    differs=("distances are divided by the batch's mean distance, so that gradients are bounded",),
    hparams={"rescaled": True},
)


class DA(Alignment):
    """DA: cross-entropy + ω · alignment without counts in the distances (Yang, Wang and Katabi, 2022, equation 1)."""

    presets: ClassVar[dict[str, Preset]] = {"rescaled": RESCALED}

    def term(self) -> dict[str, Any]:
        return {"balanced": False}

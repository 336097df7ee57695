from torch import Tensor

from crosstail.algorithms import sam
from crosstail.algorithms._hparams import Choice, hp


class SAGM(sam.SAM):
    """SAGM: minimise L(θ) and L(θ + ρ g / ‖g‖ − α g), which aligns the gradients of both (Wang et al., 2023)."""

    first = 0.5
    differs = ("the mean of both losses, and a constant ρ, as in the paper's code; the paper has their sum",)

    class Hparams(sam.SAM.Hparams):
        alpha: float = hp(0.001, Choice(0.0005, 0.001), "α, how strongly the gradients are aligned")

    def scale(self, norm: Tensor) -> Tensor:
        return super().scale(norm) - self.hparams.alpha

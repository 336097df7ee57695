from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp


class SD(ERM):
    """SD: cross-entropy + λ · mean squared score, against relying on a few features (Pezeshki et al., 2021)."""

    family = "regularisation"
    adds_term = True
    differs = ("the mean over samples and classes, as in DomainBed, where the paper has half the sum over classes",)

    class Hparams(ERM.Hparams):
        penalty: float = hp(0.1, LogUniform(1e-5, 1e-1), "λ, weight of the penalty")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        return super().losses(z, batch) | {"sd": self.hparams.penalty * self.scores(z, batch.domain).square().mean()}

import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp
from crosstail.losses.host import in_full_precision


class RIDG(ERM):
    """RIDG: what each feature adds to each score should be the same for all samples of a class (Chen et al., 2023).

    A sample's rationale is w_k ⊙ z for every class k. The penalty is its squared distance to the rationale of the
    class's mean features μ, a moving average; averaged over k and over the class's samples, and summed over classes.
    """

    family = "regularisation"
    adds_term = True
    reads_weights = True
    differs = (
        "the moving average is of the features, and is multiplied by the current classifier; the paper averages the "
        "products, C² · F numbers",
    )

    class Hparams(ERM.Hparams):
        penalty: float = hp(0.01, LogUniform(1e-2, 1e-1), "weight of the penalty")
        momentum: float = hp(0.001, LogUniform(1e-4, 1e-1), "weight of the batch in the moving average")

    means: Tensor  # (C, F)
    known: Tensor  # (C, 1)

    def build(self) -> None:
        super().build()
        self.register_buffer("means", torch.zeros(self.task.num_classes, self.backbone.num_features))
        self.register_buffer("known", torch.zeros(self.task.num_classes, 1, dtype=torch.bool))

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        with in_full_precision(z):
            member = F.one_hot(batch.y, self.task.num_classes).to(self.means)  # (B, C)
            number = member.sum(0)[:, None]
            mean = member.mT @ z.detach().to(member) / number.clamp_min(1)
            moved = torch.where(self.known, torch.lerp(self.means, mean, self.hparams.momentum), mean)
            self.means, self.known = torch.where(number > 0, moved, self.means), self.known | (number > 0)
            each = squared_distance(z.to(member), self.means[batch.y], self.linear.weight) / number[batch.y, 0]
        return super().losses(z, batch) | {"ridg": self.hparams.penalty * each.sum()}


def squared_distance(z: Tensor, mean: Tensor, weight: Tensor) -> Tensor:
    """Mean over k of ‖w_k ⊙ z − w_k ⊙ μ‖² with a constant second product, by matrix products: (B,)."""
    fixed = weight.detach()
    own, cross = z.square() @ weight.square().mT, (z * mean) @ (weight * fixed).mT
    return (own - 2 * cross + mean.square() @ fixed.square().mT).mean(1)

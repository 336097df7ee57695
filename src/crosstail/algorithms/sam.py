import torch
from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._base import ERM, Backward, Choice, DomainBatch, hp, slopes, total
from crosstail.algorithms._gradients import moved, with_gradients


class SAM(ERM):
    """SAM: descend along the gradient at θ + ρ g / ‖g‖, the worst weights nearby (Foret et al., 2021)."""

    family = "regularisation"
    passes = 2.0
    unshared = "the step to the worst weights needs the gradient of the whole batch, which no process has"
    differs: tuple[str, ...] = ("Adam instead of SGD",)
    first = 0.0  # share of the gradient at θ in the step

    class Hparams(ERM.Hparams):
        rho: float = hp(0.05, Choice(0.01, 0.02, 0.05, 0.1), "ρ, distance of the worst weights")

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """Step from θ; buffers keep only their updates at θ."""
        parameters = self.trained
        terms = self.losses(*self.features(batch))
        gradients = slopes(total(terms), parameters)
        scale = self.scale(torch.stack([gradient.norm() for gradient in gradients]).norm())
        optimizers[0].zero_grad(set_to_none=True)
        with moved(self, [scale * gradient for gradient in gradients]):
            terms["perturbed"] = total(self.losses(*self.features(batch)))
            backward(self.first * with_gradients(parameters, gradients) + (1 - self.first) * terms["perturbed"])
        optimizers[0].step()
        return terms

    def scale(self, norm: Tensor) -> Tensor:
        """Length of the step along the gradient, relative to the gradient's."""
        return self.hparams.rho / (norm + 1e-12)

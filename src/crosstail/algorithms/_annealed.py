"""Losses that change during training, with an optimizer that starts afresh then."""

from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._base import ERM, Backward, DomainBatch, Uniform, first_step, hp, when

SHARE = "annealing is a share of the steps; in DomainBed, it is a number of them"
"""A deviation of all that do not set a number of steps."""
DRAWN = "this share is drawn uniformly; DomainBed draws the number log-uniformly from 1 to 10,000"
SLOWER = "the learning rate after annealing is relative to the one before; DomainBed draws the two independently"


class Annealed(ERM):
    """The loss changes when annealing ends, and Adam is reset: its averages are of gradients of the old loss."""

    class Hparams(ERM.Hparams):
        anneal: float = when(0.1, Uniform(0.0, 0.5), "end of annealing")

    @property
    def annealed(self) -> bool:
        return self.step >= first_step(self.hparams.anneal, self.steps)

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        if self.step == first_step(self.hparams.anneal, self.steps):
            for optimizer in optimizers:
                self.restart(optimizer)
        return super().update(batch, optimizers, backward)

    def restart(self, optimizer: Optimizer) -> None:
        """Reset an optimizer at the end of annealing."""
        optimizer.state.clear()


class Slowed(Annealed):
    """The learning rate drops when annealing ends."""

    class Hparams(Annealed.Hparams):
        late_lr: float = hp(1.0, None, "learning rate after annealing, relative to that before")

    def restart(self, optimizer: Optimizer) -> None:
        super().restart(optimizer)
        for group in optimizer.param_groups:
            group["lr"] *= self.hparams.late_lr

import torch
from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._base import ERM, Backward, Choice, DomainBatch, hp
from crosstail.algorithms._gradients import mean_terms


class Fish(ERM):
    """Fish: align the gradients of different domains (Shi et al., 2022).

    From θ, one step on each domain in a random order leads to θ'; then θ ← θ + ε (θ' − θ).
    """

    family = "multi-task"
    min_domains = 2
    one_domain_at_a_time = True
    differs = (
        "the inner steps use one Adam whose moments persist between rounds, as in DomainBed",
        "the order of the domains is random, as in the paper's code; in DomainBed it is fixed",
    )

    class Hparams(ERM.Hparams):
        meta_lr: float = hp(0.5, Choice(0.05, 0.1, 0.5), "ε, step size towards θ'")

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        before = [parameter.detach().clone() for parameter in self.parameters()]
        parts = batch.parts()
        terms = [super(Fish, self).update(parts[i], optimizers, backward) for i in torch.randperm(len(parts)).tolist()]
        with torch.no_grad():
            for parameter, start in zip(self.parameters(), before, strict=True):
                parameter.lerp_(start, 1 - self.hparams.meta_lr)
        return mean_terms(terms)

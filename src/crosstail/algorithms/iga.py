import torch
from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._base import Backward, DomainBatch, LogUniform, descend, hp, slopes, total
from crosstail.algorithms._gradients import DomainGradients


class IGA(DomainGradients):
    """IGA: mean risk + λ Σ_d ‖∇R_d − mean ∇R‖², the variance of the domains' gradients (Koyama and Yamaguchi, 2020)."""

    alone = "IGA differentiates the losses of all domains twice, which terms with moving statistics do not allow"
    passes = 3.0  # the penalty's gradient needs second derivatives
    differs = (
        "the squared differences are summed over the domains, as in DomainBed; the paper averages them",
        "λ is 0.1 by default, and 1,000 only for finetuning: with DomainBed's 1,000 a new network learns nothing",
    )

    class Hparams(DomainGradients.Hparams):
        penalty: float = hp(0.1, LogUniform(1e-3, 1e1), "λ, weight of the penalty", (1000.0, LogUniform(1e1, 1e5)))

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        parameters = self.trained
        each = [self.losses(*self.features(part)) for part in batch.parts()]
        gradients = [slopes(total(terms), parameters, create_graph=True) for terms in each]
        stacked = [torch.stack(of_domains) for of_domains in zip(*gradients, strict=True)]
        penalty = torch.stack([(g - g.mean(0)).square().sum() for g in stacked]).sum()
        terms = {name: torch.stack([of_domain[name] for of_domain in each]).mean() for name in each[0]}
        terms["iga"] = self.hparams.penalty * penalty
        descend(terms, optimizers, backward)
        return terms

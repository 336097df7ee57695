from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Beta
from torch.optim import Optimizer

from crosstail.algorithms._base import ERM, Backward, DomainBatch, LogUniform, descend, hp


class Mixup(ERM):
    """Mixup: learn λ x + (1 − λ) x′ with the label λ y + (1 − λ) y′, λ ~ Beta(α, α) (Zhang et al., 2018).

    x and x′ come from different domains: at each step the domains are arranged in a random ring, and each is mixed
    with its predecessor, with its own λ.
    """

    family = "augmentation"
    min_domains = 2
    alone = "Mixup trains on mixtures of two samples, which belong to no single pair, so no other loss or term applies"
    differs: tuple[str, ...] = (
        "samples are mixed with another domain's, with one λ per domain (Yan et al., 2020; Wang et al., 2020)",
        "α is searched from 0.1 to 1; in the BoDA paper from 1 to 10,000, where most draws give λ ≈ 0.5, in its code "
        "it is always 0.1, and DomainBed searches it from 0.1 to 10",
    )

    class Hparams(ERM.Hparams):
        # Differs from the paper: its range 10^U(0, 4) excludes its own default.
        alpha: float = hp(0.2, LogUniform(1e-1, 1.0), "α of the mixtures: small values hardly mix", above=0)

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        x, y = self.mix(batch)
        z, mixed = self.features(replace(batch, x=x, y=y))
        terms = {"cross_entropy": self.likelihood(self.head(z), mixed.y)}
        descend(terms, optimizers, backward)
        return terms

    def mix(self, batch: DomainBatch) -> tuple[Tensor, Tensor]:
        """Mixed inputs (B, …) and mixed labels (B, C)."""
        x, y = batch.by_domain(batch.x), batch.by_domain(F.one_hot(batch.y, self.task.num_classes))
        order = torch.randperm(len(x))
        share = Beta(self.hparams.alpha, self.hparams.alpha).sample(order.shape).to(x)  # (K,)

        def mixed(values: Tensor) -> Tensor:
            weight = share.view(-1, *[1] * (values.ndim - 1))
            return (weight * values[order] + (1 - weight) * values[order.roll(1)]).flatten(0, 1)

        return mixed(x), mixed(y)

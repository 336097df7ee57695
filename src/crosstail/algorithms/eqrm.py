from torch import Tensor

from crosstail.algorithms._annealed import SHARE, SLOWER, Slowed
from crosstail.algorithms._base import DomainBatch, LogUniform, Uniform, hp, when
from crosstail.losses.domains import risk_quantile


class EQRM(Slowed):
    """EQRM: after burn-in with ERM, minimise the α-quantile of the domains' risks (Eastwood et al., 2022)."""

    family = "robust optimisation"
    min_domains = 2
    differs = (
        "the gradient is the quantile's, −∂F/∂R / F′(q); DomainBed differentiates the ends of its bisection",
        SHARE,
        SLOWER,
        "burn-in is drawn uniformly; DomainBed draws it log-uniformly from 316 to 3,162 steps",
    )

    class Hparams(Slowed.Hparams):
        quantile: float = hp(0.75, Uniform(0.5, 0.99), "α, quantile of the risks", above=0, below=1)
        anneal: float = when(0.5, Uniform(0.06, 0.6), "end of burn-in")
        late_lr: float = hp(0.02, LogUniform(2e-3, 2e-1), "learning rate after burn-in, relative to that before")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        risks = batch.by_domain(self.likelihood(self.head(z), batch.y, reduction="none")).mean(1)  # (K,)
        if self.annealed:
            return {"eqrm": risk_quantile(risks, alpha=self.hparams.quantile)}
        return {"cross_entropy": risks.mean()}

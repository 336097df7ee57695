import torch
from torch import Tensor

from crosstail.algorithms._annealed import SHARE, Slowed
from crosstail.algorithms._base import DomainBatch, LogUniform, Uniform, hp, when


class EQRM(Slowed):
    """EQRM: after burn-in with ERM, minimise the α-quantile of the domains' risks (Eastwood et al., 2022).

    The quantile is taken of a kernel density estimate: F(q) = mean_d Φ((q − R_d) / h) = α.
    """

    family = "robust optimisation"
    min_domains = 2
    differs = (
        "the gradient is the quantile's, −∂F/∂R / F′(q); DomainBed differentiates the ends of its bisection",
        SHARE,
    )

    class Hparams(Slowed.Hparams):
        quantile: float = hp(0.75, Uniform(0.5, 0.99), "α, quantile of the risks", above=0, below=1)
        anneal: float = when(0.5, Uniform(0.06, 0.6), "end of burn-in")
        late_lr: float = hp(0.02, LogUniform(2e-3, 2e-1), "learning rate after burn-in, relative to that before")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        risks = batch.by_domain(self.likelihood(self.head(z), batch.y, reduction="none")).mean(1)  # (K,)
        return {"eqrm": quantile(risks, self.hparams.quantile)} if self.annealed else {"cross_entropy": risks.mean()}


def quantile(risks: Tensor, alpha: float) -> Tensor:
    """The α-quantile of a kernel density estimate, with bandwidth h = 1.06 σ K^(−1/5) (Silverman, 1986)."""
    bandwidth = 1.06 * (risks.var() + 1e-12).sqrt() * len(risks) ** -0.2

    def distribution(q: Tensor) -> Tensor:
        return torch.special.ndtr((q[:, None] - risks) / bandwidth).mean(1)

    with torch.no_grad():
        shift = bandwidth * torch.special.ndtri(risks.new_tensor(alpha))
        low, high = risks.amin() + shift, risks.amax() + shift  # it lies between the quantiles of single risks
        for _ in range(5):  # every pass narrows it by a factor of 1,000
            grid = low + (high - low) * torch.linspace(0, 1, 1001).to(risks)
            place = (distribution(grid) < alpha).sum().clamp(1, 1000)
            low, high = grid.gather(0, torch.stack([place - 1, place]))
        q = low[None]
        density = torch.exp(-(((q - risks) / bandwidth) ** 2) / 2).mean() / (bandwidth * (2 * torch.pi) ** 0.5)
    return (q - (distribution(q) - alpha) / density)[0]  # a Newton step, whose gradient is the quantile's

import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms._annealed import DRAWN, SHARE
from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, Uniform, first_step, hp, when


class TRM(ERM):
    """TRM: the optimal classifier of each domain should also be good for the others (Xu and Jaakkola, 2021).

    Mean over domains q of Σ_{i ≠ q} α_qi R_i(w_q) − λ ∇R_q(w_q) · H_q⁻¹ Σ_i α_qi ∇R_i(w_q): the risks of q's classifier
    w_q on the others, and how w_q moves with the features. α grows for pairs of domains with high risks.
    """

    family = "invariance"
    adds_term = True
    min_domains = 2
    differs = (
        "w_q takes 30 steps of SGD per batch, and H_q⁻¹ is 10 terms of a Neumann series, unless that diverges, as in "
        "DomainBed, whose sum counts the second term twice and lacks the first, which is overwritten",
        SHARE,
        DRAWN,
    )

    class Hparams(ERM.Hparams):
        alignment: float = hp(1e-4, LogUniform(1e-5, 1.0), "λ, weight of the product of gradients")
        eta: float = hp(0.01, LogUniform(1e-3, 1e-1), "η, step size of α")
        start: float = when(0.04, Uniform(0.0, 0.5), "when the term starts")

    domain_weights: Tensor  # (D, C, F + 1)
    alpha: Tensor  # (D, D)

    def build(self) -> None:
        super().build()
        width = self.backbone.num_features
        self.register_buffer("domain_weights", (2 * torch.rand(*self.task.counts.shape, width + 1) - 1) / width**0.5)
        self.register_buffer("alpha", 1 - torch.eye(self.task.num_domains))

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        terms = super().losses(z, batch)
        if self.step < first_step(self.hparams.start, self.steps):
            return terms
        x = F.pad(z.to(self.alpha), (0, 1), value=1.0)  # (B, F + 1)
        own, fixed, y = batch.by_domain(x), batch.by_domain(x.detach()), batch.by_domain(batch.y)
        domain = batch.by_domain(batch.domain)[:, 0]
        weights, alpha = self.domain_weights[domain], self.alpha[domain][:, domain]
        for _ in range(30):
            weights = weights - 0.1 * errors(fixed, y, weights).mT @ fixed / fixed.shape[1]
        alpha = alpha / alpha.sum(1, keepdim=True)
        scores = (x @ weights.flatten(0, 1).mT).view(len(x), len(weights), -1).transpose(1, 2)  # (B, C, K)
        each = self.likelihood(scores, batch.y[:, None].expand(-1, len(weights)), reduction="none")  # (B, K)
        risks = alpha * batch.by_domain(each).mean(1).mT  # of q's classifier on i (K, K)
        gradient = torch.stack([
            (share.repeat_interleave(fixed.shape[1])[:, None] * errors(x.detach(), batch.y, w)).mT @ x.detach()
            for w, share in zip(weights, alpha / fixed.shape[1], strict=True)
        ])  # fmt: skip
        direction = solved(gradient, fixed, weights)
        product = (errors(own, y, weights) * (own[..., :-1] @ direction.mT)).sum(2).mean(1)  # (K,)
        self.domain_weights[domain] = weights
        self.alpha[domain[:, None], domain] = alpha * (self.hparams.eta * risks.detach()).exp()
        return terms | {"trm": (risks.sum(1) - self.hparams.alignment * product).mean()}


def errors(x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """p − one-hot y (…, n, C) of linear classifiers (…, C, F + 1)."""
    return (x @ weights.mT).softmax(-1) - F.one_hot(y, weights.shape[-2])


def solved(gradient: Tensor, x: Tensor, weights: Tensor) -> Tensor:
    """Σ_{k ≤ 10} (1 − H)^k g (K, C, F) for the Hessian of each domain's risk; it ends where it exceeds 10."""
    term = total = gradient[..., :-1]
    p, x = (x @ weights.mT).softmax(-1), x[..., :-1]
    active = torch.ones(len(x), 1, 1, dtype=torch.bool, device=x.device)
    for _ in range(10):
        change = x @ term.mT
        curvature = (p * (change - (p * change).sum(-1, keepdim=True))).mT @ x / x.shape[1]
        term = term - curvature
        total = torch.where(active, total + term, total)
        active = active & (total.abs().amax((1, 2), keepdim=True) <= 10)
    return total

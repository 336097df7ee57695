import torch
from torch import Tensor
from torch.distributions import Beta
from torch.optim import Optimizer

from crosstail.algorithms._base import Backward, DomainBatch, LogUniform, Uniform, descend, hp
from crosstail.algorithms._weighted import Weighted
from crosstail.losses.contrastive import alignment_loss, separation_loss
from crosstail.losses.tails import hard_sample_loss


class NDCL(Weighted):
    """NDCL: hard samples of rare pairs, far from mixtures with other classes, alike in all domains (Cao et al., 2026).

    Three terms. Cross-entropy: the mean over classes of Σ_i w a_i CE_i, with a softmax a of the class's errors and
    weights w ∝ 1 / n of pairs. Separation, over predicted probabilities p: −log of the share, in a softmax of 1 − cos,
    of mixtures of the class with others among those and the class's samples. Alignment, over mean probabilities of
    pairs: −log of the share of the same class in a softmax of cos.
    """

    passes = 2.0  # mixtures are embedded too
    unshared = "mixtures are of inputs of the whole batch, which no process has"
    differs = (
        Weighted.differs[0],
        "every class has the same number of mixtures, of its least and the others' most probable samples in turn; "
        "public code has several rules for their numbers, and the paper leaves them open",
        "w sums to the number of the domain's classes, as in the BoDA code; public code lacks its definition",
        "terms, their weights and α are from public code",
    )

    class Hparams(Weighted.Hparams):
        separation: float = hp(0.1, LogUniform(1e-3, 1.0), "weight of the separation from mixtures")
        alignment: float = hp(0.1, LogUniform(1e-3, 1.0), "weight of the alignment of pairs")
        alpha: float = hp(0.2, Uniform(0.1, 0.3), "α of the mixtures: small values hardly mix", above=0)

    def weigh(self, counts: Tensor) -> Tensor:
        inverse = torch.where(counts > 0, 1 / counts.clamp_min(1), 0.0)
        total = inverse.sum(1, keepdim=True).where(counts.any(1)[:, None], 1)
        return inverse * (counts > 0).sum(1, keepdim=True) / total

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        return {"cross_entropy": hard_sample_loss(self.head(z), batch.y, batch.domain, self.weights)}

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        z, batch = self.features(batch)
        terms, p = self.losses(z, batch), self.head(z).softmax(1)
        x, y = self.mix(batch, p.detach())
        if len(y):
            mixed = self.head(self.features(DomainBatch(x, y, y))[0]).softmax(1)
            terms["separation"] = self.hparams.separation * separation_loss(p, batch.y, mixed, y)
        terms["alignment"] = self.hparams.alignment * alignment_loss(p, batch.y, batch.domain)
        descend(terms, optimizers, backward)
        return terms

    def mix(self, batch: DomainBatch, p: Tensor) -> tuple[Tensor, Tensor]:
        """Mixtures (M, …) of each class's samples with other classes', and the class (M,); none of a single class."""
        present, number = torch.unique(batch.y, return_counts=True)
        share = Beta(self.hparams.alpha, self.hparams.alpha).sample().to(batch.x)
        if len(present) < 2:
            return batch.x[:0], batch.y[:0]
        turns = torch.arange(-(-len(batch) // len(present)), device=p.device)
        inside, chance = batch.y == present[:, None], p.T[present]  # (K, B)
        hardest = chance.masked_fill(~inside, torch.inf).argsort(stable=True)
        nearest = chance.masked_fill(inside, -torch.inf).argsort(descending=True, stable=True)
        half, others = (number[:, None] + 1) // 2, len(batch) - number[:, None]
        own, other = (rows.gather(1, turns % size).flatten() for rows, size in ((hardest, half), (nearest, others)))
        return torch.lerp(batch.x[other], batch.x[own], share), batch.y[own]

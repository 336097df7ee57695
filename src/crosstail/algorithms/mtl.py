import torch
from torch import Tensor, nn

from crosstail.algorithms._base import ERM, Choice, DomainBatch, hp


class MTL(ERM):
    """MTL: classify from a sample's features and the mean features of its domain (Blanchard et al., 2021).

    A domain's embedding is a moving average of its mean features, e_d ← ε mean + (1 − ε) e_d, initialised by its first
    batch. Where prediction does not know the domain, it uses the mean over the training domains: the classifier is
    linear, so an embedding adds a bias per class, and this is the mean of the domains' biases.
    """

    family = "transfer"
    uses_domain = True
    linear_head = False
    differs: tuple[str, ...] = (
        "the kernel mean embedding is the mean of the features, as in DomainBed, which then overwrites it with noise",
        "the first embedding of a domain is the mean of its first batch; in DomainBed it is ε times that",
        "the loss is the mean over the domains; in DomainBed it is their sum",
        "where the domain is unknown, prediction uses the mean embedding of the training domains instead of the mean "
        "of the test domain's samples",
    )

    class Hparams(ERM.Hparams):
        ema: float = hp(0.99, Choice(0.5, 0.9, 0.99, 1.0), "ε, weight of the batch in the moving average")

    domain_embedding: Tensor  # (D, F), 0 for a domain not seen yet
    met: Tensor  # (D, 1)

    def build(self) -> None:
        super().build()
        self.head = nn.Linear(2 * self.backbone.num_features, self.task.num_classes)
        self.register_buffer("domain_embedding", torch.zeros(self.task.num_domains, self.backbone.num_features))
        self.register_buffer("met", torch.zeros(self.task.num_domains, 1, dtype=torch.bool))

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Cross-entropy; its gradient also flows through this batch's share of the embedding."""
        domain = batch.by_domain(batch.domain)[:, 0]  # (K,)
        mean = batch.by_domain(z).mean(1)
        moved = self.hparams.ema * mean + (1 - self.hparams.ema) * self.domain_embedding[domain]
        embedding = torch.where(self.met[domain], moved, mean)
        self.domain_embedding[domain], self.met[domain] = embedding.detach(), True
        scores = self.head(torch.cat([z, embedding.repeat_interleave(len(z) // len(domain), 0)], 1))
        return {"cross_entropy": self.likelihood(scores, batch.y)}

    def scores(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        embedding = (self.domain_embedding.sum(0) / self.met.sum().clamp_min(1)).expand(z.shape[0], -1)
        if domain is not None:  # a domain without training samples has no embedding of its own
            embedding = torch.where(self.met[domain], self.domain_embedding[domain], embedding)
        return self.head(torch.cat([z, embedding], 1))

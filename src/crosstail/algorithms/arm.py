import torch
from torch import Tensor, nn

from crosstail.algorithms import mtl
from crosstail.algorithms._base import DomainBatch, hp

CONTEXT = 64


class ARM(mtl.MTL):
    """ARM-CML: classify from a sample's features and a learnt context of its domain (Zhang et al., 2021).

    The context is the mean, over the domain's samples in the batch, of what a second network computes from features.
    Prediction uses moving averages of the training contexts: the domain's if it is known, otherwise their mean.
    """

    family = "meta-learning"
    differs = (
        "the context is computed from features and given to a classifier with one hidden layer; the paper computes it "
        "from images, of which it is one more channel, so that no pretrained or frozen network could take it",
        "prediction uses contexts of training; the paper and DomainBed use the mean over the test batch, so that what "
        "they predict for a sample depends on the others",
        "the context network has one hidden layer, without batch norm; in DomainBed it has three convolutions",
        "batches are as large as for other methods; in DomainBed, they have 8 samples per domain",
    )

    class Hparams(mtl.MTL.Hparams):
        ema: float = hp(0.1, None, "weight of the batch in the moving average of a domain's contexts")

    def build(self) -> None:
        super().build()
        features = self.backbone.num_features
        self.context = nn.Sequential(nn.Linear(features, CONTEXT), nn.ReLU(), nn.Linear(CONTEXT, CONTEXT))
        layers = nn.Linear(features + CONTEXT, features), nn.ReLU(), nn.Linear(features, self.task.num_classes)
        self.head = nn.Sequential(*layers)
        self.domain_embedding = torch.zeros(self.task.num_domains, CONTEXT)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Cross-entropy with the batch's contexts; their moving averages are for prediction."""
        domain = batch.by_domain(batch.domain)[:, 0]  # (K,)
        context = batch.by_domain(self.context(z)).mean(1)  # (K, 64)
        now = context.detach().to(self.domain_embedding)
        moved = torch.lerp(self.domain_embedding[domain], now, self.hparams.ema)
        self.domain_embedding[domain] = torch.where(self.met[domain], moved, now)
        self.met[domain] = True
        scores = self.head(torch.cat([z, context.repeat_interleave(len(z) // len(domain), 0)], 1))
        return {"cross_entropy": self.likelihood(scores, batch.y)}

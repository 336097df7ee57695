"""Adaptive risk minimisation with contextual meta-learning."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from crosstail.algorithms._algorithm import Task
from crosstail.algorithms.erm import ERM
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch

CONTEXT = 64
MOMENTUM = 0.1


class ARM(ERM):
    """ARM-CML: classify from a sample's features and a learnt context of its domain (Zhang et al., 2021).

    The context is the mean, over the domain's samples in the batch, of what a second network computes from features.
    Prediction uses moving averages of the contexts of training: that of the domain where it is known, or their mean.
    """

    family = "meta-learning"
    uses_domain = True
    linear_head = False
    differs = (
        "the context is computed from features and given to a classifier with one hidden layer; the paper computes it "
        "from images, of which it is one more channel, so that no pretrained or frozen network could take it",
        "prediction uses contexts of training; the paper and DomainBed use the mean over the test batch, so that what "
        "they predict for a sample depends on the others",
        "the context network has one hidden layer, without batch norm; in DomainBed it has three convolutions",
    )
    contexts: Tensor  # (D, 64), 0 for a domain not seen yet
    met: Tensor  # (D, 1)

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__(backbone, task, hparams)
        features = backbone.num_features
        self.context = nn.Sequential(nn.Linear(features, CONTEXT), nn.ReLU(), nn.Linear(CONTEXT, CONTEXT))
        layers = nn.Linear(features + CONTEXT, features), nn.ReLU(), nn.Linear(features, task.num_classes)
        self.head = nn.Sequential(*layers)
        self.register_buffer("contexts", torch.zeros(task.num_domains, CONTEXT))
        self.register_buffer("met", torch.zeros(task.num_domains, 1, dtype=torch.bool))

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Cross-entropy with the batch's contexts; their moving averages are for prediction."""
        domain = batch.by_domain(batch.domain)[:, 0]  # (K,)
        context = batch.by_domain(self.context(z)).mean(1)  # (K, 64)
        moved = torch.lerp(self.contexts[domain], context.detach().to(self.contexts), MOMENTUM)
        self.contexts[domain] = torch.where(self.met[domain], moved, context.detach().to(self.contexts))
        self.met[domain] = True
        scores = self.head(torch.cat([z, context.repeat_interleave(len(z) // len(domain), 0)], 1))
        return {"cross_entropy": F.cross_entropy(scores, batch.y)}

    def scores(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        context = (self.contexts.sum(0) / self.met.sum().clamp_min(1)).expand(z.shape[0], -1)
        if domain is not None:  # a domain without training samples has no context of its own
            context = torch.where(self.met[domain], self.contexts[domain], context)
        scores: Tensor = self.head(torch.cat([z, context], 1))
        return scores

"""An algorithm for Crosstail: --algorithm ./mine.py."""

import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms import LogUniform, hp
from crosstail.algorithms.erm import ERM
from crosstail.data import DomainBatch


class Mine(ERM):
    """Mine: say in one sentence what it does, and cite its paper (Author et al., 2026)."""

    class Hparams(ERM.Hparams):
        """Each with its default, the range of a random search, and its meaning."""

        weight: float = hp(0.1, LogUniform(0.01, 1.0), "weight of the second term")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Named terms, one number each, whose sum is minimised.

        They are computed from the features z (B, F) of a batch with classes `batch.y` (B,) and domains `batch.domain`
        (B,). `self.head` is the classifier, `self.task.counts` (D, C) are the training counts.
        """
        # An example: the mean features of the domains should be close to each other.
        means = torch.stack([z[batch.domain == d].mean(0) for d in batch.domain.unique()])  # (domains, F)
        return {
            "cross_entropy": F.cross_entropy(self.head(z), batch.y),
            "domains": self.hparams.weight * means.var(0, correction=0).mean(),
        }

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Beta

from crosstail.algorithms import mixup
from crosstail.algorithms._base import DomainBatch, LogUniform, Uniform, hp


class LISA(mixup.Mixup):
    """LISA: mix samples of one class and different domains, or of one domain and different classes (Yao et al., 2022).

    Each step does one of both, with λ ~ Beta(α, α). A sample without a partner in the batch remains as it is.
    """

    min_domains = 1
    alone = "LISA trains on mixtures of two samples, which belong to no single pair, so no other loss or term applies"
    unshared = "partners come from the whole batch, which no process has"
    differs = (
        "each sample has a random partner, where the paper's code and SubpopBench mix permuted subsets",
        "λ is drawn once per step; in the paper's code and SubpopBench, once per sample",
        "mixup for images too; SubpopBench also has CutMix",
    )

    class Hparams(mixup.Mixup.Hparams):
        alpha: float = hp(2.0, LogUniform(1e-1, 1e1), "α of the mixtures: small values hardly mix", above=0)
        within_class: float = hp(0.5, Uniform(0.0, 1.0), "probability of mixing within a class, not within a domain")

    def mix(self, batch: DomainBatch) -> tuple[Tensor, Tensor]:
        alike, together = (values[:, None] == values for values in (batch.y, batch.domain))
        within_class = torch.rand(()) < self.hparams.within_class
        allowed = alike & ~together if within_class else ~alike & together
        chance = torch.rand(len(batch), len(batch)).to(batch.x.device).masked_fill(~allowed, -1).fill_diagonal_(-0.5)
        partner, share = chance.argmax(1), Beta(self.hparams.alpha, self.hparams.alpha).sample().to(batch.x)
        labels = F.one_hot(batch.y, self.task.num_classes).to(batch.x)
        return torch.lerp(batch.x[partner], batch.x, share), torch.lerp(labels[partner], labels, share)

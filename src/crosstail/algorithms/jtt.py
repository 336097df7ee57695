import torch
from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._base import Backward, DomainBatch, LogUniform, Uniform, descend, first_step, hp, when
from crosstail.algorithms._processes import joined
from crosstail.algorithms._twin import Twin


class JTT(Twin):
    """JTT: ERM, then a new network with weight λ on the samples that the first one gets wrong (Liu et al., 2021)."""

    passes = 1.33  # a step of the second network needs the first one's predictions: a forward pass is a third
    differs = (
        "a sample is judged whenever it is in a batch, as in SubpopBench, and not once; both networks share the "
        "run's steps",
        "samples are weighted, as in SubpopBench, where the paper repeats them",
    )

    class Hparams(Twin.Hparams):
        first: float = when(0.5, Uniform(0.2, 0.8), "end of the first network's steps")
        upweight: float = hp(10.0, LogUniform(1.0, 10**2.5), "λ, weight of the samples that it gets wrong")

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        if self.step < first_step(self.hparams.first, self.steps):
            z, batch = self.features(batch, self.twin)
            terms = {"first_network": self.likelihood(self.twin_head(z), batch.y)}
            descend(terms, optimizers, backward)
            return terms
        self.twin.eval()
        with torch.no_grad():
            z, whole = joined(self.twin(batch.x), batch)
            wrong = self.twin_head(z).argmax(1) != whole.y
        self.sample_weights = torch.where(wrong, self.hparams.upweight, 1.0)
        return super().update(batch, optimizers, backward)

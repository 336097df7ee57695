from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._base import ERM, Backward, DomainBatch, Uniform, descend, first_step, when


class ERMPlusPlus(ERM):
    """ERM++: the classifier alone at first, then all weights, to spare pretrained features (Teterwak et al., 2025).

    The rest of ERM++ are options of a run: `--average uniform`, `--refit` for training on every sample, more `--steps`,
    and better initial `--weights`.
    """

    differs = (
        "averaging, training on every sample and initial weights are options of a run: add `--average uniform --refit`",
        "the classifier's first steps are a share of the steps; in DomainBed they are 500, with an optimizer and a "
        "learning rate of their own",
        "the learning rate is constant; in DomainBed it falls when the validation loss no longer does",
        "pretrained batch-norm statistics remain fixed; the paper lets them adapt",
    )

    class Hparams(ERM.Hparams):
        head_first: float = when(0.1, Uniform(0.0, 0.3), "when all weights are trained")

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        if self.step >= first_step(self.hparams.head_first, self.steps):
            return super().update(batch, optimizers, backward)
        z, batch = self.features(batch)
        terms = self.losses(z.detach(), batch)
        descend(terms, optimizers, backward)
        return terms

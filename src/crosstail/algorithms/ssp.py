import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from crosstail.algorithms._base import ERM, Backward, DomainBatch, Uniform, descend, hp


class SSP(ERM):
    """SSP: self-supervised pre-training of the backbone, then ERM (Yang and Xu, 2020).

    The pretext task is rotation prediction for images, and for vectors, SCARF: find the corrupted copy of a sample, in
    which 60 % of the values are other samples' (Bahri et al., 2022).
    """

    family = "imbalance"
    passes = 2.0  # at most: pre-training sees vectors twice, images once
    unshared = "its contrastive loss compares all samples of a batch, and no process has all of them"
    differs = (
        "pre-training counts towards the steps of the run, so that on images it costs no more than ERM",
        "each image has a random rotation; in the paper's code, all rotations are equally frequent in a batch",
        "vectors, which cannot be rotated, use SCARF",
    )

    class Hparams(ERM.Hparams):
        pretraining: float = hp(0.3, Uniform(0.1, 0.5), "share of steps for pre-training")

    def build(self) -> None:
        super().build()
        self.turn_head = nn.Linear(self.backbone.num_features, 4)
        self.copy_head = nn.Linear(self.backbone.num_features, 128)

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        if self.step >= self.hparams.pretraining * self.steps:
            return super().update(batch, optimizers, backward)
        pretext = self.tell_turns if batch.x.ndim == 4 else self.find_copies
        terms = {"self_supervision": pretext(batch.x)}
        descend(terms, optimizers, backward)
        return terms

    def tell_turns(self, x: Tensor) -> Tensor:
        """Rotation prediction: cross-entropy of the number of quarter turns; non-square images turn by 0° or 180°."""
        least = 1 if x.shape[2] == x.shape[3] else 2
        quarters = least * torch.randint(4 // least, (len(x),)).to(x.device)
        return F.cross_entropy(self.turn_head(self.backbone(turned(x, quarters))), quarters)

    def find_copies(self, x: Tensor) -> Tensor:
        """SCARF: cross-entropy of the index of each sample's copy, with cosine similarities as scores."""
        z = F.normalize(self.copy_head(self.backbone(torch.cat([x, corrupted(x)]))))
        return F.cross_entropy(z[: len(x)] @ z[len(x) :].mT, torch.arange(len(x), device=x.device))


def turned(x: Tensor, quarters: Tensor) -> Tensor:
    """Rotate each image (B, 3, H, W) to the left by its number of quarter turns (B,)."""
    q = quarters[:, None, None, None]
    if x.shape[2] == x.shape[3]:
        x = torch.where(q % 2 == 1, x.mT, x)
    x = torch.where((q == 1) | (q == 2), x.flip(2), x)
    return torch.where(q >= 2, x.flip(3), x)


def corrupted(x: Tensor, share: float = 0.6) -> Tensor:
    """Vectors (B, F) with a share of the values, at random positions, replaced from random rows."""
    others = x.gather(0, torch.randint(len(x), x.shape).to(x.device))
    return torch.where(torch.rand(x.shape).to(x.device) < share, others, x)

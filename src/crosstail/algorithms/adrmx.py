from copy import deepcopy

import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from crosstail.algorithms import dann
from crosstail.algorithms._base import Backward, DomainBatch, descend, hp
from crosstail.algorithms.selfreg import of_same_class
from crosstail.losses.contrastive import supcon_loss


class ADRMX(dann.DANN):
    """ADRMX: subtract a second network's domain features, so that the rest hides the domain (Demirel et al., 2023).

    With features z and domain features d, z and z − d tell the class, d the domain, and z − d hide it from a
    discriminator. (z − d) + d′ with d′ of another sample of the class, a remix, tells the class as well.
    """

    passes = 2.0
    differs = (
        "every sample is remixed; in DomainBed, one pair of samples per class, by a slip of indices not of that class",
        "the discriminator has two hidden layers, and takes its steps on the batch before the other networks; in "
        "DomainBed, it has seven or more, and they alternate over batches",
        "the contrastive loss is `supcon`'s; DomainBed adds 1e-5 to its fractions and divides by one sample more",
        "linear classifiers; in DomainBed, they have two hidden layers",
        "weight decay and the discriminator's options are searched as for `dann`; DomainBed has no weight decay and "
        "searches the learning rate, from 2e-5 to 5e-5, and the discriminator's depth only",
    )

    class Hparams(dann.DANN.Hparams):
        adversary: float = hp(0.75, None, "weight of the adversarial loss")
        discriminator_steps: int = hp(2, None, "steps of the discriminator per step of the backbone")
        domain: float = hp(1.0, None, "weight of the domain's cross-entropy from the domain features")
        remix: float = hp(1.0, None, "weight of the remixed samples' cross-entropy")
        contrast: float = hp(1.0, None, "weight of the contrastive losses on z and z − d")

    def build(self) -> None:
        super().build()
        self.domain_backbone = deepcopy(self.backbone)
        self.domain_head = nn.Linear(self.backbone.num_features, int((self.task.counts.sum(1) > 0).sum()))
        self.invariant_head = nn.Linear(self.backbone.num_features, self.task.num_classes)

    def optimizers(self) -> list[Optimizer]:
        generator, discriminator = super().optimizers()
        for module in (self.domain_backbone, self.domain_head, self.invariant_head):
            if parameters := list(module.parameters()):
                generator.add_param_group({"params": parameters})
        return [generator, discriminator]

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        generator, discriminator = optimizers
        (z, whole), (d, _) = self.features(batch), self.features(batch, self.domain_backbone)
        rest, y, h = z - d, whole.y, self.hparams
        told = self.discriminate(rest, whole, discriminator, backward)
        remixed = rest + d[of_same_class(y)]
        terms = self.losses(z, whole) | {
            "invariant": self.likelihood(self.invariant_head(rest), y),
            "domain": h.domain * F.cross_entropy(self.domain_head(d), self.place[whole.domain]),
            "remix": h.remix * self.likelihood(self.scores(remixed, whole.domain), y),
            "contrast": h.contrast * (supcon_loss(z, y, temperature=0.07) + supcon_loss(rest, y, temperature=0.07)),
            "adversary": self.adversary(rest, whole),
        }
        descend(terms, [generator], backward)
        return terms | told

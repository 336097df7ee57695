from torch import Tensor, nn
from torch.optim import Optimizer

from crosstail.algorithms.dann import DANN
from crosstail.data import DomainBatch
from crosstail.losses.host import occurrences
from crosstail.pairs import pair_number


class CDANN(DANN):
    """CDANN: features that hide the domain from a discriminator that knows the class (Li et al., 2018).

    Where class frequencies differ between domains, DANN also penalises features that reveal the class. Here classes,
    and the domains of a class, are weighted equally: 1 / (classes · domains of c · samples of (d, c)).
    """

    differs = (
        *DANN.differs,
        "one discriminator conditioned on the class, as in DomainBed, instead of one per class, and no "
        "class-prior-normalised discriminator",
        "domains and classes are balanced within the batch, in DomainBed only classes; a class that occurs in only one "
        "of its domains is ignored, since there is nothing to align",
    )

    def build(self) -> None:
        super().build()
        self.class_embedding = nn.Embedding(self.task.num_classes, self.backbone.num_features)

    def optimizers(self) -> list[Optimizer]:
        generator, discriminator = super().optimizers()
        discriminator.add_param_group({"params": self.class_embedding.parameters()})
        return [generator, discriminator]

    def errors(self, z: Tensor, batch: DomainBatch) -> Tensor:
        return super().errors(z + self.class_embedding(batch.y), batch)

    def mean(self, errors: Tensor, batch: DomainBatch) -> Tensor:
        """Mean over classes that occur in at least two domains of the batch, their domains, and the samples."""
        size = self.task.counts.shape
        counts = occurrences(pair_number(batch.y, batch.domain, size[1]), size.numel()).view(size)
        domains = (counts > 0).sum(0)
        shared = domains > 1
        parts = (shared.sum() * domains * counts)[batch.domain, batch.y].clamp_min(1)
        return (shared[batch.y] * errors / parts).sum()

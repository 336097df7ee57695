import torch
from torch import Tensor
from torch.distributions import Beta

from crosstail.algorithms._base import ERM, Choice, DomainBatch, Uniform, first_step, hp, when
from crosstail.algorithms.sagnet import content_and_style
from crosstail.losses.host import occurrences


class TALLY(ERM):
    """TALLY: after ERM, classify a sample's content in the style of one of another domain (Yang et al., 2023).

    Style is a feature vector's mean μ and deviation σ, content s = (z − μ) / σ. A sample i and another one, j, give
    σ̃_j s̃_i + μ̃_j with the class of i, where s̃ = λ s + (1 − λ) · its class's prototype, and μ̃, σ̃ = λ′ · its own
    + (1 − λ′) · its domain's, with moving averages as prototypes, and λ, λ′ ≥ ½ from Beta(α, α).
    """

    family = "augmentation"
    adds_term = True
    class_balanced = True
    differs = (
        "content and style are of the feature vector, as in `sagnet`, not of the maps of the network's second stage",
        "both samples are of one batch: i is drawn evenly from the classes of each domain, where the paper draws it "
        "evenly from all classes, and j evenly from all domains",
        "the steps of ERM have these batches too; in the paper they are drawn evenly from all samples",
        "prototypes begin with the means of a first batch; public code begins with noise",
        "μ and σ are what the paper says; public code exchanges the two on the way to the mixture",
        "no weights of the classes; public code adds `cb_loss`'s",
    )

    class Hparams(ERM.Hparams):
        warmup: float = when(0.5, Uniform(0.2, 0.8), "end of ERM")
        alpha: float = hp(0.5, Choice(0.2, 0.5, 1.0), "α: small values hardly mix with prototypes", above=0)
        momentum: float = hp(0.8, None, "weight of the old prototypes in the moving average")

    contents: Tensor  # (C, F), 0 for a class not seen yet
    styles: Tensor  # (D, 2), means and deviations, 0 for a domain not seen yet

    def build(self) -> None:
        super().build()
        self.register_buffer("contents", torch.zeros(self.task.num_classes, self.backbone.num_features))
        self.register_buffer("styles", torch.zeros(self.task.num_domains, 2))
        self.register_buffer("classes_met", torch.zeros(self.task.num_classes, 1, dtype=torch.bool))
        self.register_buffer("domains_met", torch.zeros(self.task.num_domains, 1, dtype=torch.bool))

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        content, *parts = content_and_style(z)
        style = torch.cat(parts, 1)
        prototypes = self.moved("contents", "classes_met", content, batch.y).to(z)
        styles = self.moved("styles", "domains_met", style, batch.domain).to(z)
        if self.step < first_step(self.hparams.warmup, self.steps):
            return super().losses(z, batch)
        other = torch.randperm(len(batch)).to(z.device)
        content = torch.lerp(prototypes[batch.y], content, self.share(z))
        mean, deviation = torch.lerp(styles[batch.domain[other]], style[other], self.share(z)).chunk(2, 1)
        return super().losses(content * deviation + mean, batch)

    def share(self, z: Tensor) -> Tensor:
        """λ (B, 1) of at least a half."""
        share = Beta(self.hparams.alpha, self.hparams.alpha).sample((len(z), 1)).to(z)
        return torch.maximum(share, 1 - share)

    def moved(self, name: str, met: str, values: Tensor, index: Tensor) -> Tensor:
        """Move a table towards the means of these values; what it was before, with these means where it was empty."""
        table, known, values = getattr(self, name), getattr(self, met), values.detach().to(self.contents)
        number = occurrences(index, len(table))[:, None]
        mean = torch.zeros_like(table).index_add(0, index, values) / number.clamp_min(1)
        before = torch.where(known, table, mean)
        table.copy_(torch.where(number > 0, torch.lerp(mean, before, self.hparams.momentum), table))
        known |= number > 0
        return before

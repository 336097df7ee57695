import torch
from torch import Tensor
from torch.distributions import Beta

from crosstail.algorithms._base import ERM, Choice, Uniform, hp


class MixStyle(ERM):
    """MixStyle: ERM with mixed statistics of feature maps in early layers, as if of new domains (Zhou et al., 2021).

    With the mean μ and the deviation σ of each channel over its places, (x − μ) / σ · (λ σ + (1 − λ) σ′) + λ μ +
    (1 − λ) μ′, where μ′ and σ′ belong to another sample, and λ ~ Beta(α, α).
    """

    family = "augmentation"
    changes_maps = True
    unshared = "statistics are mixed between samples of the whole batch, which no process has"
    differs = (
        "partners are random samples of the batch, which is the paper's variant without domain labels",
        "after stages at a quarter and an eighth of the resolution, which are the paper's in a ResNet; after the first "
        "two layers of `small_cnn`",
        "on vectors, statistics are of a sample's hidden units, as in `sagnet`",
    )

    class Hparams(ERM.Hparams):
        probability: float = hp(0.5, Uniform(0.1, 1.0), "probability of mixing, for each layer and step")
        alpha: float = hp(0.1, Choice(0.1, 0.2, 0.3), "α of the mixtures: small values hardly mix", above=0)

    def change(self, maps: Tensor) -> Tensor:
        if torch.rand(()) >= self.hparams.probability:
            return maps
        places = tuple(range(2, maps.ndim)) or (1,)
        variance, mean = torch.var_mean(maps.detach(), places, correction=0, keepdim=True)
        deviation = (variance + 1e-6).sqrt()
        size = len(maps), *[1] * (maps.ndim - 1)
        other, share = torch.randperm(len(maps)), Beta(self.hparams.alpha, self.hparams.alpha).sample(size).to(maps)
        content = (maps - mean) / deviation
        return content * torch.lerp(deviation[other], deviation, share) + torch.lerp(mean[other], mean, share)

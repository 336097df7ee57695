from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Beta

from crosstail.algorithms._base import ERM, DomainBatch, hp, total


class SelfReg(ERM):
    """SelfReg: features and scores near other samples' of the class, and near mixtures of two (Kim et al., 2021).

    With λ ~ Beta(α, α), the terms are λ d(z, z′) and (1 − λ) d(z, λ z′ + (1 − λ) z″), for samples z′ and z″ of the
    class, scaled by the cross-entropy where that is below 1. d is a squared difference of scores + w · one of features,
    of which z′ and z″ are projected.
    """

    family = "regularisation"
    adds_term = True
    differs = (
        "no curriculum over the domains, no stochastic weight averaging (`--average` has one) and no loss on clipped "
        "gradients, as in DomainBed",
        "the projection has 2 F hidden units; in DomainBed, F for 2,048 features",
        "the projection is trained; in DomainBed, no optimizer has its weights, so it stays random",
    )

    class Hparams(ERM.Hparams):
        feature_weight: float = hp(0.3, None, "w, weight of the differences of features")
        alpha: float = hp(0.5, None, "α of the mixtures: small values hardly mix", above=0)

    def build(self) -> None:
        super().build()
        features = self.backbone.num_features
        sizes, layers = (features, 2 * features, 2 * features, features), list[nn.Module]()
        for inputs, outputs in pairwise(sizes):
            layers += [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]
        self.predictor = nn.Sequential(*layers[:-1])

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        terms, scores, projected = super().losses(z, batch), self.scores(z, batch.domain), self.predictor(z)
        share = Beta(self.hparams.alpha, self.hparams.alpha).sample().item()
        first, second = of_same_class(batch.y), of_same_class(batch.y)

        def distance(other: Tensor, other_scores: Tensor) -> Tensor:
            return F.mse_loss(scores, other_scores) + self.hparams.feature_weight * F.mse_loss(z, other)

        individual = distance(projected[first], scores[first])
        mixed = (torch.lerp(values[second], values[first], share) for values in (projected, scores))
        scale = total(terms).detach().clamp(max=1)
        terms["individual"] = scale * share * individual
        terms["mixed"] = scale * (1 - share) * distance(*mixed)
        return terms


def of_same_class(y: Tensor) -> Tensor:
    """A random permutation (B,) that replaces each sample by one of the same class."""
    order = torch.randperm(len(y)).to(y.device)
    return torch.empty_like(y).index_copy(0, y.argsort(stable=True), order[y[order].argsort(stable=True)])

"""Post-hoc logit adjustment: stage one's scores − τ log π, π the prior of classes in training (Menon et al., 2021)."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.second_stages._choice import first_best
from crosstail.second_stages._linear import LinearHead
from crosstail.second_stages._stage import Features, FittedStage

TAUS = np.linspace(0, 2, 41).tolist()


def log_priors(counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """log π of the classes where the domain is unknown (C,) and in each domain (D, C).

    π_{d,c} = (N_{d,c} + 1) / Σ_c (N_{d,c} + 1), so that a class that a domain lacks is rare there instead of
    impossible. Batches have as many samples of each domain, so π_c is the mean over the domains with training
    samples; it also stands for a domain without any.
    """
    smooth = (counts + 1) / (counts + 1).sum(1, keepdims=True)
    trained = counts.sum(1) > 0
    mean = smooth[trained].mean(0)
    return np.log(mean), np.log(np.where(trained[:, None], smooth, mean))


class AdjustedHead(LinearHead):
    """A linear head with further biases (D, C) where the domain is known."""

    uses_domain = True
    by_domain: Tensor

    def __init__(self, num_features: int, num_domains: int, num_classes: int) -> None:
        super().__init__(num_features, num_domains, num_classes)
        self.register_buffer("by_domain", torch.zeros(num_domains, num_classes))

    def forward(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        scores = super().forward(z)
        return scores if domain is None else scores + self.by_domain[domain]


def fit(features: Features) -> AdjustedHead:
    """The smallest τ from 0 to 2 that is best on validation, or else 1: one for each of the two kinds of prior."""
    classifier, validation = features.classifier, features.validation
    assert isinstance(classifier, LinearHead)
    unknown, known = log_priors(features.counts)
    tau = tau_known = 1.0
    if validation:
        scores = validation.scored(classifier)
        tau = first_best(TAUS, lambda tau: scores - tau * unknown, validation)
        tau_known = first_best(TAUS, lambda tau: scores - tau * known[validation.domain], validation)
    bias = classifier.bias.numpy() - tau * unknown
    head = AdjustedHead.of(classifier.weight, bias, unit=classifier.unit, num_domains=len(known))
    head.by_domain.copy_(torch.from_numpy(tau * unknown - tau_known * known))
    return head


STAGE = FittedStage(
    fit=fit,
    head=AdjustedHead,
    needs_classifier=True,
    differs=(
        "π is the domain's where it is known, else the mean over domains: batches have the same number from each",
        "one sample is added to every class in each domain, so that π is never 0",
    ),
)

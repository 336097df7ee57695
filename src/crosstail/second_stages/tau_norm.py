"""τ-normalisation: stage one's classifier with more equal norms of its class weights (Kang et al., 2020)."""

import numpy as np
from numpy.typing import NDArray

from crosstail.second_stages._choice import first_best
from crosstail.second_stages._linear import LinearHead
from crosstail.second_stages._stage import Features, FittedStage

TAUS = np.linspace(0, 1, 21).tolist()


def factors(weight: NDArray[np.float32], tau: float) -> NDArray[np.float64]:
    """Factor of every class (C,), (n̄ / ‖w_c‖)^τ; the geometric mean n̄ of the norms keeps the scale of the scores."""
    norms = np.linalg.norm(weight.astype(np.float64), axis=1)
    logs = np.log(norms, out=np.full_like(norms, np.nan), where=norms > 0)
    mean = np.nanmean(logs) if (norms > 0).any() else 0.0
    return np.exp(tau * np.nan_to_num(mean - logs))


def fit(features: Features) -> LinearHead:
    """The smallest τ that is best on validation, or else 1: between 0, no change, and 1, equal norms."""
    classifier = features.classifier
    assert isinstance(classifier, LinearHead)
    weight, bias = classifier.weight.numpy(), classifier.bias.numpy()
    tau = 1.0
    if features.validation:
        scores = features.validation.scored(classifier)
        tau = first_best(TAUS, lambda tau: scores * factors(weight, tau), features.validation)
    f = factors(weight, tau)
    return LinearHead.of(f[:, None] * weight, f * bias, unit=classifier.unit)


STAGE = FittedStage(
    fit=fit,
    head=LinearHead,
    needs_classifier=True,
    differs=("biases are scaled like the weights, so that τ = 0 is stage one; the paper discards them as negligible",),
)

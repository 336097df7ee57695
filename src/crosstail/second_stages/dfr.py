"""Deep feature reweighting: mean of sparse logistic regressions on pair-balanced subsets (Kirichenko et al., 2023)."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from crosstail.second_stages._choice import first_best
from crosstail.second_stages._linear import LinearHead
from crosstail.second_stages._stage import Features, FittedStage

SUBSETS = 10
DEPTH = 20  # samples of a pair in a subset, at most
WORK = 10**8  # samples × features × classes of a subset, about; with very many pairs, fewer samples of each
PENALTIES = (0.03, 0.01, 0.003, 0.001)
DEFAULT = 0.003
STEPS = 200

Array = NDArray[np.float32]


def balanced_subset(features: Features, depth: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of up to `depth` random samples of every pair that has any."""
    mixed = rng.permutation(len(features.y))
    order = mixed[np.argsort(features.pair[mixed], kind="stable")]
    _, first, number = np.unique(features.pair[order], return_index=True, return_inverse=True)
    return order[np.arange(len(order)) - first[number] < depth]


def moments(features: Features) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of every feature (F,), 1 for a constant feature."""
    mean = sum(z.sum(0, dtype=np.float64) for z, _, _ in features.parts()) / len(features.y)
    deviation = np.sqrt(sum(((z - mean) ** 2).sum(0) for z, _, _ in features.parts()) / len(features.y))
    return mean, np.where(deviation > 1e-6 * np.abs(mean), deviation, 1.0)


def sparse_regression(x: Array, y: NDArray[np.int64], weights: Array, penalty: float, start: Array) -> Array:
    """Minimise Σ_i w_i cross-entropy(W x_i + b, y_i) + λ ‖W‖₁ by FISTA; b is the last row (F + 1, C), where x is 1."""
    scaled = np.sqrt(weights)[:, None] * x
    gram = scaled @ scaled.T if len(x) < x.shape[1] else scaled.T @ scaled
    rate = 2 / np.linalg.eigvalsh(gram)[-1]  # the curvature of the cross-entropy in the scores is at most 1/2
    shrink = np.full((len(start), 1), rate * penalty, np.float32)
    shrink[-1] = 0
    target = np.eye(start.shape[1], dtype=np.float32)[y]
    now, ahead, t = start, start, 1.0
    for _ in range(STEPS):
        gradient = x.T @ (weights[:, None] * (softmax(x @ ahead, axis=1) - target))
        moved = ahead - rate * gradient
        before, now = now, np.sign(moved) * np.maximum(np.abs(moved) - shrink, 0)
        before_t, t = t, (1 + (1 + 4 * t**2) ** 0.5) / 2
        ahead = now + np.float32((before_t - 1) / t) * (now - before)
    return now


def fit(features: Features) -> LinearHead:
    """The mean of ten regressions, with the largest of the penalties λ that are best on validation."""
    num_features, _, num_classes = features.sizes
    pairs = int((features.counts > 0).sum())
    depth = int(np.clip(WORK // (pairs * num_features * num_classes), 1, DEPTH))
    mean, deviation = moments(features)

    def regression(rows: NDArray[np.int64], penalty: float, start: Array) -> Array:
        part = features.keep(rows)
        x = np.hstack([(np.asarray(part.z) - mean) / deviation, np.ones((len(rows), 1))]).astype(np.float32)
        weights = 1 / np.bincount(part.pair)[part.pair] / pairs
        return sparse_regression(x, part.y, weights.astype(np.float32), penalty, start)

    def head(solution: Array) -> LinearHead:
        weight = (solution[:-1] / deviation[:, None]).T
        return LinearHead.of(weight, solution[-1] - weight @ mean)

    rng = np.random.default_rng(features.seed)
    subsets = [balanced_subset(features, depth, rng) for _ in range(SUBSETS)]
    solution, penalty = np.zeros((num_features + 1, num_classes), np.float32), DEFAULT
    if validation := features.validation:
        found = {}
        for each in PENALTIES:  # each starts from the one before
            found[each] = solution = regression(subsets[0], each, solution)
        penalty = first_best(PENALTIES, lambda each: validation.scored(head(found[each])), validation)
        solution = found[penalty]
    return head(np.mean([regression(rows, penalty, solution) for rows in subsets], axis=0))


STAGE = FittedStage(
    fit=fit,
    head=LinearHead,
    differs=(
        "groups are pairs, and a subset has up to 20 samples of each, weighted so that pairs count the same; in the "
        "paper it has as many of every group as the smallest has, here often 1",
        "subsets are of the training samples; in the paper's better variant they are of the validation samples, which "
        "would leave none to select on",
    ),
)

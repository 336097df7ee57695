"""Probabilities that mean what they say: temperatures, for each site as far as its samples tell it apart."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

MOST = 50_000  # samples that parameters are fitted on, drawn at random from more
LARGEST = 5.0  # |log sharpness|: where samples are separated perfectly, the best would be infinite
PENALTY = 1.0  # of the squared biases, in samples


Sharpness = Annotated[float, msgspec.Meta(gt=0, le=1e6)]


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """How the scores of a model become probabilities for classes that are equally frequent at every site."""

    sharpness: Sharpness
    """1/T for samples of an unknown site."""
    sites: dict[str, Sharpness]
    """1/T for samples of a known site."""
    bias: list[float]
    """By class, and with the sharpness of `corrected`: for probabilities that are corrected to another prevalence."""
    corrected: Sharpness
    samples: int
    """Held-out samples that it was fitted on."""

    @classmethod
    def none(cls, sites: Sequence[str], num_classes: int) -> "Calibration":
        """Scores as they are, where there are no samples to calibrate on."""
        same = dict.fromkeys(sites, 1.0)
        return cls(sharpness=1.0, sites=same, bias=[0.0] * num_classes, corrected=1.0, samples=0)

    def sharpness_of(self, sites: Sequence[str]) -> NDArray[np.float32]:
        """1/T (D + 1,) of these sites; the last is for unknown ones."""
        return np.array([*(self.sites.get(name, self.sharpness) for name in sites), self.sharpness], np.float32)

    def probabilities(
        self, log_p: NDArray[np.floating], site: NDArray[np.int64] | int, sites: Sequence[str]
    ) -> NDArray[np.float32]:
        """Calibrated probabilities (N, C) of samples from these sites, by index; −1 is an unknown one."""
        sharpness = self.sharpness_of(sites)[np.broadcast_to(np.asarray(site), len(log_p))]
        found: NDArray[np.float32] = softmax(np.asarray(log_p, np.float32) * sharpness[:, None], axis=1)
        return found

    def balanced(self, log_p: NDArray[np.floating]) -> NDArray[np.float32]:
        """Probabilities (N, C) where classes are equally frequent, corrected for the model's own preferences."""
        scores = np.asarray(log_p, np.float32) * np.float32(self.corrected) + np.asarray(self.bias, np.float32)
        found: NDArray[np.float32] = softmax(scores, axis=1)
        return found


class Fitted(NamedTuple):
    """Log sharpness and its squared standard error."""

    log_sharpness: float
    squared_error: float


def balanced_weights(y: NDArray[np.int64], site: NDArray[np.int64], num_classes: int) -> NDArray[np.float64]:
    """Weights (N,) with which every pair counts the same; their sum is N."""
    number = np.bincount(site * num_classes + y)
    found: NDArray[np.float64] = 1.0 / number[site * num_classes + y]
    return found * (len(y) / found.sum())


def fit_sharpness(log_p: NDArray[np.floating], y: NDArray[np.int64], weights: NDArray[np.float64]) -> Fitted:
    """The s = 1/T with the smallest Σ w (log Σ_c p_c^s − s log p_y), by Newton's method in log s.

    The loss is convex in s. Its standard error is the robust one, as weights are not counts.

    >>> p = np.log(np.array([[0.9, 0.1]] * 4))
    >>> round(fit_sharpness(p, np.array([0, 0, 0, 1]), np.ones(4)).log_sharpness, 3)  # log 3 / log 9 = 0.5
    -0.693
    """
    log_p = np.asarray(log_p, np.float64)
    own = log_p[np.arange(len(y)), y]
    value = 0.0
    for _ in range(100):
        s = np.exp(value)
        p = softmax(s * log_p, axis=1)
        mean = (p * log_p).sum(1)
        score = s * weights * (mean - own)
        variance = (p * log_p**2).sum(1) - mean**2
        information = float(s * s * (weights * variance).sum())
        curvature = max(information + float(score.sum()), information, 1e-12)  # of log s, kept positive
        step = np.clip(float(score.sum()) / curvature, -1, 1)
        value = float(np.clip(value - step, -LARGEST, LARGEST))
        if abs(step) < 1e-8 or abs(value) == LARGEST:
            break
    return Fitted(value, float((score**2).sum()) / max(information, 1e-12) ** 2 if information > 1e-9 else np.inf)


def shrunk(sites: list[Fitted], common: float) -> list[float]:
    """Log sharpness of each site, drawn towards the common one as far as its error demands.

    The variance between sites is DerSimonian's and Laird's (1986): what the estimates differ by beyond their errors.

    >>> shrunk([Fitted(0.5, 1e-6), Fitted(-0.5, 1e-6), Fitted(3.0, np.inf)], common=0.0)[2]
    0.0
    """
    known = [(one.log_sharpness, 1 / max(one.squared_error, 1e-12)) for one in sites if np.isfinite(one.squared_error)]
    between = 0.0
    if len(known) > 1:
        values, precision = np.array(known).T
        centre = float(precision @ values / precision.sum())
        spread = float(precision @ (values - centre) ** 2) - (len(values) - 1)
        between = max(0.0, spread / float(precision.sum() - (precision**2).sum() / precision.sum()))
    share = [between / (between + one.squared_error) if between else 0.0 for one in sites]
    return [common + k * (one.log_sharpness - common) if k else common for k, one in zip(share, sites, strict=True)]


def fit_bias(
    log_p: NDArray[np.floating], y: NDArray[np.int64], weights: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Sharpness s and biases b (C,) with the smallest log loss of softmax(s log p + b), plus ½ |b|².

    Bias-corrected temperature scaling (Alexandari et al., 2020): without it, estimates of a prevalence are off by
    the model's own preference for some classes. Biases of classes without samples stay 0.
    """
    log_p = np.asarray(log_p, np.float64)
    rows = np.arange(len(y))
    target = np.bincount(y, weights, minlength=log_p.shape[1])

    def loss(free: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        s, b = np.exp(free[0]), free[1:]
        said = log_softmax(s * log_p + b, axis=1)
        p = np.exp(said)
        sharper = s * float(weights @ ((p * log_p).sum(1) - log_p[rows, y]))
        value = -float(weights @ said[rows, y]) + 0.5 * PENALTY * float(b @ b)
        return value, np.concatenate([[sharper], weights @ p - target + PENALTY * b])

    bounds = [(-LARGEST, LARGEST), *([(None, None) if n else (0.0, 0.0) for n in target])]
    found = minimize(loss, np.zeros(1 + len(target)), jac=True, method="L-BFGS-B", bounds=bounds)
    return float(np.exp(found.x[0])), found.x[1:]


def calibrate(
    unknown: NDArray[np.floating],
    known: NDArray[np.floating],
    y: NDArray[np.int64],
    site: NDArray[np.int64],
    sites: Sequence[str],
    seed: int = 0,
) -> Calibration:
    """From log probabilities (N, C) of held-out samples, without and with their site (N,) known.

    Every pair weighs the same, so the probabilities are for pairs that are equally frequent.
    """
    num_classes = unknown.shape[1]
    if not len(y):
        return Calibration.none(sites, num_classes)
    rows = np.arange(len(y))
    weights = balanced_weights(y, site, num_classes)
    if len(y) > MOST:
        rows = np.sort(np.random.default_rng(seed).choice(len(y), MOST, replace=False))
    y, site, weights = y[rows], site[rows], weights[rows]
    unknown, known = unknown[rows], known[rows]
    common = fit_sharpness(known, y, weights)
    own = [
        fit_sharpness(known[mine], y[mine], weights[mine]) if (mine := site == d).any() else Fitted(0.0, np.inf)
        for d in range(len(sites))
    ]
    corrected, bias = fit_bias(unknown, y, weights)
    return Calibration(
        sharpness=float(np.exp(fit_sharpness(unknown, y, weights).log_sharpness)),
        sites={name: float(np.exp(v)) for name, v in zip(sites, shrunk(own, common.log_sharpness), strict=True)},
        bias=bias.tolist(),
        corrected=corrected,
        samples=len(rows),
    )

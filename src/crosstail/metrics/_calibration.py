"""Temperature scaling, per site where its samples support it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.metrics._answers import Answers
from crosstail.metrics._link import in_place, training_shares, with_prior
from crosstail.metrics._temperature import LARGEST, kept_if_it_helps
from crosstail.pairs import pair_number

MOST = 30_000  # samples that parameters are fitted on, drawn at random from more
SCORES = 2**24  # most scores of these samples, which makes them fewer above 559 classes
MOST_CLASSES = 1_000  # with more, hardly any has enough samples to estimate its bias
PENALTY = 1.0  # of the squared biases, in samples
DRAWS = 40
CHUNK = 8192  # samples at a time, where only their answers are kept
Sharpness = Annotated[float, msgspec.Meta(gt=0, le=1e6)]


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """Scores become softmax(s log p + b): probabilities for equally frequent classes, to be multiplied by shares."""

    sharpness: Sharpness
    bias: list[float]

    def __call__(self, log_p: NDArray[np.floating]) -> NDArray[np.float32]:
        """Probabilities (N, C) where classes are equally frequent, corrected for the model's own preferences."""
        scores = np.asarray(log_p, np.float32) * np.float32(self.sharpness)
        scores += np.asarray(self.bias, np.float32)
        return in_place(scores)[0]


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """How the scores of a model become probabilities."""

    sharpness: Sharpness  # 1/T for samples of an unknown site
    sites: dict[str, Sharpness]  # 1/T for samples of a known site
    uniform: Correction  # fitted with all pairs weighted equally
    prevalence: Correction  # fitted where pairs are as frequent as in training: for the prevalence of a site
    plausible: list[Correction]  # draws of `prevalence` that reflect its uncertainty
    samples: int  # held-out samples that it was fitted on

    @classmethod
    def none(cls, sites: Sequence[str], num_classes: int) -> "Calibration":
        """Scores as they are, where there are no samples to calibrate on."""
        same = Correction(sharpness=1.0, bias=[0.0] * num_classes)
        return cls(
            sharpness=1.0, sites=dict.fromkeys(sites, 1.0), uniform=same, prevalence=same, plausible=[], samples=0
        )

    @property
    def corrections(self) -> list[Correction]:
        return [self.uniform, self.prevalence, *self.plausible]

    def sharpness_of(self, sites: Sequence[str]) -> NDArray[np.float32]:
        """1/T (D + 1,) of these sites; the last is for unknown ones."""
        return np.array([*(self.sites.get(name, self.sharpness) for name in sites), self.sharpness], np.float32)

    def probabilities(
        self, log_p: NDArray[np.floating], site: NDArray[np.int64] | int, sites: Sequence[str]
    ) -> NDArray[np.float32]:
        """Calibrated probabilities (N, C) of samples from these sites, by index; −1 is an unknown one."""
        sharpness = self.sharpness_of(sites)[np.broadcast_to(np.asarray(site), len(log_p))]
        return in_place(np.asarray(log_p, np.float32) * sharpness[:, None])[0]


def calibrated(answers: Answers, given: Calibration) -> Answers:
    """The answers with calibrated log probabilities, and those for the prevalence of training unless they have them.

    A model that is told the domain has a temperature for each.
    """
    site: NDArray[np.int64] | int = -1
    if answers.informed is None:
        return _calibrated(answers, given, site)
    informed = _calibrated(answers.informed, given, answers.domain)
    return replace(_calibrated(answers, given, site), informed=informed)


def _calibrated(answers: Answers, given: Calibration, site: NDArray[np.int64] | int) -> Answers:
    assert answers.log_p is not None
    p = given.probabilities(answers.log_p, site, answers.domains).astype(np.float64)
    with np.errstate(divide="ignore"):
        log_p = np.log(p)
    decided = answers.by_prevalence is not None
    answers = answers if decided else decided_by_prevalence(answers, given.prevalence)
    return replace(answers, log_p=log_p, true=log_p[np.arange(len(answers)), answers.y])


def decided_by_prevalence(answers: Answers, correction: Correction) -> Answers:
    """The answers with those for the prevalence of training at the site of each sample, from raw log probabilities."""
    assert answers.log_p is not None
    shares, said = training_shares(answers.counts), np.empty(len(answers), np.int64)
    for start in range(0, len(answers), CHUNK):
        rows = slice(start, start + CHUNK)
        said[rows] = with_prior(correction(answers.log_p[rows]), shares[answers.domain[rows]]).argmax(1)
    return replace(answers, by_prevalence=said)


def fit_prevalence(answers: Answers) -> Correction:
    """The correction for classes as frequent as in training at every site, fitted on these samples."""
    assert answers.log_p is not None
    counts, domain = answers.counts, answers.domain
    if not len(answers):
        return Correction(sharpness=1.0, bias=[0.0] * len(answers.classes))
    weights = sample_weights(answers.y, domain, counts)
    return fit_correction(answers.log_p, answers.y, weights, training_shares(counts)[domain])


def sample_weights(y: NDArray[np.int64], site: NDArray[np.int64], pairs: NDArray[np.number]) -> NDArray[np.float64]:
    """Weights (N,) with which every pair counts as much as the table (D, C) says; their sum is N."""
    number = np.bincount(pair_number(y, site, pairs.shape[1]), minlength=pairs.size).reshape(pairs.shape)
    found: NDArray[np.float64] = (pairs / number.clip(1))[site, y]
    return found * (len(y) / max(float(found.sum()), 1e-12))


def balanced_weights(y: NDArray[np.int64], site: NDArray[np.int64], num_classes: int) -> NDArray[np.float64]:
    """Weights (N,) with which every pair counts the same; their sum is N."""
    return sample_weights(y, site, np.ones((int(site.max(initial=0)) + 1, num_classes)))


def fit_correction(
    log_p: NDArray[np.floating],
    y: NDArray[np.int64],
    weights: NDArray[np.float64],
    shares: NDArray[np.floating] | float = 1.0,
) -> Correction:
    """The sharpness s and biases b (C,) with the smallest log loss of softmax(s log p + b + log shares), plus ½ |b|².

    Bias-corrected temperature scaling (Alexandari et al., 2020): without it, estimates of a prevalence are off by
    the model's own preference for some classes. Biases of classes without samples stay 0, and with more than
    MOST_CLASSES all of them. `shares` (N, C) are how frequent the classes are where each sample is from.
    """
    scores, classes = torch.from_numpy(np.asarray(log_p, np.float64)), torch.from_numpy(y)
    offset = torch.as_tensor(np.log(np.maximum(shares, 1e-12)))
    total = max(float(weights.sum()), 1e-12)
    share, penalty = torch.from_numpy(weights / total), PENALTY / total
    present = (torch.bincount(classes, minlength=scores.shape[1]) > 0) & (scores.shape[1] <= MOST_CLASSES)
    free = torch.zeros(1 + scores.shape[1], dtype=torch.float64)
    own = torch.arange(len(classes)), classes
    # Reused in every step: the optimizer's small tensors settle in the space of freed ones, and new ones go elsewhere,
    # which once took a gigabyte.
    shifted, slope = torch.empty_like(scores), torch.empty_like(scores)

    def parameters() -> tuple[Tensor, Tensor]:
        return (LARGEST * (free[0] / LARGEST).tanh()).exp(), free[1:] * present

    def loss() -> float:
        """The loss, with its gradient written out: autograd takes several times as long on so few numbers."""
        s, b = parameters()
        torch.mul(scores, s, out=shifted).add_(b).add_(offset)
        shifted.sub_(shifted.amax(1, keepdim=True))
        sums = torch.exp(shifted, out=slope).sum(1)
        slope.mul_((share / sums)[:, None])  # of the scores, (N, C)
        slope[own] -= share
        squashed = s * (1 - (free[0] / LARGEST).tanh() ** 2)  # derivative of s
        of_s = slope.flatten() @ scores.flatten() * squashed
        free.grad = torch.cat([of_s[None], (slope.sum(0) + penalty * b) * present])
        return float(0.5 * penalty * b @ b - share @ (shifted[own] - sums.log()))

    how: dict[str, Any] = {"max_iter": 200, "tolerance_grad": 1e-6, "tolerance_change": 1e-9}
    optimizer: Any = torch.optim.LBFGS([free], line_search_fn="strong_wolfe", **how)
    optimizer.step(loss)
    s, b = parameters()
    return Correction(sharpness=float(s), bias=b.tolist())


def plausible_corrections(
    best: Correction,
    log_p: NDArray[np.floating],
    weights: NDArray[np.float64],
    shares: NDArray[np.floating] | float,
    seed: int = 0,
) -> list[Correction]:
    """Draws from the normal distribution around the best correction that the curvature of its loss describes.

    The penalty acts as a standard normal prior: the bias of a class with few samples is hardly known.
    """
    scores = np.asarray(log_p, np.float32) * np.float32(best.sharpness)
    p, _ = in_place(scores + (np.array(best.bias) + np.log(np.maximum(shares, 1e-12))).astype(np.float32))
    scores -= (p * scores).sum(1, keepdims=True)
    weighted = weights.astype(np.float32)[:, None] * p
    fitted = len(best.bias) if len(best.bias) <= MOST_CLASSES else 0  # biases that are not 0 for certain
    curvature = np.diag(np.concatenate([[LARGEST**-2], weighted.sum(0)[:fitted] + PENALTY]))
    curvature[1:, 1:] -= (weighted.T @ p)[:fitted, :fitted] if fitted else 0.0
    curvature[0, 0] += float((weighted * scores**2).sum())
    curvature[0, 1:] = curvature[1:, 0] = (weighted * scores).sum(0)[:fitted]
    drawn = np.random.default_rng(seed).standard_normal((DRAWS, len(curvature)))
    moved = np.linalg.solve(np.linalg.cholesky(curvature).T, drawn.T).T
    sharp = np.exp(np.clip(np.log(best.sharpness) + moved[:, 0], -LARGEST, LARGEST))
    biases = np.tile(best.bias, (DRAWS, 1))
    biases[:, :fitted] += moved[:, 1:]
    return [Correction(sharpness=float(s), bias=b) for s, b in zip(sharp, biases.round(4).tolist(), strict=True)]


def calibrate(
    unknown: NDArray[np.floating],
    known: NDArray[np.floating],
    y: NDArray[np.int64],
    site: NDArray[np.int64],
    sites: Sequence[str],
    counts: NDArray[np.integer],
) -> Calibration:
    """From log probabilities (N, C) of held-out samples, without and with their site (N,) known.

    All pairs are weighted equally, so the probabilities are for equally frequent pairs; in `prevalence`, they are
    weighted by their number of training samples, `counts` (D, C).
    """
    num_classes = unknown.shape[1]
    if not len(y):
        return Calibration.none(sites, num_classes)
    rows = np.arange(len(y))
    weights, frequent = balanced_weights(y, site, num_classes), sample_weights(y, site, counts)
    most = min(MOST, max(1, SCORES // num_classes))
    if len(y) > most:
        rows = np.sort(np.random.default_rng(0).choice(len(y), most, replace=False))
    y, site, weights, frequent = y[rows], site[rows], weights[rows], frequent[rows]
    unknown, known, shares = unknown[rows], known[rows], training_shares(counts)[site]
    of_site, of_any = (
        kept_if_it_helps(p, y, of, weights, n)
        for p, of, n in ((known, site, len(sites)), (unknown, np.zeros_like(site), 1))
    )
    prevalence = fit_correction(known, y, frequent, shares)
    return Calibration(
        sharpness=of_any[0],
        sites=dict(zip(sites, of_site, strict=True)),
        uniform=fit_correction(known, y, weights),
        prevalence=prevalence,
        plausible=plausible_corrections(prevalence, known, frequent, shares),
        samples=len(rows),
    )

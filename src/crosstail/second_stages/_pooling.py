"""Pooled means as a classifier: statistics in one pass, and a choice of its parameters that needs no validation set."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.data.splits.groups import fold_of
from crosstail.losses import pooled_means
from crosstail.pairs import pair_number
from crosstail.second_stages._stage import PART, Features

RANK = 400  # principal components that are kept
FOLDS = 5
SAMPLE = 20_000  # most samples that are in memory at once, taken from every pair in turn
JUDGED = 5_000  # most of these that principal components and parameters are computed from
MANY = 5_000  # pairs above which parameters are judged on samples of one fold, fewer the more pairs there are
SCORES = 40_000_000  # most scores, and most numbers in the sums of all folds, that are in memory at once
NEVER = -1e4  # score of a class that no domain has training samples of


def rank_of(num_features: int, num_domains: int, num_classes: int) -> int:
    """How many principal components are kept; fewer with very many pairs, whose sums must fit into memory."""
    return min(num_features, RANK, max(16, SCORES // (FOLDS * num_domains * num_classes)))


def rooted(z: Tensor) -> Tensor:
    """Signed square root, scaled to a common length: activations with a long tail become closer to Gaussian."""
    z = z.sign() * z.abs().sqrt()
    return z * (z.shape[1] ** 0.5 / torch.linalg.vector_norm(z, dim=1, keepdim=True).clamp(min=1e-18))


def eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors; torch's library gives up on some matrices of low rank that NumPy's solves."""
    try:
        values, vectors = torch.linalg.eigh(matrix)
    except RuntimeError:  # LinAlgError
        values, vectors = map(torch.from_numpy, np.linalg.eigh(matrix.numpy()))
    return values, vectors


class Parameters(NamedTuple):
    """Parameters chosen by cross-validation; variances are in units of the variance within a pair."""

    shrinkage: Tensor  # λ of the covariance's eigenvalues
    domain: Tensor  # σ_a²
    label: Tensor  # σ_b²
    pair: Tensor  # τ²
    bonus: Tensor  # s, of uncertain pairs
    temperature: Tensor  # T

    @classmethod
    def of(cls, free: Tensor) -> "Parameters":
        """From six unbounded numbers; the search starts at zero."""
        shrinkage, bonus = torch.sigmoid(free[0] - 0.85), 1 + free[4]
        return cls(shrinkage, free[1].exp(), free[2].exp(), free[3].exp() / 8, bonus, free[5].exp() / 10)


class Statistics(NamedTuple):
    """Counts (P,) and means (P, R) of the pairs, the latter in the eigenbasis of the covariance within pairs."""

    counts: Tensor
    means: Tensor
    values: Tensor  # eigenvalues (R,)
    vectors: Tensor  # eigenvectors (R, R)

    def pooled(self, given: Parameters, shape: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
        """Eigenvalues of Σ (R,), posterior means (P, R) in features whitened by it, and their variances (D, C)."""
        shrunk = (1 - given.shrinkage) * self.values + given.shrinkage * self.values.mean()
        means, counts = (self.means / shrunk.sqrt()).view(*shape, -1), self.counts.view(shape)
        pooled, v = pooled_means(means, counts, domain=given.domain, label=given.label, pair=given.pair)
        return shrunk, pooled.reshape(len(self.means), -1), v

    def linear(self, given: Parameters, shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Weights (P, R), in the eigenbasis, and biases (P,) of a pair's score, which is linear in z:

            T (zᵀ Σ⁻¹ μ̂ − ½ μ̂ᵀ Σ⁻¹ μ̂ + ½ s v tr).

        Σ has the eigenvalues (1 − λ) e + λ ē; μ̂ and v are the posterior means and variances of `pooled_means`, in
        features whitened by Σ, and tr is the trace of their covariance. A sample of a pair whose mean is known scores
        ½ |μ|² on average, ½ v tr more than one whose mean is only estimated: the last term makes up for it.
        """
        shrunk, mu, v = self.pooled(given, shape)
        bias = 0.5 * given.bonus * v.reshape(-1) * (self.values / shrunk).sum() - 0.5 * (mu**2).sum(1)
        never = (self.counts.view(shape).sum(0) == 0).expand(shape).reshape(-1)
        return given.temperature * mu / shrunk.sqrt(), (given.temperature * bias).masked_fill(never, NEVER)


@dataclass(frozen=True, eq=False)
class Holdout:
    """Samples that are held out: those that are judged, and the statistics of training without any of them."""

    held: Tensor  # mask of the sample, judged or not
    z: Tensor  # (N, R), in the eigenbasis
    rows: Tensor  # (N,)
    y: Tensor
    domain: Tensor
    weights: Tensor  # all pairs are weighted equally
    statistics: Statistics

    def scores(self, given: Parameters, shape: tuple[int, int]) -> Tensor:
        """Scores of all pairs (N, D, C)."""
        weight, bias = self.statistics.linear(given, shape)
        return (self.z @ weight.T + bias).view(-1, *shape)


class Pooling:
    """The training features, projected, and the statistics that a classifier of pooled means needs."""

    def __init__(self, features: Features) -> None:
        num_features, *shape = features.sizes
        self.shape: tuple[int, int] = (shape[0], shape[1])
        pair = features.pair
        codes, self.present = pd.factorize(pair)  # in the order of the samples, so that names do not matter
        groups = len(codes) if features.group is None else len(np.unique(features.group))
        folds = min(FOLDS, groups)  # fewer if there are too few groups, which stay whole
        self.fold = fold_of(codes, features.group, folds, features.seed)
        self.rows = rows = _in_turns(codes, SAMPLE, features.seed)
        cells = shape[0] * shape[1]
        self.many = cells > MANY
        self.judged = min(len(rows), JUDGED, max(100, SCORES // 16 // cells) if self.many else SCORES // cells)
        sample = torch.from_numpy(features.z[rows])
        self.rooted = bool((sample >= 0).all())
        sample = self.prepared(sample)
        self.center = sample.mean(0, dtype=torch.float64).float()
        few = sample[: max(self.judged, num_features)] - self.center
        _, vectors = eigen((few.T @ few).double())
        self.basis = vectors[:, -rank_of(num_features, *self.shape) :].flip(1).float()
        self.z = self.projected(sample)
        left = num_features - self.basis.shape[1]  # components that are not kept: their mean variance
        total = ((sample - self.center) ** 2).sum(1, dtype=torch.float64)
        self.rest = float((total - (self.z**2).sum(1)).clamp(min=0).mean()) / left if left else 0.0
        self.y, self.domain = torch.from_numpy(features.y[rows]), torch.from_numpy(features.domain[rows])
        self._accumulate(features, pair, folds)
        self.whole = self.statistics()

    def prepared(self, z: Tensor) -> Tensor:
        """Features before they are projected: non-negative ones are rooted."""
        return rooted(z) if self.rooted else z

    def projected(self, prepared: Tensor) -> Tensor:
        """Centred principal components (N, R) as the head computes them, for sums in float64."""
        return ((prepared - self.center) @ self.basis).double()

    def _accumulate(self, features: Features, pair: NDArray[np.int64], folds: int) -> None:
        cells, rank = self.shape[0] * self.shape[1], self.basis.shape[1]
        self.counts = torch.zeros(folds, cells, dtype=torch.float64)
        self.sums = torch.zeros(folds, cells, rank, dtype=torch.float64)
        self.moments = torch.zeros(folds, rank, rank, dtype=torch.float64)
        for part, z in self._parts(features):
            fold, of = torch.from_numpy(self.fold[part]), torch.from_numpy(pair[part])
            for k in range(folds):
                own = torch.nonzero(fold == k)[:, 0]
                mine = z[own]
                self.counts[k] += torch.bincount(of[own], minlength=cells)
                self.sums[k].index_add_(0, of[own], mine)
                self.moments[k] += mine.T @ mine

    def _parts(self, features: Features) -> Iterator[tuple[NDArray[np.int64] | slice, Tensor]]:
        if len(self.rows) == len(features.y):
            yield self.rows, self.z
            return
        for start in range(0, len(features.y), PART):
            part = slice(start, start + PART)
            yield part, self.projected(self.prepared(torch.from_numpy(features.z[part])))

    def statistics(self, without: int | None = None) -> Statistics:
        """Statistics of all samples, or of all but one fold."""
        keep = [k for k in range(len(self.counts)) if k != without]
        n, sums = self.counts[keep].sum(0), self.sums[keep].sum(0)
        means = sums / n.clamp(min=1)[:, None]
        scatter, freedom = self.moments[keep].sum(0), float(n.sum() - (n > 0).sum())
        if freedom > 0:
            scatter -= means.T @ (n[:, None] * means)
        else:  # without two samples of any pair, the covariance is over all samples
            freedom = float(n.sum())
        values, vectors = eigen(scatter / freedom)
        values = values.clamp(min=0)
        if not values.sum() > 0:  # constant features
            values = torch.ones_like(values)
        return Statistics(n, means @ vectors, values, vectors)

    def _holdout(self, held: Tensor, statistics: Statistics, weight: float = 1.0) -> Holdout:
        """From a mask (N,) of the sample; samples of a class that is left without training samples are not judged."""
        learnt = statistics.counts.view(self.shape).sum(0) > 0
        among = slice(None if self.many else self.judged)  # else all folds together have as many
        rows = torch.nonzero((held & learnt[self.y])[among])[: self.judged, 0]
        pair = pair_number(self.y, self.domain, self.shape[1])
        weights = weight / torch.bincount(pair[rows if self.many else among])[pair[rows]].double()
        return Holdout(
            held, self.z[rows] @ statistics.vectors, rows, self.y[rows], self.domain[rows], weights, statistics
        )

    def folds(self) -> Iterator[Holdout]:
        """Fold after fold, each with samples of every pair; none if there are too few."""
        for k in range(len(self.counts)) if len(self.counts) > 1 else ():
            yield self._holdout(torch.from_numpy(self.fold[self.rows] == k), self.statistics(without=k))

    def domains(self) -> Iterator[Holdout]:
        """Each domain in turn, held out whole, as when the model meets a new one; none if there are fewer than two."""
        present = self.counts.sum(0).view(self.shape).sum(1) > 0
        for d in torch.nonzero(present)[:, 0] if present.sum() > 1 else ():
            mask = torch.zeros(self.shape, dtype=torch.bool)
            mask[d] = True
            yield self._without_pairs(mask.view(-1), 1.0)

    def absent(self, seed: int) -> Iterator[Holdout]:
        """Each fifth of the pairs in turn, held out whole, if the data lack pairs; weighted by how many are lacking.

        A class always keeps a domain.
        """
        n = self.counts.sum(0)
        lacking = len(n) - len(self.present)
        order = np.random.default_rng(seed).permutation(self.present)
        for k in range(FOLDS) if lacking else ():
            mask = torch.zeros(len(n), dtype=torch.bool)
            mask[torch.from_numpy(order[k::FOLDS])] = True
            left = torch.where(mask, 0, n).view(self.shape).sum(0) > 0
            mask &= left.expand(self.shape).reshape(-1)
            if mask.any():
                yield self._without_pairs(mask, lacking / len(self.present))

    def _without_pairs(self, mask: Tensor, weight: float) -> Holdout:
        counts = torch.where(mask, 0, self.whole.counts)
        return self._holdout(
            mask[pair_number(self.y, self.domain, self.shape[1])], self.whole._replace(counts=counts), weight
        )

    def choose(self, holdouts: list[Holdout]) -> Parameters:
        """The parameters with the smallest log loss on samples that are held out, all pairs weighted equally."""
        free = torch.zeros(6, dtype=torch.float64, requires_grad=True)
        total = sum(float(held.weights.sum()) for held in holdouts)
        if not total:
            return Parameters.of(free.detach())

        def terms() -> Iterator[Tensor]:
            yield 1e-4 * (free**2).sum()  # keeps parameters in place that make no difference
            for held in holdouts:
                scores = held.scores(Parameters.of(free), self.shape).logsumexp(1)  # the domain is unknown
                yield log_loss(scores, held.y, held.weights) / total

        minimise(terms, [free], max_iter=30, tolerance_change=1e-4)
        return Parameters.of(free.detach())


def minimise(terms: Callable[[], Iterable[Tensor]], variables: list[Tensor], **options: Any) -> None:
    """Minimise the sum of some terms by L-BFGS, one term in memory at a time; scipy, which has it too, loads slowly.

    Where it ends in an overflow or higher than it began, as on a few samples that are separated perfectly, the
    variables stay what they were.
    """
    before = [variable.detach().clone() for variable in variables]
    optimizer: Any = torch.optim.LBFGS(variables, line_search_fn="strong_wolfe", **options)

    def loss() -> float:
        optimizer.zero_grad()
        value = 0.0
        for term in terms():
            torch.autograd.backward(term)
            value += float(term.detach())
        return value

    began = float(optimizer.step(loss))
    with torch.no_grad():
        if not sum(map(float, terms())) <= began:  # so also if it is NaN
            for variable, value in zip(variables, before, strict=True):
                variable.copy_(value)


def log_loss(scores: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """Weighted sum of −log softmax(scores)[y]."""
    return weights @ (scores.logsumexp(1) - scores.gather(1, y[:, None])[:, 0])


def _in_turns(pair: NDArray[np.int64], most: int, seed: int) -> NDArray[np.int64]:
    shuffled = np.random.default_rng(seed).permutation(len(pair))
    order = shuffled[np.argsort(pair[shuffled], kind="stable")]
    sizes = np.bincount(pair)
    turn = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[np.argsort(turn, kind="stable")[:most]]

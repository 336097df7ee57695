"""The domain-class transferability graph and its statistics α, β, γ (definitions 1 to 3 and 4 of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.losses.distances import LowRankPrecision, Precision, pair_distances
from crosstail.losses.statistics import Covariance, PairStatistics
from crosstail.transfer.layout import planar_layout

Metric = Literal["euclidean", "mahalanobis"]


class TransferStatistics(NamedTuple):
    """Mean transferability (a distance) between pairs that share the class (α), the domain (β), or neither (γ)."""

    alpha: float
    beta: float
    gamma: float

    @property
    def separation(self) -> float:
        """(β + γ) − α, which the paper finds to correlate with accuracy."""
        return self.beta + self.gamma - self.alpha


@dataclass(frozen=True, eq=False)
class TransferabilityGraph:
    """trans((d, c), (d′, c′)): mean distance of the features of (d, c) to the centroid of (d′, c′), over present pairs.

    >>> z, y, domain = torch.tensor([[0.0], [1.0], [4.0]]), torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])
    >>> graph = TransferabilityGraph.from_features(z, y, domain, num_domains=2, num_classes=2)
    >>> graph.pairs.tolist()
    [[0, 0], [1, 0], [1, 1]]
    >>> graph.matrix.tolist()
    [[0.0, 1.0, 4.0], [1.0, 0.0, 3.0], [4.0, 3.0, 0.0]]
    """

    matrix: NDArray[np.float64]  # (P, P), trans(row pair → column pair)
    pairs: NDArray[np.int64]  # (P, 2), domain and class
    counts: NDArray[np.int64]  # (D, C), samples of each pair

    @classmethod
    def from_features(
        cls,
        z: Tensor | NDArray[Any],
        y: Tensor | NDArray[Any],
        domain: Tensor | NDArray[Any],
        *,
        num_domains: int,
        num_classes: int,
        metric: Metric = "euclidean",
        chunk: int = 8192,
    ) -> "TransferabilityGraph":
        """Two passes over features (N, F), `chunk` rows at a time: memory is O(P·F + P² + chunk·(F + P)).

        The Mahalanobis metric uses the shrunk diagonal covariance of each column pair. For features that are computed
        chunk by chunk, use `GraphBuilder`.
        """
        if len(z) == 0:
            raise ValueError("no features: a transferability graph needs at least one sample")
        if z.ndim != 2:
            raise ValueError(f"features have shape {tuple(z.shape)}, expected (N, F)")
        y, domain = _indices("y", y, len(z), num_classes), _indices("domain", domain, len(z), num_domains)
        builder = GraphBuilder(num_domains, num_classes, z.shape[1], metric)
        chunks = [slice(i, i + chunk) for i in range(0, len(z), chunk)]
        for rows in chunks:
            builder.add_to_means(z[rows], y[rows], domain[rows])
        for rows in chunks:
            builder.add_edges(z[rows], y[rows], domain[rows])
        return builder.graph()

    @property
    def statistics(self) -> TransferStatistics:
        """α, β, γ of definition 3; NaN where no two such pairs exist."""
        return self._summarise(np.ones_like(self.matrix))

    def calibrated_statistics(self, counts: NDArray[Any] | Tensor | None = None, nu: float = 1.0) -> TransferStatistics:
        """α̃, β̃, γ̃ of definition 4: every edge times λ = (N′ / N)^ν, the ratio of its pairs' training counts."""
        table = np.asarray(self.counts if counts is None else counts, dtype=np.float64)
        n = table[self.pairs[:, 0], self.pairs[:, 1]]
        if (n <= 0).any():
            d, c = self.pairs[int(np.argmax(n <= 0))]
            raise ValueError(f"pair (domain {d}, class {c}) has features but a count of 0: λ is not defined for it")
        return self._summarise((n[None, :] / n[:, None]) ** nu)

    def _summarise(self, weight: NDArray[np.float64]) -> TransferStatistics:
        # Only domains and classes with pairs: the graph may be that of a few out of many.
        (num_domains, d), (num_classes, c) = (
            (len(used), number) for used, number in (np.unique(axis, return_inverse=True) for axis in self.pairs.T)
        )
        edges = np.full((num_domains, num_classes) * 2, np.nan)  # (D, C, D′, C′), NaN where a pair is absent
        edges[d[:, None], c[:, None], d, c] = self.matrix * weight
        same_domain, same_class = np.eye(num_domains) > 0, np.eye(num_classes) > 0
        # Nested expectations, innermost first; they differ from one flat mean only where pairs are absent.
        across = np.where(same_domain[:, None, :], np.nan, np.einsum("dcec->dce", edges))
        alpha = _expect(across, 2, 0, 0)
        within = np.where(same_class[None, :, :], np.nan, np.einsum("dcdf->dcf", edges))
        beta = _expect(within, 2, 1, 0)
        edges[same_domain[:, None, :, None] | same_class[None, :, None, :]] = np.nan
        gamma = _expect(edges, 3, 1, 1, 0)
        return TransferStatistics(alpha, beta, gamma)

    def layout(self) -> NDArray[np.float64]:
        """Coordinates (P, 2) of the pairs, by multidimensional scaling."""
        return planar_layout(self.matrix)

    def to_frame(self, domains: Sequence[str] | None = None, classes: Sequence[str] | None = None) -> pd.DataFrame:
        """One row per edge: from_domain, from_class, to_domain, to_class, transferability."""
        names = self._names(domains, classes)
        size = len(self.pairs)
        columns = {f"from_{kind}": np.repeat(own, size) for kind, own in names.items()}
        columns |= {f"to_{kind}": np.tile(own, size) for kind, own in names.items()}
        return pd.DataFrame(columns | {"transferability": self.matrix.ravel()})

    def nodes(self, domains: Sequence[str] | None = None, classes: Sequence[str] | None = None) -> pd.DataFrame:
        """One row per pair: domain, class, count, and coordinates x, y."""
        x, y = self.layout().T
        count = self.counts[self.pairs[:, 0], self.pairs[:, 1]]
        return pd.DataFrame(self._names(domains, classes) | {"count": count, "x": x, "y": y})

    def _names(self, domains: Sequence[str] | None, classes: Sequence[str] | None) -> dict[str, NDArray[Any]]:
        """Domain and class of every pair, by name or, without names, by number."""
        given = {"domain": domains, "class": classes}
        sizes = zip(given.values(), self.counts.shape, strict=True)
        tables = [np.asarray(names or [str(i) for i in range(size)]) for names, size in sizes]
        return {kind: table[i] for kind, table, i in zip(given, tables, self.pairs.T, strict=True)}


class GraphBuilder:
    """Builds a graph in two passes over the features: first the means of all pairs, then the distances to them."""

    def __init__(self, num_domains: int, num_classes: int, num_features: int, metric: Metric = "euclidean") -> None:
        if metric not in get_args(Metric):
            raise ValueError(f"metric {metric!r} is none of {', '.join(get_args(Metric))}")
        self._metric, self._seen = metric, 0
        covariance: Covariance = "none" if metric == "euclidean" else "diagonal"
        self._statistics = PairStatistics(num_domains, num_classes, num_features, covariance)
        self._total: Tensor | None = None  # (P, P) sums of distances

    def add_to_means(self, z: Tensor | NDArray[Any], y: Tensor, domain: Tensor) -> None:
        """First pass: a chunk of features (B, F) with classes and domains (B,)."""
        part = _tensor(z, torch.float32)
        if not bool(torch.isfinite(part).all()):
            wrong = self._seen + int((~torch.isfinite(part)).any(1).nonzero()[0])
            raise ValueError(f"features of sample {wrong} are NaN or infinite")
        self._statistics.update(part, y, domain)
        self._seen += len(part)

    def add_edges(self, z: Tensor | NDArray[Any], y: Tensor, domain: Tensor) -> None:
        """Second pass over the same samples."""
        if self._total is None:
            self._fix_means()
            assert self._total is not None
        distances = pair_distances(_tensor(z, torch.float32), self._centroids, self._precision)
        # Sums of one chunk are short enough for float32; the sum over chunks is kept in float64.
        self._total += torch.zeros(self._total.shape).index_add_(0, self._column[domain, y], distances)

    def _fix_means(self) -> None:
        statistics = self._statistics
        self._present = statistics.counts.view(-1) > 0
        self._centroids = statistics.mean.view(len(self._present), -1)[self._present]
        self._precision: Precision | None = None
        if self._metric == "mahalanobis":
            precision = statistics.precision()
            assert not isinstance(precision, LowRankPrecision)
            self._precision = precision.view(len(self._present), -1)[self._present]
        self._column = (self._present.cumsum(0) - 1).view(statistics.counts.shape)
        num_pairs = len(self._centroids)
        self._total = torch.zeros(num_pairs, num_pairs, dtype=torch.float64)

    def graph(self) -> TransferabilityGraph:
        """The graph, after both passes."""
        assert self._total is not None, "add_edges comes first"
        counts = self._statistics.counts
        matrix = self._total / counts.view(-1)[self._present][:, None]
        pairs = self._present.view(counts.shape).nonzero()
        return TransferabilityGraph(matrix.numpy(), pairs.numpy(), counts.numpy())


def _tensor(values: Tensor | NDArray[Any], dtype: torch.dtype) -> Tensor:
    """A detached tensor on the CPU; arrays are copied, as they may be read-only (memory-mapped)."""
    return values.detach().to("cpu", dtype) if isinstance(values, Tensor) else torch.tensor(values, dtype=dtype)


def _indices(name: str, values: Tensor | NDArray[Any], length: int, size: int) -> Tensor:
    """Labels (N,) from 0 to size − 1; a class out of range would count for another domain."""
    found = _tensor(values, torch.int64)
    if found.shape != (length,):
        raise ValueError(f"{name} has shape {tuple(found.shape)}, expected ({length},), one per row of features")
    wrong = ((found < 0) | (found >= size)).nonzero()
    if len(wrong):
        raise ValueError(f"{name} of sample {int(wrong[0])} is {int(found[wrong[0]])}, expected 0 to {size - 1}")
    return found


def _expect(values: NDArray[np.float64], *axes: int) -> float:
    """Means over one axis after another, ignoring NaN; NaN where there is nothing else."""
    for axis in axes:
        known = ~np.isnan(values)
        number = known.sum(axis)
        values = np.where(number > 0, np.where(known, values, 0.0).sum(axis) / np.maximum(number, 1), np.nan)
    return float(values)

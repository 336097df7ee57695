"""The domain-class transferability graph and its statistics α, β, γ (definitions 1 to 3 and 4 of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.losses.distances import LowRankPrecision, Precision, pair_distances
from crosstail.losses.statistics import Covariance, PairStatistics
from crosstail.transfer.layout import planar_layout
from crosstail.transfer.statistics import Estimate, SampledStatistics, TransferStatistics, exact_statistics

Distance = Literal["euclidean", "mahalanobis"]


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
    estimate: Estimate | None = None  # α, β, γ of all pairs, if the matrix has only some

    @classmethod
    def from_features(
        cls,
        z: Tensor | NDArray[Any],
        y: Tensor | NDArray[Any],
        domain: Tensor | NDArray[Any],
        *,
        num_domains: int,
        num_classes: int,
        metric: Distance = "euclidean",
        chunk: int = 8192,
        most_pairs: int | None = None,
    ) -> "TransferabilityGraph":
        """Two passes over features (N, F), `chunk` rows at a time: memory is O(P·F + P² + chunk·(F + P)).

        With more than `most_pairs`, the matrix has classes drawn at random, and α, β, γ are estimated from all
        samples (`SampledStatistics`). The Mahalanobis metric uses the shrunk diagonal covariance of each column pair.
        For features that are computed chunk by chunk, use `GraphBuilder`.
        """
        if len(z) == 0:
            raise ValueError("no features: a transferability graph needs at least one sample")
        if z.ndim != 2:
            raise ValueError(f"features have shape {tuple(z.shape)}, expected (N, F)")
        y, domain = _indices("y", y, len(z), num_classes), _indices("domain", domain, len(z), num_domains)
        builder = GraphBuilder(num_domains, num_classes, z.shape[1], metric, most_pairs)
        chunks = [slice(i, i + chunk) for i in range(0, len(z), chunk)]
        for rows in chunks:
            builder.add_to_means(z[rows], y[rows], domain[rows])
        for rows in chunks:
            builder.add_edges(z[rows], y[rows], domain[rows])
        return builder.graph()

    @property
    def statistics(self) -> TransferStatistics:
        """α, β, γ of definition 3; NaN where no two such pairs exist."""
        return self.estimate.statistics if self.estimate else exact_statistics(self.matrix, self.pairs)

    @property
    def standard_errors(self) -> TransferStatistics | None:
        """Standard errors of α, β and γ, if they are estimated."""
        return self.estimate.errors if self.estimate else None

    def calibrated_statistics(self, counts: NDArray[Any] | Tensor | None = None, nu: float = 1.0) -> TransferStatistics:
        """α̃, β̃, γ̃ of definition 4: every edge times λ = (N′ / N)^ν, the ratio of its pairs' training counts."""
        table = np.asarray(self.counts if counts is None else counts, dtype=np.float64)
        n = table[self.pairs[:, 0], self.pairs[:, 1]]
        if (n <= 0).any():
            d, c = self.pairs[int(np.argmax(n <= 0))]
            raise ValueError(f"pair (domain {d}, class {c}) has features but a count of 0: λ is not defined for it")
        return exact_statistics(self.matrix * (n[None, :] / n[:, None]) ** nu, self.pairs)

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
        given = {"domain": domains, "class": classes}
        sizes = zip(given.values(), self.counts.shape, strict=True)
        tables = [np.asarray(names or [str(i) for i in range(size)]) for names, size in sizes]
        return {kind: table[i] for kind, table, i in zip(given, tables, self.pairs.T, strict=True)}


class GraphBuilder:
    """Builds a graph in two passes over the features: first the means of all pairs, then the distances to them."""

    def __init__(
        self,
        num_domains: int,
        num_classes: int,
        num_features: int,
        metric: Distance = "euclidean",
        most_pairs: int | None = None,
    ) -> None:
        if metric not in get_args(Distance):
            raise ValueError(f"metric {metric!r} is not one of {', '.join(get_args(Distance))}")
        self._metric, self._seen, self._most_pairs = metric, 0, most_pairs
        covariance: Covariance = "none" if metric == "euclidean" else "diagonal"
        self._statistics = PairStatistics(num_domains, num_classes, num_features, covariance)
        self._total: Tensor | None = None  # (P, P) sums of distances
        self._sampled: SampledStatistics | None = None

    def add_to_means(self, z: Tensor | NDArray[Any], y: Tensor, domain: Tensor) -> None:
        """First pass: a chunk of features (B, F) with classes and domains (B,)."""
        part = _tensor(z, torch.float32)
        if not bool(torch.isfinite(part).all()):
            wrong = self._seen + int((~torch.isfinite(part)).any(1).nonzero()[0])
            raise ValueError(f"features of sample {wrong} are NaN or infinite")
        self._statistics.update(part, y, domain)
        self._seen += len(part)

    def add_edges(self, z: Tensor | NDArray[Any], y: Tensor, domain: Tensor) -> None:
        if self._total is None:
            counts = self._statistics.counts
            self._choose(counts > 0)
            if self._most_pairs is not None and len(self._centroids) > self._most_pairs:
                self._sampled = SampledStatistics(counts.numpy(), self._centroids, self._precision)
                self._choose(_drawn_pairs(counts > 0, self._most_pairs))
            self._total = torch.zeros(len(self._centroids), len(self._centroids), dtype=torch.float64)
        part = _tensor(z, torch.float32)
        if self._sampled:
            self._sampled.add(part, y.numpy(), domain.numpy())
            kept = self._pairs[domain, y]
            part, y, domain = part[kept], y[kept], domain[kept]
        distances = pair_distances(part, self._centroids, self._precision)
        # Sums of one chunk are short enough for float32; the sum over chunks is kept in float64.
        self._total += distances.new_zeros(self._total.shape).index_add_(0, self._column[domain, y], distances)

    def _choose(self, pairs: Tensor) -> None:
        self._pairs, at = pairs, pairs.flatten().nonzero()[:, 0]
        self._centroids = self._statistics.mean.flatten(0, 1)[at]
        self._precision: Precision | None = None
        if self._metric == "mahalanobis":
            precision = self._statistics.precision()
            assert not isinstance(precision, LowRankPrecision)
            self._precision = precision.flatten(0, 1)[at]
        self._column = (pairs.flatten().cumsum(0) - 1).view(pairs.shape)

    def graph(self) -> TransferabilityGraph:
        """The graph, after both passes."""
        assert self._total is not None, "add_edges comes first"
        counts = self._statistics.counts
        matrix = self._total / counts[self._pairs][:, None]
        estimate = self._sampled.estimate() if self._sampled else None
        return TransferabilityGraph(matrix.numpy(), self._pairs.nonzero().numpy(), counts.numpy(), estimate)


def _drawn_pairs(present: Tensor, most: int) -> Tensor:
    """At most that many of the pairs (D, C): of random classes in all domains, or in some if they are too many."""
    random = np.random.default_rng(0)
    for axis in (0, 1):
        number = present.sum(axis).numpy()  # of pairs in each class, then in each domain
        order = random.permutation(np.flatnonzero(number))
        kept = order[: max(2, int(np.searchsorted(number[order].cumsum(), most, side="right")))]
        chosen = torch.from_numpy(np.isin(np.arange(len(number)), kept))
        present = present & (chosen if axis == 0 else chosen[:, None])
    return present


def _tensor(values: Tensor | NDArray[Any], dtype: torch.dtype) -> Tensor:
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

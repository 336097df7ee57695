"""The same input twice: in two classes a label is wrong, in two splits the test set leaks into training."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from crosstail.data.dataset import DomainDataset
from crosstail.data.images.files import ImageFiles
from crosstail.data.images.same_content import equal
from crosstail.report.audit.inputs import Report, chunks, digest

ALIKE = 0.995  # of product photos, the same one recoloured or re-encoded lies above, another object below
SLACK = 0.005  # how much lower the correlation may be at a quarter of the pixels
BLOCK = 1024


@dataclass(frozen=True)
class Sample:
    """Which input it is, and what the data set says of it."""

    row: int
    name: str  # a file's path, or the row
    domain: str
    class_: str
    split: str


@dataclass(frozen=True)
class Duplicate:
    """Samples with the same content (`exact`), or pictures that look alike."""

    samples: tuple[Sample, ...]
    exact: bool

    @property
    def across(self) -> tuple[str, ...]:
        """In what the samples differ: any of "class", "split" and "domain"."""
        values = {
            "class": {sample.class_ for sample in self.samples},
            "split": {sample.split for sample in self.samples},
            "domain": {sample.domain for sample in self.samples},
        }
        return tuple(what for what, found in values.items() if len(found) > 1)


def equal_rows(x: Any, progress: Report) -> list[list[int]]:
    """Groups of rows of an array with the same bytes."""
    hashes: list[bytes] = []
    for rows in chunks(len(x)):
        hashes += map(digest, np.asarray(x[rows]))
        progress("comparing", len(hashes), len(x))
    return equal(enumerate(hashes))


def alike(thumbnails: NDArray[np.uint8], progress: Report, threshold: float = ALIKE) -> list[list[int]]:
    """Groups of images whose grey thumbnails (N, 32, 32) correlate by `threshold` or more, directly or over others.

    All are compared with all at a quarter of the pixels, which alike images pass as well; then those that did.
    Images of one grey are like nothing.
    """
    n, height, width = thumbnails.shape
    fine = _standardised(thumbnails)
    coarse = _standardised(thumbnails.reshape(n, height // 2, 2, width // 2, 2).mean(axis=(2, 4), dtype=np.float32))
    found = [np.zeros((2, 0), np.int64)]
    for start in range(0, n, BLOCK):
        candidates = np.triu(coarse[start : start + BLOCK] @ coarse[start:].T >= threshold - SLACK, 1)
        pairs = np.stack(np.nonzero(candidates)) + start
        pieces = np.array_split(pairs, len(pairs[0]) // BLOCK + 1, axis=1)
        found += (piece[:, np.einsum("ij,ij->i", *fine[piece]) >= threshold] for piece in pieces)
        progress("looking for images that are alike", min(start + BLOCK, n), n)
    one, other = np.concatenate(found, axis=1)
    graph = coo_array((np.ones(len(one), np.bool_), (one, other)), shape=(n, n))
    _, component = connected_components(graph, directed=False)
    return equal(enumerate(component.tolist()))


def _standardised(images: NDArray[Any]) -> NDArray[np.float32]:
    """Each image (N, H, W) with mean 0 and length 1, (N, H * W); 0 where the contrast is below two grey levels."""
    z = images.reshape(len(images), images.shape[1] * images.shape[2]).astype(np.float32)
    z -= z.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(z, axis=1, keepdims=True)
    return np.divide(z, norm, out=np.zeros_like(z), where=norm > 2 * np.sqrt(z.shape[1]))


def describe(groups: Iterable[Sequence[int]], dataset: DomainDataset, *, exact: bool) -> list[Duplicate]:
    """Say what the rows of each group are; groups that differ in class come first, then those in split."""
    found = [Duplicate(_unlike_first([_sample(dataset, row) for row in group]), exact) for group in groups]
    return sorted(found, key=lambda duplicate: ["class" not in duplicate.across, "split" not in duplicate.across])


def _unlike_first(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """One of each (domain, class, split) before the second of any, so that the first few show the problem."""
    seen: dict[Hashable, int] = defaultdict(int)
    ranked = []
    for sample in samples:
        kind = sample.domain, sample.class_, sample.split
        ranked.append((seen[kind], sample))
        seen[kind] += 1
    return tuple(sample for _, sample in sorted(ranked, key=lambda pair: pair[0]))


def _sample(dataset: DomainDataset, row: int) -> Sample:
    return Sample(
        row=row,
        name=row_names(dataset, np.array([row]))[0],
        domain=dataset.domains[dataset.domain[row]],
        class_=dataset.classes[dataset.y[row]],
        split=str(dataset.split[row]),
    )


def row_names(dataset: DomainDataset, rows: NDArray[np.int64]) -> list[str]:
    """The files' paths as the source has them, or "row 7"."""
    x = dataset.x
    return x.paths(rows) if isinstance(x, ImageFiles) else [f"row {row}" for row in rows]

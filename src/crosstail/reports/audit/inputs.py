"""Facts about the inputs: sizes and modes of images, width and validity of embeddings."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosstail.data.dataset import DomainDataset
from crosstail.data.inputs._examined import Examined, reason

_ROWS = 4096  # embeddings read at a time


@dataclass(frozen=True)
class ImageSummary:
    """Images of one domain, or of all; sizes are (width, height), ranked by area."""

    images: int
    smallest: tuple[int, int]
    median: tuple[int, int]
    largest: tuple[int, int]
    modes: dict[str, int]
    formats: dict[str, int]


@dataclass(frozen=True, eq=False)
class ImageInputs:
    """Facts about images; `broken` ones are excluded from the summaries."""

    overall: ImageSummary
    per_domain: tuple[ImageSummary, ...]
    broken: tuple[tuple[str, str], ...]  # name and reason
    blank: tuple[str, ...]  # images of a single colour


@dataclass(frozen=True, eq=False)
class EmbeddingInputs:
    """Facts about embeddings; norms are of the finite rows."""

    width: int
    dtype: str
    not_finite: tuple[int, ...]  # rows with a NaN or infinite value
    constant: tuple[int, ...]  # features with the same value in every row
    norms: tuple[float, float, float]  # smallest, median, largest


def image_inputs(dataset: DomainDataset, examined: Examined) -> ImageInputs:
    """Facts about images that were examined."""
    rows = [np.flatnonzero(dataset.domain == d).tolist() for d in range(dataset.num_domains)]
    names, broken = dataset.names(), sorted(examined.errors.items())
    return ImageInputs(
        overall=_summary(examined, range(len(dataset))),
        per_domain=tuple(_summary(examined, own) for own in rows),
        broken=tuple((names[row], reason(error)) for row, error in broken),
        blank=tuple(name for name, look in zip(names, examined.looks, strict=True) if look.blank),
    )


def _summary(examined: Examined, rows: Iterable[int]) -> ImageSummary:
    valid = [examined.looks[row] for row in rows if row not in examined.errors]
    sizes = sorted((image.size for image in valid), key=lambda size: (size[0] * size[1], size)) or [(0, 0)]
    return ImageSummary(
        images=len(valid),
        smallest=sizes[0],
        median=sizes[(len(sizes) - 1) // 2],
        largest=sizes[-1],
        modes=dict(Counter(image.mode for image in valid).most_common()),
        formats=dict(Counter(image.format for image in valid).most_common()),
    )


def read_embeddings(x: Any) -> EmbeddingInputs:
    """Facts about embeddings (N, F), or other numbers (N, ...)."""
    width = int(np.prod(x.shape[1:]))
    lowest, highest = np.full(width, np.inf), np.full(width, -np.inf)
    norms, wrong = [np.zeros(0)], [np.zeros(0, np.int64)]
    for start in range(0, len(x), _ROWS):
        rows = np.arange(start, min(start + _ROWS, len(x)))
        values = np.asarray(x[rows], np.float64).reshape(len(rows), width)
        finite = np.isfinite(values).all(axis=1)
        wrong.append(rows[~finite])
        norms.append(np.linalg.norm(values[finite], axis=1))
        lowest = np.minimum(lowest, values[finite].min(axis=0, initial=np.inf))
        highest = np.maximum(highest, values[finite].max(axis=0, initial=-np.inf))
    norm = np.concatenate(norms) if sum(map(len, norms)) else np.zeros(1)
    return EmbeddingInputs(
        width=width,
        dtype=str(x.dtype),
        not_finite=tuple(np.concatenate(wrong).tolist()),
        constant=tuple(np.flatnonzero(lowest == highest).tolist()),
        norms=(float(norm.min()), float(np.median(norm)), float(norm.max())),
    )

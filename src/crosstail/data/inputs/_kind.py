"""What a kind of input says about itself."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.data.inputs._examined import Examined
from crosstail.data.inputs._hashes import hashes_of_rows
from crosstail.progress import Progress

Array = NDArray[Any]
Shape = tuple[int, ...]  # of one sample as a backbone takes it

_ROWS = 4096  # read at a time, so that a memory map is never read as a whole


def _parts(x: Array) -> Iterator[Any]:
    return (np.ascontiguousarray(x[start : start + _ROWS]).data for start in range(0, len(x), _ROWS))


def _example(generator: np.random.Generator, shape: Shape) -> Array:
    return generator.normal(size=shape).astype(np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class InputKind:
    """What depends on the kind of inputs `x`, N samples, by which it is found; the defaults are for arrays (N, ...)."""

    holds: Callable[[Any], bool]  # also asked of an array without content that has only the shape and type of x
    expects: str = ""  # type and shape in the error for an array that no kind holds: "float embeddings (N, F)"
    noun: str = "sample"
    backbone: str = "mlp"  # the default; inputs whose default is pretrained are embedded once by default
    rank: int = 1  # number of dimensions of one sample as a backbone takes it, by which a stored model finds its kind
    light: bool = False  # whether a step takes about a millisecond: one thread, and features are not kept

    check: Callable[[Path, Array], Array] = lambda path, x: x  # of a file; ValueError for what cannot be trained on
    shape: Callable[[Any], Shape] = lambda x: x.shape[1:]
    tensor: Callable[[Array], Tensor] = lambda x: torch.tensor(x, dtype=torch.float32)  # some rows for a backbone
    scaled: Callable[[Tensor], Tensor] = lambda x: x  # the same in torch, for a model that is exported
    example: Callable[[np.random.Generator, Shape], Array] = _example  # random rows of some shape (N, ...)
    described: Callable[[Shape], str] = lambda shape: f"samples of shape {' × '.join(map(str, shape))}"
    prepared: Callable[[Shape], str] = lambda shape: (
        "As in the training data; nothing is scaled."
    )  # for an exported one
    take: Callable[[Any, Any], Any] = lambda x, rows: x[rows]
    views: Callable[[Any], int] = lambda x: 0  # of each sample, in the second dimension of x; 0 if it has none

    names: Callable[[Any, Any], list[str]] | None = None  # what users know some rows by, if not only their number
    root: Callable[[Any], Path | None] = lambda x: None  # folder of the names, if each sample has a file of its own
    open: Callable[[Path, Sequence[str]], Any] | None = None  # samples in files, by folder and names
    parts: Callable[[Any], Iterator[Any]] = _parts  # what the checksum of a data set covers
    stored: Callable[[Any], Shape] = lambda x: x.shape  # the shape (N, ...) that it covers, of the data as stored
    fingerprint: Callable[[Any], str] | None = None  # changes with any content, and is found sooner than a hash of it
    examined: Callable[[Any, int, Progress | None], Examined] = lambda x, *_: Examined(hashes_of_rows(x))

    pixels: Callable[..., NDArray[np.uint8]] | None = None  # (H, W, 3) of row i, from its content if that was read
    view: Callable[[Any, NDArray[np.uint8]], NDArray[np.uint8]] = lambda x, pixels: pixels  # the plain view (S, S, 3)
    content: Callable[[Any, int], bytes] = lambda x, row: x[row].tobytes()
    decodes: bool = False  # whether indexing decodes: batches are made ahead, and pixels worth keeping (`cached`)
    cached: Callable[[Any], Any] = lambda x: x
    resized: Callable[[Any, int, bool], Any] | None = None  # at another resolution, and whether the view is whole
    augments: bool = False  # whether they are augmented by default in training a whole network

    @property
    def picture(self) -> bool:
        return self.pixels is not None

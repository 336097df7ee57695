"""Activations in front of the last stages of a network, as an array that is read from disk when it is indexed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Halves = NDArray[np.float16]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Activations:
    """Activations (N, ...) in half precision; those that are not kept on disk are computed each time.

    `x[rows]` gives activations of the plain views, `x[rows, views]` of augmented ones of the same samples, and after
    all of these, if `mirrored`, the same again with the last axis reversed.
    """

    dtype: ClassVar[np.dtype[np.float16]] = np.dtype(np.float16)

    files: Sequence[Halves]  # memory maps (n, size)
    place: Rows  # (N, V, 2): file and row of each view; file −1 if it is not kept
    cut: tuple[int, ...]  # shape of the activations of one sample
    image: tuple[int, ...]  # shape of the image that they are of, as a backbone takes it
    features: NDArray[np.float32]  # (N, F), of the whole network before it is tuned
    rows: Rows  # (N,), the numbers by which `computed` knows the samples
    computed: Callable[[Rows], Halves]
    mirrored: bool = False
    note: str = ""  # on those that are not kept

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self), *self.cut

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def views(self) -> int:
        return self.place.shape[1] * (1 + self.mirrored)

    def __getitem__(self, index: Any) -> NDArray[Any]:
        which, views = index if isinstance(index, tuple) else (index, 0)
        chosen = np.atleast_1d(np.arange(len(self))[which])
        mirror, view = np.divmod(np.broadcast_to(views, chosen.shape), self.place.shape[1])
        file, row = self.place[chosen, view].T
        out = np.empty((len(chosen), *self.cut), np.float16)
        for f in np.unique(file).tolist():
            own = file == f
            out[own] = (
                self.files[f][row[own]].reshape(-1, *self.cut) if f >= 0 else self.computed(self.rows[chosen[own]])
            )
        own = mirror > 0
        out[own] = out[own][..., ::-1]
        return out

    def take(self, rows: Any) -> "Activations":
        """A subset, by row numbers or a mask; nothing is read."""
        return replace(self, place=self.place[rows], features=self.features[rows], rows=self.rows[rows])

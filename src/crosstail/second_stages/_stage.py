"""What a second stage declares and what it is given; `crosstail.training` runs it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crosstail.algorithms import Algorithm, Task
from crosstail.backbones import Backbone
from crosstail.pairs import pair_number

PART = 8192  # rows that are read at a time


class Head(nn.Module):
    """Class scores (B, C), whose softmax are the probabilities, from features (B, F).

    `domain` (B,) is None where it is unknown; a head that gives another answer where it is known sets `uses_domain`.
    """

    uses_domain = False

    def forward(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        raise TypeError(f"{type(self).__name__} must define forward(z, domain)")

    def distance_to_training(self, z: Tensor, domain: Tensor | None = None) -> Tensor | None:
        """How far features (B, F) are from all training samples, or those of their domains, (B,); None if not known."""
        return None


class Rows:
    """Rows of an array (N, F), which may be a file, in float32; they are read only when they are needed."""

    def __init__(self, array: NDArray[Any], rows: NDArray[np.int64]) -> None:
        self.array, self.rows = array, rows
        self.shape = len(rows), array.shape[1]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> NDArray[np.float32]:
        return np.asarray(self.array[self.rows[index]], np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(dtype or np.float32, copy=False)


@dataclass(frozen=True, eq=False)
class Features:
    """Samples as the representation of stage one sees them."""

    z: NDArray[np.float32] | Rows  # (N, F)
    y: NDArray[np.int64]  # (N,)
    domain: NDArray[np.int64]  # (N,)
    counts: NDArray[np.int64]  # (D, C), of the training samples
    group: NDArray[np.int64] | None = None  # (N,), where samples come in groups
    validation: "Features | None" = None  # the same of the validation samples, if there are any
    classifier: Head | None = None  # stage one's, a LinearHead, if the second stage needs it
    unseen: bool = False  # the model is for a domain without training samples, as with dg
    seed: int = 0
    select_on: str = "pair_average"  # by which numbers are chosen on these samples

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of features, domains and classes."""
        return self.z.shape[1], *self.counts.shape

    @property
    def pair(self) -> NDArray[np.int64]:
        """The pair of each sample (N,), numbered with domains outermost."""
        return pair_number(self.y, self.domain, self.counts.shape[1])

    def keep(self, rows: NDArray[np.int64]) -> "Features":
        group = None if self.group is None else self.group[rows]
        return replace(self, z=self.z[rows], y=self.y[rows], domain=self.domain[rows], group=group)

    def parts(self) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]]:
        """Features (n, F), classes and domains (n,), part by part, so that a file is never read as a whole."""
        for start in range(0, len(self.y), PART):
            part = slice(start, start + PART)
            yield self.z[part], self.y[part], self.domain[part]

    def scored(self, head: Head) -> NDArray[np.float32]:
        """The scores (N, C) of a head, where the domain is unknown."""
        with torch.no_grad():
            return np.concatenate([head(torch.from_numpy(z)).numpy() for z, _, _ in self.parts()])


@dataclass(frozen=True, kw_only=True)
class FittedStage:
    """A classifier that is a function of the features.

    `head` builds the empty module, from the numbers of features, domains and classes, that stored weights are loaded
    into. With `needs_classifier`, `fit` is given stage one's. `differs` are deviations from its paper, for the docs.
    """

    fit: Callable[[Features], Head]
    head: Callable[[int, int, int], Head]
    needs_classifier: bool = False
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrainedStage:
    """A classifier trained by gradients on the features of the fixed representation.

    It is a new linear one, or what `start` makes of stage one's, built empty by `head` as in a FittedStage. Learning
    rate and weight decay are stage one's unless `hparams` has others.
    """

    algorithm: str
    class_balanced: bool
    hparams: dict[str, Any] = field(default_factory=dict)
    start: Callable[[Features], Head] | None = None
    head: Callable[[int, int, int], Head] | None = None
    differs: tuple[str, ...] = ()

    @property
    def needs_classifier(self) -> bool:
        return self.start is not None


class FittedModel(Algorithm):
    """A representation with the head of a fitted stage; nothing in it is trained."""

    def __init__(self, backbone: Backbone, task: Task, head: Head) -> None:
        super().__init__(backbone, task, Algorithm.Hparams())
        self.head: Head = head
        self.uses_domain = head.uses_domain

    def scores(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        return self.head(z, domain)

    def distance_to_training(self, z: Tensor, domain: Tensor | None = None) -> Tensor | None:
        return self.head.distance_to_training(z, domain)

"""What a second stage declares and what it is given; `crosstail.training` runs it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from crosstail.algorithms import Algorithm, Task
from crosstail.backbones import Backbone

PART = 8192  # rows that are read at a time


class Head(nn.Module):
    """Class scores (B, C), whose softmax are the probabilities, from features (B, F).

    `domain` (B,) is None where it is unknown; a head that gives another answer where it is known sets `uses_domain`.
    """

    uses_domain = False

    def forward(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        raise TypeError(f"{type(self).__name__} must define forward(z, domain)")


class LinearHead(Head):
    """Scores W z + b; with `unit`, of features scaled to unit length."""

    weight: Tensor  # (C, F)
    bias: Tensor  # (C,)
    unit: Tensor

    def __init__(self, num_features: int, num_domains: int, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(num_classes, num_features))
        self.register_buffer("bias", torch.zeros(num_classes))
        self.register_buffer("unit", torch.tensor(False))

    @classmethod
    def of(cls, weight: Any, bias: Any, *, unit: bool = False) -> "LinearHead":
        """From weights (C, F) and biases (C,)."""
        head = cls(np.shape(weight)[1], 1, len(weight))
        for name, value in (("weight", weight), ("bias", bias), ("unit", unit)):
            getattr(head, name).copy_(torch.as_tensor(value))
        return head

    def forward(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        return F.linear(torch.where(self.unit, F.normalize(z), z), self.weight, self.bias)


class Rows:
    """Some rows of an array (N, F), in float32, which are read only when they are asked for; it may be a file."""

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
    classifier: LinearHead | None = None  # that of stage one, if the second stage needs it
    seed: int = 0

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of features, domains and classes."""
        return self.z.shape[1], *self.counts.shape

    def parts(self) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]]:
        """Features (n, F), classes and domains (n,), part by part, so that a file is never read as a whole."""
        for start in range(0, len(self.y), PART):
            part = slice(start, start + PART)
            yield self.z[part], self.y[part], self.domain[part]


@dataclass(frozen=True, kw_only=True)
class FittedStage:
    """A classifier that is a function of the features.

    `head` builds the empty module, from the numbers of features, domains and classes, that stored weights are loaded
    into. With `needs_classifier`, `fit` is given stage one's.
    """

    fit: Callable[[Features], Head]
    head: Callable[[int, int, int], Head]
    needs_classifier: bool = False


@dataclass(frozen=True, kw_only=True)
class TrainedStage:
    """A new linear classifier, trained by gradients on the features of the fixed representation."""

    algorithm: str
    class_balanced: bool
    needs_classifier: bool = False


class FittedModel(Algorithm):
    """A representation with the head of a fitted stage; nothing in it is trained."""

    def __init__(self, backbone: Backbone, task: Task, head: Head) -> None:
        super().__init__(backbone, task, Algorithm.Hparams())
        self.head: Head = head
        self.uses_domain = head.uses_domain

    def scores(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        """Class scores (B, C) of features (B, F), with their domains (B,) where they are known."""
        scores: Tensor = self.head(z, domain)
        return scores

    def forward(self, x: Tensor, domain: Tensor | None = None) -> Tensor:
        return self.scores(self.backbone(x), domain)

"""Label profiles: how many training samples each class of a domain keeps.

The paper's Digits-MLT has three (Uniform, Forward-LT, Backward-LT). With n the largest count of the domain, class c of
C keeps

    uniform    n
    forward:r  n · r^(−c / (C − 1)): class 0 has n, the last class n / r
    backward:r the same in reverse order
    step:r     n in the first half of the classes, n / r in the second

rounded down, but at least 1 and at most what is available; `!7,9` at the end removes the classes 7 and 9.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.data.dataset import DomainDataset

KINDS = ("uniform", "forward", "backward", "step")


@dataclass(frozen=True)
class LabelProfile:
    """The label profile of one domain, written `kind[:factor][!class,class…]`.

    >>> LabelProfile.parse("forward:100!7,9").counts([1000] * 10).tolist()
    [1000, 599, 359, 215, 129, 77, 46, 0, 16, 0]
    """

    kind: str
    factor: float = 1.0
    excluded: tuple[str, ...] = ()  # names or indices of classes

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"--labels: {self.kind!r} is not one of {', '.join(KINDS)}; an example is 'forward:50'")
        profile = f"--labels: {self.kind!r}"
        if not (isfinite(self.factor) and self.factor >= 1):
            example = f"as in '{self.kind}:50'"
            raise ValueError(f"{profile} has the factor {self.factor:g}, expected a number from 1 up, {example}")
        if self.kind == "uniform" and self.factor != 1:
            raise ValueError(f"{profile} takes no factor but has {self.factor:g}; write 'uniform'")
        for name in self.excluded:
            if not name or name != name.strip() or "," in name:
                expected = "names or indices of classes with commas between them, as in 'forward:50!7,9'"
                raise ValueError(f"{profile} leaves out {name!r}, expected {expected}")

    @classmethod
    def parse(cls, text: str) -> "LabelProfile":
        shape, mark, names = text.strip().partition("!")
        kind, colon, number = shape.strip().partition(":")
        excluded = tuple(name.strip() for name in names.split(",")) if mark else ()
        if kind in KINDS and kind != "uniform" and not colon:
            raise ValueError(f"--labels: {text!r} has no factor, expected for example '{kind}:50'")
        try:
            factor = float(number) if colon else 1.0
        except ValueError:
            expected = f"a number from 1 up, as in '{kind}:50'"
            raise ValueError(f"--labels: {text!r} has the factor {number!r}, expected {expected}") from None
        return cls(kind, factor, excluded)

    def __str__(self) -> str:
        number = int(self.factor) if self.factor.is_integer() else self.factor
        shape = self.kind if self.kind == "uniform" else f"{self.kind}:{number}"
        return f"{shape}!{','.join(self.excluded)}" if self.excluded else shape

    def counts(self, available: ArrayLike, classes: Sequence[str] = ()) -> NDArray[np.int64]:
        """Samples to keep of each class (C,), of those available (C,)."""
        there = np.asarray(available, np.int64)
        c = np.arange(len(there))
        if self.kind == "step":
            share = np.where(c < len(c) / 2, 1.0, 1 / self.factor)
        else:  # uniform: the factor is 1
            share = self.factor ** (-(c[::-1] if self.kind == "backward" else c) / max(len(c) - 1, 1))
        # Rounding down gives the 4,956 training samples of the paper's smallest Digits-MLT. The epsilon is for products
        # such as 57 · 57^-1 that may fall just below an integer.
        wanted = np.floor(there.max(initial=0) * share + 1e-9).astype(np.int64)
        kept: NDArray[np.int64] = np.minimum(np.maximum(wanted, 1), there)
        kept[self._excluded_indices(len(there), classes)] = 0
        return kept

    def _excluded_indices(self, num_classes: int, classes: Sequence[str]) -> list[int]:
        index = {str(c): c for c in range(num_classes)} | {name: c for c, name in enumerate(classes)}
        for name in self.excluded:
            if name not in index:
                known = f" or one of {', '.join(classes[:12])}{', …' if len(classes) > 12 else ''}" if classes else ""
                expected = f"an index from 0 to {num_classes - 1}{known}"
                raise ValueError(f"label profile '{self}' leaves out the class {name!r}, expected {expected}")
        return [index[name] for name in self.excluded]


def apply_labels(dataset: DomainDataset, profiles: Sequence[str] | None, seed: int) -> DomainDataset:
    """Thin out the training set; a smaller count keeps a subset of a larger one, whole groups as far as possible."""
    if not profiles:
        return dataset
    texts = [profiles] if isinstance(profiles, str) else list(profiles)
    if len(texts) not in (1, dataset.num_domains):
        domains = f"{dataset.num_domains} domains ({', '.join(dataset.domains)})"
        raise ValueError(f"{dataset.name}: {len(texts)} label profiles for {domains}, expected one for all or for each")
    parsed = [LabelProfile.parse(text) for text in texts] * (dataset.num_domains if len(texts) == 1 else 1)
    available = dataset.counts("train")
    kept = np.stack([profile.counts(n, dataset.classes) for profile, n in zip(parsed, available, strict=True)])
    rows = dataset.rows("train")
    mask = np.ones(len(dataset), np.bool_)
    for d, c in np.argwhere(kept < available):
        pair = rows[(dataset.domain[rows] == d) & (dataset.y[rows] == c)]
        shuffled = np.random.default_rng([seed, d, c]).permutation(pair)
        if dataset.group is not None:  # in the order of the first sample of each group
            _, first, number = np.unique(dataset.group[shuffled], return_index=True, return_inverse=True)
            shuffled = shuffled[np.argsort(first[number], kind="stable")]
        mask[shuffled[kept[d, c] :]] = False
    return replace(dataset.keep(mask), origin=np.flatnonzero(mask))

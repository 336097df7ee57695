"""What is known of a data set before any training."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics import SHOTS, shot_group
from crosstail.report.audit.divergence import LabelDivergence
from crosstail.report.audit.duplicates import Duplicate
from crosstail.report.audit.inputs import EmbeddingInputs, ImageInputs

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Audit:
    """Counts, divergences, duplicates and facts of the inputs; pairs are (domain, class) by index.

    A pair with more than `many` training samples is many-shot, one with 1 to `few` is few-shot.
    """

    name: str
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    counts: dict[str, NDArray[np.int64]]  # split → (D, C)
    divergence: LabelDivergence  # of the training set
    inputs: ImageInputs | EmbeddingInputs
    duplicates: tuple[Duplicate, ...]
    alike_searched: bool  # whether pictures that look alike were looked for
    many: int = 100
    few: int = 20
    notes: tuple[str, ...] = ()  # what the source has to say
    advice: tuple[str, ...] = ()

    @property
    def train(self) -> NDArray[np.int64]:
        """N[d, c], the training samples per pair."""
        return self.counts["train"]

    @property
    def num_samples(self) -> int:
        """Of all splits."""
        return sum(int(table.sum()) for table in self.counts.values())

    @property
    def is_image(self) -> bool:
        """Whether the inputs are images and not embeddings."""
        return isinstance(self.inputs, ImageInputs)

    @cached_property
    def shots(self) -> NDArray[np.str_]:
        """The shot group of every pair (D, C)."""
        return shot_group(self.train, self.many, self.few)

    @property
    def zero_pairs(self) -> list[Pair]:
        """Pairs with no training sample."""
        return _pairs(self.train == 0)

    @property
    def few_pairs(self) -> list[Pair]:
        """Few-shot pairs, the smallest first."""
        return sorted(_pairs(self.shots == "few"), key=lambda pair: int(self.train[pair]))

    @property
    def untested_pairs(self) -> list[Pair]:
        """Pairs that are trained on but have no test sample."""
        return _pairs((self.train > 0) & (self.counts["test"] == 0))

    @property
    def single_domain_classes(self) -> list[Pair]:
        """The only pair of every class that has training samples in one domain only, of several that have some."""
        if np.count_nonzero(self.train.sum(axis=1)) < 2:
            return []
        return _pairs((self.train > 0) & ((self.train > 0).sum(axis=0) == 1)[None, :])

    @property
    def empty_domains(self) -> list[int]:
        """Domains with no training sample."""
        return [int(d) for d in np.flatnonzero(self.train.sum(axis=1) == 0)]

    def missing_classes(self, split: str) -> list[int]:
        """Classes with no sample in a split, in any domain."""
        return [int(c) for c in np.flatnonzero(self.counts[split].sum(axis=0) == 0)]

    def shot_counts(self, domain: int | None = None) -> dict[str, int]:
        """How many pairs of a domain, or of all, are many-, medium-, few- and zero-shot."""
        group = self.shots if domain is None else self.shots[domain]
        return {shot: int((group == shot).sum()) for shot in SHOTS}

    def pair_name(self, pair: Pair) -> str:
        """As in "sketch / dog"."""
        return f"{self.domains[pair[0]]} / {self.classes[pair[1]]}"

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; null stands for what a domain without training samples does not have."""
        divergence = self.divergence
        return {
            "name": self.name,
            "domains": list(self.domains),
            "classes": list(self.classes),
            "counts": {split: table.tolist() for split, table in self.counts.items()},
            "shots": {"many": self.many, "few": self.few, "pairs": self.shot_counts()},
            "zero_pairs": self._names(self.zero_pairs),
            "few_pairs": self._names(self.few_pairs),
            "untested_pairs": self._names(self.untested_pairs),
            "single_domain_classes": self._names(self.single_domain_classes),
            "empty_domains": [self.domains[d] for d in self.empty_domains],
            "missing_classes": {
                split: [self.classes[c] for c in self.missing_classes(split)] for split in ("train", "test")
            },
            "divergence": {
                "measure": "Jensen-Shannon, bits",
                "from_uniform": _plain(divergence.from_uniform),
                "between": [_plain(row) for row in divergence.between],
                "imbalance_ratio": _plain(divergence.imbalance_ratio),
                "effective_classes": _plain(divergence.effective_classes),
                "imbalance": divergence.imbalance,
                "mismatch": divergence.mismatch,
                "chance": {"imbalance": divergence.chance_imbalance, "mismatch": divergence.chance_mismatch},
                "total": divergence.total,
            },
            "inputs": {"kind": "images" if self.is_image else "embeddings", **asdict(self.inputs)},
            "alike_searched": self.alike_searched,
            "duplicates": [
                {
                    "exact": duplicate.exact,
                    "across": list(duplicate.across),
                    "samples": [
                        {"row": s.row, "name": s.name, "domain": s.domain, "class": s.class_, "split": s.split}
                        for s in duplicate.samples
                    ],
                }
                for duplicate in self.duplicates
            ],
            "notes": list(self.notes),
            "advice": list(self.advice),
        }

    def _names(self, pairs: list[Pair]) -> list[dict[str, Any]]:
        return [{"domain": self.domains[d], "class": self.classes[c], "train": int(self.train[d, c])} for d, c in pairs]


def _pairs(mask: NDArray[np.bool_]) -> list[Pair]:
    return [(int(d), int(c)) for d, c in np.argwhere(mask)]


def _plain(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]

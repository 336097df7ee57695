"""What is known about a data set before training."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.data.inputs import InputKind
from crosstail.data.names import SameName
from crosstail.data.splits.gaps import GroupColumn
from crosstail.metrics import SHOTS, shot_group
from crosstail.reports.audit.divergence import LabelDivergence
from crosstail.reports.audit.groups import Duplicate, GroupFacts
from crosstail.reports.audit.inputs import EmbeddingInputs, ImageInputs

Pair = tuple[int, int]
_LISTS = ("zero_pairs", "few_pairs", "untested_pairs", "single_domain_classes")


@dataclass(frozen=True, eq=False)
class Audit:
    """Counts, label divergence, duplicates and facts about the inputs; a pair is (domain, class) by index.

    Pairs with more than `many` training samples are many-shot, those with 1 to `few` few-shot.
    """

    name: str
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    counts: dict[str, NDArray[np.int64]]  # split → (D, C)
    divergence: LabelDivergence  # of the training set
    kind: InputKind
    inputs: ImageInputs | EmbeddingInputs
    duplicates: tuple[Duplicate, ...]
    alike_searched: bool  # whether near-duplicate images were searched for
    groups: GroupFacts | None = None  # None: the samples have no groups
    many: int = 100
    few: int = 20
    group_columns: tuple[GroupColumn, ...] = ()  # which are not named as the group, the one that leaks most first
    same_names: tuple[SameName, ...] = ()  # which nobody has decided on
    notes: tuple[str, ...] = ()  # from the source
    advice: tuple[str, ...] = ()

    @property
    def train(self) -> NDArray[np.int64]:
        """Training samples per pair, N[d, c]."""
        return self.counts["train"]

    @property
    def num_samples(self) -> int:
        return sum(int(table.sum()) for table in self.counts.values())

    @cached_property
    def shots(self) -> NDArray[np.str_]:
        """Shot group of each pair (D, C)."""
        return shot_group(self.train, self.many, self.few)

    @property
    def zero_pairs(self) -> list[Pair]:
        return _pairs(self.train == 0)

    @property
    def few_pairs(self) -> list[Pair]:
        """Few-shot pairs, smallest first."""
        return sorted(_pairs(self.shots == "few"), key=lambda pair: int(self.train[pair]))

    @property
    def untested_pairs(self) -> list[Pair]:
        return _pairs((self.train > 0) & (self.counts["test"] == 0))

    @property
    def single_domain_classes(self) -> list[Pair]:
        """The only pair of each class that a single domain has training samples of; none with one domain."""
        if np.count_nonzero(self.train.sum(axis=1)) < 2:
            return []
        return _pairs((self.train > 0) & ((self.train > 0).sum(axis=0) == 1)[None, :])

    @property
    def empty_domains(self) -> list[int]:
        return [int(d) for d in np.flatnonzero(self.train.sum(axis=1) == 0)]

    def missing_classes(self, split: str) -> list[int]:
        """Classes without samples in a split, in any domain."""
        return [int(c) for c in np.flatnonzero(self.counts[split].sum(axis=0) == 0)]

    def shot_counts(self, domain: int | None = None) -> dict[str, int]:
        """Number of many-, medium-, few- and zero-shot pairs of one domain, or of all."""
        group = self.shots if domain is None else self.shots[domain]
        return {shot: int((group == shot).sum()) for shot in SHOTS}

    def pair_name(self, pair: Pair) -> str:
        return f"{self.domains[pair[0]]} / {self.classes[pair[1]]}"

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; null where a domain has no training samples to measure."""
        d = self.divergence
        return {
            "name": self.name,
            "domains": list(self.domains),
            "classes": list(self.classes),
            "counts": {split: table.tolist() for split, table in self.counts.items()},
            "shots": {"many": self.many, "few": self.few, "pairs": self.shot_counts()},
            **{name: self._names(getattr(self, name)) for name in _LISTS},
            "empty_domains": [self.domains[d] for d in self.empty_domains],
            "missing_classes": {s: [self.classes[c] for c in self.missing_classes(s)] for s in ("train", "test")},
            "divergence": {
                "measure": "Jensen-Shannon, bits",
                "between": [_plain(row) for row in d.between],
                **{name: _plain(getattr(d, name)) for name in ("from_uniform", "imbalance_ratio", "effective_classes")},
                **{name: getattr(d, name) for name in ("imbalance", "mismatch", "total")},
                "chance": {"imbalance": d.chance_imbalance, "mismatch": d.chance_mismatch},
            },
            "inputs": {"kind": f"{self.kind.noun}s", **asdict(self.inputs)},
            "alike_searched": self.alike_searched,
            "duplicates": [duplicate.to_json() for duplicate in self.duplicates],
            "groups": None if self.groups is None else self.groups.to_json(),
            "group_columns": [column._asdict() for column in self.group_columns],
            "same_names": [{"what": same.what, "spellings": dict(same.spellings)} for same in self.same_names],
            "notes": list(self.notes),
            "advice": list(self.advice),
        }

    def _names(self, pairs: list[Pair]) -> list[dict[str, Any]]:
        return [{"domain": self.domains[d], "class": self.classes[c], "train": int(self.train[d, c])} for d, c in pairs]


def _pairs(mask: NDArray[np.bool_]) -> list[Pair]:
    return [(int(d), int(c)) for d, c in np.argwhere(mask)]


def _plain(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]

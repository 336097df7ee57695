"""Which samples are trained on, selected on and tested on, as a value; needs no NumPy."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

from crosstail.data import protocols
from crosstail.data.names import Decision

MOST_FOLDS = 1000

READ = ("columns", "group_by", "skip_broken", "names")
"""The fields that say how a source is read, whatever is done with it."""


@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """A source, and how it is split; `RunSpec` adds what is trained.

    >>> DataSpec(dataset="a", folds=5, fold=2).part, DataSpec(dataset="a", protocol="dg", unseen="photo").part
    ('fold 2 of 5', 'unseen photo')
    """

    dataset: str
    """A folder `ROOT/<domain>/<class>/<image>`, a .csv or .parquet manifest, an .npz file, hf:NAME, or a benchmark."""

    protocol: str = "mdlt"
    """Which samples are for training, validation and test; `crosstail list protocols` describes them."""

    unseen: str | None = None
    """With dg: leave out this domain only."""

    left_out: str | None = None
    """With dg and --unseen: leave out this domain too, and validate on it."""

    folds: int | None = None
    """Cross-validation: train this many times, so that every sample is tested once."""

    fold: int | None = None
    """With --folds: train this one only, from 1."""

    labels: tuple[str, ...] | None = None
    """Label profile, one for all domains or one each: uniform, forward:50, backward:50, step:10, step:9!7,8; with dg on
    VLCS, PACS, OfficeHome or DomainNet also heavy-tail, duality, cross or idg, the counts of Cao and others (2026)."""

    columns: dict[str, str] = field(default_factory=dict)
    """Column names of a manifest, such as domain=hospital."""

    group_by: str | None = None
    """Regular expression on file paths, such as 'patient\\d+'; images with the same match stay in one split."""

    skip_broken: bool = False
    """Leave out images that cannot be read."""

    names: Decision | None = None
    """Names of classes, domains or groups that differ only in case, in spaces around them or in Unicode form are one
    name (merge) or several (keep); by default, they are refused."""

    data_seed: int = 0
    """Random seed for the split and the label profiles; with dg the split also depends on the run's seed."""

    seed: int = 0
    """Random seed for weights and batch order; with dg also for the split."""

    def __post_init__(self) -> None:
        for name in ("seed", "data_seed"):
            if not 0 <= getattr(self, name) < 2**63:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 0 or more, below 2**63")
        protocol = protocols.find(self.protocol)
        if self.left_out is not None and (self.unseen is None or self.left_out == self.unseen):
            raise ValueError(f"--left-out {self.left_out} needs another domain as --unseen")
        if self.folds is not None and self.folds < 2:
            raise ValueError(f"folds is {self.folds}, expected 2 or more")
        if self.folds is not None and self.folds > MOST_FOLDS:
            raise ValueError(f"folds is {self.folds:,}, expected at most {MOST_FOLDS:,}")
        if self.folds is not None and not protocol.folds:
            raise ValueError(f"the protocol {self.protocol} divides the data itself: remove --folds or --protocol")
        if self.fold is not None and self.folds is None:
            raise ValueError(f"fold is {self.fold}, but the number of folds is missing: add --folds")
        if self.fold is not None and self.folds is not None and not 1 <= self.fold <= self.folds:
            raise ValueError(f"fold is {self.fold}, expected 1 to {self.folds}, the number of folds")

    @property
    def whole(self) -> bool:
        """Whether every sample is for training."""
        return False

    @property
    def unseen_domains(self) -> bool:
        """Whether the protocol tests on domains that are not trained on."""
        return protocols.find(self.protocol).unseen_domains

    @property
    def whole_view(self) -> bool:
        """Whether images are evaluated squeezed into a square."""
        return protocols.find(self.protocol).whole_view

    @property
    def part(self) -> str:
        """Which part of the data is left out, if it is one of several, or that none is; empty for a single split."""
        if self.whole:
            return "refit on every sample"
        if self.fold is not None:
            return f"fold {self.fold} of {self.folds}"
        left_out = "" if self.left_out is None else f", left out {self.left_out}"
        return "" if self.unseen is None else f"unseen {self.unseen}{left_out}"

    @property
    def undivided(self) -> Self:
        """The same with no part of the data left out."""
        return replace(self, unseen=None, left_out=None, fold=None)

    def with_source(self, other: "DataSpec") -> Self:
        """The same with the source of another spec, read as it says."""
        read: dict[str, Any] = {name: getattr(other, name) for name in ("dataset", *READ)}
        return replace(self, **read)

    def with_group(self, column: str | None) -> Self:
        """The same with a column of groups, if there is one."""
        return self if column is None else replace(self, columns={**self.columns, "group": column})

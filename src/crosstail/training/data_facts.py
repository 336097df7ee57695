"""Which data a run was trained on, so that a change is noticed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

if TYPE_CHECKING:  # importing torch takes seconds, and reading results needs none of it
    from crosstail.data import DomainDataset


class DataFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Which data a run was trained on."""

    checksum: str
    samples: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    notes: list[str]
    source: str | None = None  # checksum of the data before they were split for one fold or unseen domain
    leaks: str | None = None  # column that looks like a group, was not named as one, and is in training and test

    @classmethod
    def of(cls, dataset: "DomainDataset", source: "DomainDataset | None" = None) -> "DataFacts":
        from crosstail.data.splits.gaps import leaking_column

        common, notes = source.checksum if source else None, list(dataset.notes)
        leaks = leaking_column(dataset)
        return cls(checksum=dataset.checksum, samples=len(dataset), notes=notes, source=common, leaks=leaks)

    def check_unchanged(self, now: "DataFacts", dataset: str, folder: Path) -> None:
        """Raise an error if the data are no longer those that the work in a folder was started on."""
        if now.checksum != self.checksum:
            raise ValueError(
                f"{dataset} has changed since {folder} was started: {self.samples:,} samples with checksum "
                f"{self.checksum[:8]} then, {now.samples:,} with {now.checksum[:8]} now. Choose another --out, or "
                f"remove the folder"
            )

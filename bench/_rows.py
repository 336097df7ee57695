"""What a benchmark reports: a measurement, its reference, and its limit."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Row:
    """A ratio to a reference, with its limit; without a ratio, the limit applies to the measurement itself."""

    name: str
    ours: float
    peer: str
    ratio: float | None
    limit: float
    sense: Literal["at most", "at least"] = "at most"
    unit: Literal["s", "MiB"] = "s"  # unit of `ours`; seconds are medians

    @property
    def ok(self) -> bool:
        """Whether the measurement is within its limit."""
        return self.misses_by <= 0

    @property
    def misses_by(self) -> float:
        """Excess over the limit as a share of the limit; negative within the limit."""
        excess = (self.ours if self.ratio is None else self.ratio) / self.limit - 1
        return excess if self.sense == "at most" else -excess

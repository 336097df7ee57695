"""What a benchmark reports: one figure, what it is set against, and how far it may go."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Row:
    """A ratio to a peer with its limit; without a ratio the limit is one of the figure itself, such as memory."""

    name: str
    ours: float
    peer: str
    ratio: float | None
    limit: float
    sense: Literal["at most", "at least"] = "at most"
    unit: Literal["s", "MiB"] = "s"  # of ours; seconds are medians

    @property
    def ok(self) -> bool:
        """Whether the limit is kept."""
        return self.misses_by <= 0

    @property
    def misses_by(self) -> float:
        """How far beyond its limit the figure is, as a share of the limit; below 0 where it is kept."""
        excess = (self.ours if self.ratio is None else self.ratio) / self.limit - 1
        return excess if self.sense == "at most" else -excess

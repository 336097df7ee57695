"""What a benchmark file says of its data set."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DataSheet:
    """What the data is, who made it, on what terms, and how it is trained on by default.

    A pair with more than `many` training samples is many-shot, one with 1 to `few` is few-shot.
    """

    name: str
    title: str
    summary: str
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    licence: str
    citation: str
    source: str  # where it comes from, and how to get it
    labels: tuple[str, ...] = ()  # default label profile per domain; empty = the data as it is
    batch_size: int = 24  # per domain
    steps: int = 5000
    many: int = 100
    few: int = 20

    def __post_init__(self) -> None:
        if self.labels and len(self.labels) != len(self.domains):
            raise ValueError(f"{self.name}: {len(self.labels)} label profiles for {len(self.domains)} domains")

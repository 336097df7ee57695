"""What a benchmark file says of its data set."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

Kind = Literal["domain", "class"]
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
_DIGITS_OF = {"sha256": 64, "md5": 32}


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A file to fetch: what it is called, who serves the same bytes, and how to know that they are right.

    An unknown size is None and an unknown checksum is empty: neither is ever guessed.

    >>> Archive(file="PACS.zip", mirrors=("https://example.org/PACS.zip",), md5="0" * 32).checksum
    ('md5', '00000000000000000000000000000000')
    """

    file: str  # the name it is kept under, in the root
    mirrors: tuple[str, ...]  # addresses of the same bytes, the best one first
    size: int | None = None  # in bytes
    sha256: str = ""
    md5: str = ""
    unpacks_to: str = ""  # what is in it, in words
    optional: bool = False  # not fetched, but used if it is put there by hand

    def __post_init__(self) -> None:
        for kind, digits in _DIGITS_OF.items():
            value = getattr(self, kind)
            if value and not re.fullmatch(f"[0-9a-f]{{{digits}}}", value):
                raise ValueError(f"{self.file}: {kind} is {value!r}, expected {digits} hexadecimal digits")

    @property
    def checksum(self) -> tuple[str, str] | None:
        """The strongest checksum that is known, as (kind, digits)."""
        if self.sha256:
            return "sha256", self.sha256
        return ("md5", self.md5) if self.md5 else None

    @property
    def is_packed(self) -> bool:
        """Whether it is to be unpacked, rather than used as it is."""
        return self.file.lower().endswith(ARCHIVE_SUFFIXES)


@dataclass(frozen=True)
class Release:
    """Another release of the same set that is in circulation: its images per domain, and what it is."""

    domain_counts: tuple[int, ...]
    what: str
    usable: bool = True  # or does something have to be done first?


@dataclass(frozen=True, kw_only=True)
class DataSheet:
    """What the data is, who made it, on what terms, where it is, and how it is trained on by default.

    The domains and classes are called as their folders are; `aliases` are other names of the same folders. A
    pair with more than `many` training samples is many-shot, one with 1 to `few` is few-shot. Of each pair
    `validation` samples are for validation and twice that for test.
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
    in_memory: bool = False  # small images that are loaded whole; others stay in their files
    many: int = 100
    few: int = 20
    made_by: str = ""
    validation: int | None = None  # per pair; None = the data comes with its own split
    protocols: tuple[str, ...] = ("mdlt",)
    counts: tuple[tuple[int, ...], ...] = ()  # images per (domain, class) of the whole set, where known
    domain_counts: tuple[int, ...] = ()  # images per domain; follows from `counts` where these are known
    paper_totals: tuple[int, int, int] | None = None  # train, validation, test in the paper's table
    releases: tuple[Release, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    archives: tuple[Archive, ...] = ()
    lists: tuple[str, ...] = ()  # text files in the root that name the images that belong to the set
    split_file: str = ""  # what the paper's own split file is called
    clean_up: str = ""  # what is left out of the original files, and how

    def __post_init__(self) -> None:
        if self.labels and len(self.labels) != len(self.domains):
            raise ValueError(f"{self.name}: {len(self.labels)} label profiles for {len(self.domains)} domains")
        shape = [len(row) for row in self.counts]
        if self.counts and shape != [len(self.classes)] * len(self.domains):
            raise ValueError(f"{self.name}: counts are not {len(self.domains)} rows of {len(self.classes)}")
        if self.counts and not self.domain_counts:
            object.__setattr__(self, "domain_counts", tuple(sum(row) for row in self.counts))
        unknown = set(self.aliases) - set(self.domains) - set(self.classes)
        if unknown:
            raise ValueError(f"{self.name}: aliases of {min(unknown)!r}, which is neither a domain nor a class")

    @property
    def images(self) -> int | None:
        """How many images the whole set has, where that is known."""
        return sum(self.domain_counts) if self.domain_counts else None

    def names(self, what: Kind) -> tuple[str, ...]:
        """The domains or the classes."""
        return self.domains if what == "domain" else self.classes

    def index(self, what: Kind, folder: str) -> int | None:
        """Which domain or class a folder stands for, by its name or an alias.

        >>> words = dict.fromkeys(("name", "title", "summary", "licence", "citation", "source"), "w")
        >>> sheet = DataSheet(**words, domains=("art", "photo"), classes=("dog",), aliases={"photo": ("Photos",)})
        >>> [sheet.index("domain", folder) for folder in ("photo", "Photos", "PHOTO")]
        [1, 1, None]
        """
        return self._indices[what].get(folder)

    @cached_property
    def _indices(self) -> dict[Kind, dict[str, int]]:
        kinds: tuple[Kind, Kind] = ("domain", "class")
        return {
            what: {text: i for i, name in enumerate(self.names(what)) for text in (name, *self.aliases.get(name, ()))}
            for what in kinds
        }

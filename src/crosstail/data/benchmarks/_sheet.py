"""The data sheet of a benchmark: what it is, where it is, and how it is trained on."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec.structs import force_setattr

FolderKind = Literal["domain", "class"]
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")


class Archive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file to download: its name, its mirrors, its size and checksum, where they are known."""

    file: str  # its name in the root
    mirrors: tuple[str, ...]  # addresses of identical files, best first; the file's name is added after a final /
    size: int | None = None  # in bytes
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] = ""
    md5: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")] = ""
    unpacks_to: str = ""  # its content, in words
    optional: bool = False  # not downloaded, but used if it is put there by hand

    def __post_init__(self) -> None:
        force_setattr(self, "mirrors", tuple(url + self.file if url.endswith("/") else url for url in self.mirrors))

    @property
    def checksum(self) -> tuple[str, str] | None:
        """The strongest known checksum, as (kind, digits)."""
        return next(((kind, value) for kind in ("sha256", "md5") if (value := getattr(self, kind))), None)

    @property
    def is_packed(self) -> bool:
        return self.file.lower().endswith(ARCHIVE_SUFFIXES)


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another release of the same set: its images per domain, and a description."""

    domain_counts: tuple[int, ...]
    what: str
    usable: bool = True  # as it is


class DataSheet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """What a data set is, who made it, its terms, where to get it, and how it is trained on by default.

    Domains and classes are named like their folders; `aliases` are other names of these folders. A pair with more than
    `many` training samples is many-shot, one with 1 to `few` is few-shot. Of each pair, `validation` samples are for
    validation and twice as many for test.
    """

    name: str
    title: str
    summary: str
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    licence: str
    citation: str
    source: str  # where to get it
    about: str = ""  # paragraphs: what it is, how it is split, how to get it
    labels: tuple[str, ...] = ()  # default label profile per domain; empty = all samples
    batch_size: int = 24  # per domain
    steps: int = 5000
    inputs: str = "image_files"  # kind of input; images and vectors are loaded into memory
    many: int = 100
    few: int = 20
    made_by: str = ""
    validation: int | None = None  # per pair; None = the data has its own split
    protocols: tuple[str, ...] = ("mdlt",)
    counts: tuple[tuple[int, ...], ...] = ()  # images per (domain, class) of the whole set, if known
    domain_counts: tuple[int, ...] = ()  # images per domain; derived from `counts` if known
    paper_totals: tuple[int, int, int] | None = None  # train, validation, test in the paper's table
    releases: tuple[Release, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = {}
    archives: tuple[Archive, ...] = ()
    lists: tuple[str, ...] = ()  # text files in the root that name the images of the set
    split_file: str = ""  # name of the paper's split file
    clean_up: str = ""  # what is removed from the original files, and how

    def __post_init__(self) -> None:
        if self.labels and len(self.labels) != len(self.domains):
            raise ValueError(f"{self.name}: {len(self.labels)} label profiles for {len(self.domains)} domains")
        if self.counts and [len(row) for row in self.counts] != [len(self.classes)] * len(self.domains):
            raise ValueError(f"{self.name}: counts are not {len(self.domains)} rows of {len(self.classes)}")
        if self.counts and not self.domain_counts:
            force_setattr(self, "domain_counts", tuple(sum(row) for row in self.counts))
        unknown = set(self.aliases) - set(self.domains) - set(self.classes)
        if unknown:
            raise ValueError(f"{self.name}: aliases of {min(unknown)!r}, which is neither a domain nor a class")

    @property
    def images(self) -> int | None:
        return sum(self.domain_counts) if self.domain_counts else None

    def names(self, what: FolderKind) -> tuple[str, ...]:
        return self.domains if what == "domain" else self.classes

    def index(self, what: FolderKind, folder: str) -> int | None:
        """The domain or class that a folder stands for, by its name or an alias."""
        return self._indices[what].get(folder)

    @cached_property
    def _indices(self) -> dict[FolderKind, dict[str, int]]:
        def indices(names: Sequence[str]) -> dict[str, int]:
            return {text: i for i, name in enumerate(names) for text in (name, *self.aliases.get(name, ()))}

        return {"domain": indices(self.domains), "class": indices(self.classes)}


def read_sheet(module: str) -> DataSheet:
    """The sheet in the TOML file beside a benchmark's module, given the module's file."""
    path = Path(module).with_suffix(".toml")
    try:
        return msgspec.toml.decode(path.read_bytes(), type=DataSheet)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}") from None

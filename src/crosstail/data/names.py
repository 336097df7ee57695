"""Names that are equal but for spaces around them, case and Unicode form, which are probably one name."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from unicodedata import normalize

Decision = Literal["merge", "keep"]
"""What such names are: one name, or several."""


@dataclass(frozen=True)
class SameName:
    """The spellings of one name, each with its number of samples."""

    what: str  # class, domain or group
    spellings: Mapping[str, int]

    @property
    def chosen(self) -> str:
        """The spelling to use: one without spaces around it, and of these the most frequent."""
        return max(self.spellings, key=lambda name: (_tidy(name) == name, self.spellings[name], name))

    def __str__(self) -> str:
        """The spellings in quotes, so that spaces are seen; letters with separate accents are escaped."""
        quoted = {(repr if normalize("NFC", name) == name else ascii)(name): n for name, n in self.spellings.items()}
        return f"{self.what} {' and '.join(f'{name} ({n:,})' for name, n in quoted.items())}"


def _tidy(name: str) -> str:
    return normalize("NFC", name).strip()


def folded(name: str) -> str:
    """What names have in common that are equal but for spaces around them, case and Unicode form."""
    return normalize("NFC", _tidy(name).casefold())


def same_names(what: str, counts: Mapping[str, int]) -> list[SameName]:
    """The names that are spelled in several ways, among names with their numbers of samples."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for name, count in counts.items():
        found[folded(name)][name] = int(count)
    return [SameName(what, spellings) for spellings in found.values() if len(spellings) > 1]


def spelled_as(names: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """Each name in the spelling of the known one that it is equal to, if there is one.

    >>> spelled_as(["Dog ", "cow"], ["cat", "dog"])
    ('dog', 'cow')
    """
    spelling = {folded(name): name for name in known}
    return tuple(name if name in known else spelling.get(folded(name), name) for name in names)


def listed(found: Sequence[SameName], most: int = 3) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(found) - most:,} more" if len(found) > most else ""
    return "; ".join(map(str, found[:most])) + more

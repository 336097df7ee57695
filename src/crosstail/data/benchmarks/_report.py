"""What a check of a folder found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Progress = Callable[[str, int, int], None]  # what is being done, how far, of how many
SHOWN = 8  # that many examples are named, the others counted


@dataclass(frozen=True)
class Finding:
    """One thing that was found, in one sentence, and the files or folders that show it."""

    kind: str  # missing, folder, count, broken, duplicate, split, list, release
    message: str
    paths: tuple[str, ...] = ()


@dataclass
class Report:
    """Problems make a check fail; notes are worth knowing."""

    name: str
    root: str
    images: int = 0
    problems: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def problem(self, kind: str, message: str, *paths: str) -> None:
        """Add a problem."""
        self.problems.append(Finding(kind, message, paths))

    def note(self, kind: str, message: str, *paths: str) -> None:
        """Add a note."""
        self.notes.append(Finding(kind, message, paths))

    def to_json(self) -> dict[str, Any]:
        """For a program to read."""
        groups = {"problems": self.problems, "notes": self.notes}
        return {"name": self.name, "root": self.root, "ok": self.ok, "images": self.images} | {
            key: [{"kind": f.kind, "message": f.message, "paths": list(f.paths)} for f in found]
            for key, found in groups.items()
        }


def plural(word: str, things: Sequence[object]) -> str:
    """The word in the number that fits.

    >>> plural("class", ["a"]), plural("class", ["a", "b"])
    ('class', 'classes')
    """
    return word if len(things) == 1 else {"class": "classes"}.get(word, f"{word}s")

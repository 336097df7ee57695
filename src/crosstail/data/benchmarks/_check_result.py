"""The result of checking a folder against a data sheet."""

from dataclasses import asdict, dataclass, field
from typing import Any

SHOWN = 8  # examples that are named; the others are counted


@dataclass(frozen=True)
class CheckFinding:
    """One finding in one sentence, and example files or folders."""

    kind: str  # missing, folder, count, broken, duplicate, split, list, release
    message: str
    paths: tuple[str, ...] = ()


@dataclass
class CheckResult:
    """Problems, which make a check fail, and notes, which do not."""

    name: str
    root: str
    images: int = 0
    problems: list[CheckFinding] = field(default_factory=list)
    notes: list[CheckFinding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def problem(self, kind: str, message: str, *paths: str) -> None:
        self.problems.append(CheckFinding(kind, message, paths))

    def note(self, kind: str, message: str, *paths: str) -> None:
        self.notes.append(CheckFinding(kind, message, paths))

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"ok": self.ok}

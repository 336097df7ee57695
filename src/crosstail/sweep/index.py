"""The figures of all finished runs, without reading every result again."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from crosstail.sweep.files import names, write_whole
from crosstail.training.spec import key_of

METRICS = ("pair_average", "average", "worst_domain", "worst_pair")
Summary = dict[str, Any]
"""What a sweep needs of a result: its seconds, and these metrics on validation and test."""


class Index:
    """A file beside the runs with one line per result, which can be made again from them at any time.

    A line counts as long as its result has the size and the time of change that it had when it was read.
    """

    def __init__(self, folder: Path) -> None:
        self._runs = folder / "runs"
        self._file = folder / "index.jsonl"
        self._lines: dict[str, tuple[list[int], Summary]] | None = None
        self.damaged: list[str] = []

    def read(self) -> dict[str, Summary]:
        """The summaries of the finished runs, by key; `damaged` then names the folders that hold no result."""
        known = self._load() if self._lines is None else self._lines
        self._lines, self.damaged = {}, []
        new = 0
        for key in names(self._runs):
            path = Path(f"{self._runs}/{key}/result.json")
            try:
                status = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                self.damaged.append(key)
                continue
            stamp = [status.st_mtime_ns, status.st_size]
            line = known.get(key)
            if line is None or line[0] != stamp:
                new += 1
                summary = read_summary(path, key)
                if summary is None:
                    self.damaged.append(key)
                    continue
                line = stamp, summary
            self._lines[key] = line
        if new * 20 > len(self._lines):
            with suppress(OSError):  # on a full disk one does without
                self._save(self._lines)
        return {key: summary for key, (_, summary) in self._lines.items()}

    def _load(self) -> dict[str, tuple[list[int], Summary]]:
        found = {}
        try:
            for text in self._file.read_text(encoding="utf-8", errors="replace").splitlines():
                key, stamp, summary = json.loads(text)
                found[key] = stamp, summary
        except (OSError, ValueError, TypeError):
            pass  # from here on the results themselves are read
        return found

    def _save(self, lines: dict[str, tuple[list[int], Summary]]) -> None:
        write_whole(self._file, "".join(json.dumps([key, *line]) + "\n" for key, line in lines.items()))


def read_summary(path: Path, key: str) -> Summary | None:
    """What a result says, or None if it is no whole result of the run with this key."""
    try:
        result = json.loads(path.read_bytes())
        if key_of(result["spec"]) != key:
            return None
        figures = {part: {metric: result[part][metric] for metric in METRICS} for part in ("validation", "test")}
        return {"seconds": result["seconds"], **figures}
    except (FileNotFoundError, ValueError, TypeError, KeyError):  # a disk that cannot be read is another matter
        return None

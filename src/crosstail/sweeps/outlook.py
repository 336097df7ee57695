"""Where a race is, for those who watch it; needs no torch."""

from contextlib import suppress
from pathlib import Path

import msgspec

from crosstail.storage import read_json, write_json

FILE = "forecast.json"


class Outlook(msgspec.Struct, frozen=True):
    """Where a race is, and how many seconds the whole of it still takes."""

    round: str
    methods: int
    done: int  # runs of the round
    runs: int
    left: float
    news: str = ""  # to be told once

    @classmethod
    def of(cls, folder: Path) -> "Outlook | None":
        """The outlook of a race that has not ended; None of a sweep."""
        with suppress(OSError, ValueError):
            return read_json(folder / FILE, cls)
        return None

    def write(self, folder: Path) -> None:
        with suppress(OSError):  # on a full disk, the runs themselves tell
            write_json(folder / FILE, self)

    @staticmethod
    def end(folder: Path) -> None:
        """Remove the outlook of a race that has ended."""
        (folder / FILE).unlink(missing_ok=True)

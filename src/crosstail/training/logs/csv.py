"""A table RUN/log.csv with the columns name, step and value; hyperparameters have no step."""

import csv
import io
from pathlib import Path

from crosstail.training.folder import RunFolder
from crosstail.training.logs._log import Hparams, Point


class CSV:
    """Written anew each time, whole or not at all."""

    def __init__(self, out: Path) -> None:
        self._folder = RunFolder(out)

    def write(self, hparams: Hparams, points: list[Point], finished: bool) -> None:
        """Write all of it."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(Point._fields)
        rows.writerows((name, "", value) for name, value in hparams.items())
        rows.writerows(points)
        self._folder.write("log.csv", text.getvalue().encode())

    def close(self) -> None:
        """Nothing is open."""


def open_log(out: Path) -> CSV:
    """The table of a run."""
    return CSV(out)

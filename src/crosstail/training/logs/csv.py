"""A table RUN/log.csv with the columns name, step and value; the step of a hyperparameter is empty."""

import csv
import io
from pathlib import Path

from crosstail.storage import write_whole
from crosstail.training.logs._log import Hparams, Log, Point


class CSV(Log):
    """Rewritten each time, whole or not at all."""

    def __init__(self, out: Path) -> None:
        self._file = out / "log.csv"

    def write(self, hparams: Hparams, points: list[Point], finished: bool) -> None:
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(Point._fields)
        rows.writerows((name, "", value) for name, value in hparams.items())
        rows.writerows(points)
        write_whole(self._file, text.getvalue().encode())


LOG = CSV

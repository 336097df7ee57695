"""The results of many runs by one metric: each table is computed once, however many pages and files show it."""

import re
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from crosstail.metrics import DEFAULT, Metric, find
from crosstail.reports.compare.method_runs import MethodRun, method_runs
from crosstail.reports.compare.read_runs import Runs
from crosstail.reports.compare.significance import significance_table
from crosstail.reports.compare.tables import Spread, summary_table


@dataclass(frozen=True, eq=False)
class Results:
    """Finished runs by one metric; one other than accuracy needs the probabilities that runs have kept."""

    runs: Runs
    metric: str = DEFAULT
    baseline: str | None = None
    """What gains and tests are against; by default gains are against erm, and tests against the best on validation."""
    spread: Spread | None = None
    """What follows ± over seeds; by default what the protocol has."""

    @cached_property
    def _found(self) -> tuple[list[MethodRun], list[str]]:
        return method_runs(self.runs.chosen, self.metric)

    @property
    def methods(self) -> list[MethodRun]:
        """The runs by data set, method and seed."""
        found, left_out = self._found
        if not found:
            raise ValueError(f"no method has all its runs: {left_out[0]}")
        return found

    @property
    def left_out(self) -> list[str]:
        """Sentences on the runs that no table has."""
        return self._found[1]

    @property
    def of(self) -> Metric:
        return find(self.metric)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """See `summary_table`."""
        return summary_table(self.methods, self.spread)

    @cached_property
    def tests(self) -> pd.DataFrame:
        """See `significance_table`."""
        return significance_table(self.methods, self.baseline)

    @cached_property
    def files(self) -> dict[str, str]:
        """A unique file name for each data set."""
        found: dict[str, str] = {}
        for data in dict.fromkeys(self.summary["data"]):
            plain = re.sub(r"[^a-z0-9]+", "-", data.lower()).strip("-") or "data"
            taken = sum(other == plain or other.startswith(f"{plain}-") for other in found.values())
            found[data] = f"{plain}-{taken + 1}" if plain in found.values() else plain
        return found

"""What must not be missed: the recall of the critical classes at each site, which every page shows first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.metrics import Answers
from crosstail.prediction.critical import ALL, SITE, SURE, Alarms, targets
from crosstail.prediction.cross_fit import flagged
from crosstail.prediction.evaluate import Evaluated
from crosstail.reports.document.model import Block, Columns, Heading, Table, records_table
from crosstail.reports.run.tested import Tested, share_of
from crosstail.reports.run.two_questions import TRAIN, Questions
from crosstail.reports.wording import TRACKS, both_ends, interval, percent, shown
from crosstail.training.run import Run

CRITICAL = "What must not be missed"


@dataclass(frozen=True, eq=False)
class Flags:
    """Which samples `predict` flags because they may be of a critical class, with an option."""

    answers: Answers
    alarms: Alarms
    """The thresholds of `predict`, a row for each domain."""
    raised: NDArray[np.bool_]
    """Of the answers (N, K), by thresholds from other samples."""
    weights: NDArray[np.float64]
    """How frequent each pair is (D, C)."""
    option: str = ""

    def rows(self) -> Iterator[list[str]]:
        """Of each class and site that it may occur at."""
        for k, c in enumerate(self.alarms.classes.tolist()):
            of_class, raised = self.answers.y == c, self.raised[:, k]
            found = share_of(self.answers, raised, of_class)
            every = share_of(self.answers, raised).weighted(self.weights)
            right = share_of(self.answers, of_class, raised).weighted(self.weights * np.nan_to_num(every.matrix))
            for d in np.flatnonzero((self.weights[:, c] > 0) | (found.totals[:, c] > 0)).tolist():
                low, high = found.interval((d, c)) or (np.nan, np.nan)
                alarm = right.domains[d]
                name = f"{self.answers.classes[c]}, " if len(self.alarms.classes) > 1 else ""
                yield [
                    f"{name}{self.answers.domains[d]}",
                    percent(self.alarms.least[d, k]),
                    f"{found.hits[d, c]:,} of {found.totals[d, c]:,}",
                    percent(found.matrix[d, c]),
                    interval(100 * low, 100 * high),
                    percent(self.alarms.sure[d, k]),
                    percent(every.domains[d]),
                    percent(None if alarm is None else 1 - alarm),
                    self._promised(d, k),
                ]

    def _promised(self, d: int, k: int) -> str:
        recall, source, more = f"{100 * self.alarms.recall[k]:g} %", self.alarms.source[d, k], self.alarms.missing[d, k]
        if source == SITE:
            return f"{recall} here"
        if source == ALL and more:
            n = self.alarms.groups[d, k]
            return f"{recall} over all sites, {100 * n / (n + 1):.0f} % here; {recall} with {more:,} more"
        if source == ALL:
            return f"{recall} over all sites"
        return f"none, so all are flagged; {self.alarms.missing[-1, k]:,} more would do for all sites together"


def flags_of_run(run: Run) -> list[Flags]:
    """For the default answers and those of `--prior train`, if a class has to reach a recall and there are samples."""
    recalls = targets(run.result.critical, run.result.classes)
    if not recalls or run.held_out is None or run.calibration is None or not len(run.held_out.test):
        return []
    test, options = run.held_out.test, {None: "", TRAIN: f"--prior {TRAIN}"}
    weights = np.array(run.result.counts, float)
    return [
        Flags(test, *flagged(test, run.calibration, recalls, prior), weights, option)
        for prior, option in options.items()
    ]


def flags_of_evaluated(found: Evaluated) -> list[Flags]:
    """For the default answers on other data."""
    if found.alarms is None or found.weights is None:
        return []
    return [Flags(found.answers, *found.alarms, found.weights)]


def flags_table(found: Flags, *, narrow: bool = False) -> Table:
    """How often the flags find the critical classes, and what that costs; `narrow` for a terminal."""
    header = ["site", "from, %", "found", "recall, %", "95 % interval"]
    header += [f"{100 * SURE:g} % sure: at least", "flagged, %", "false alarms, %", "promised on average"]
    note = (
        "Flagged: inputs that have at least the probability `from` for the class, as a share of all inputs as they "
        "come. False alarms: flagged inputs of other classes. Found: of the test samples, each with thresholds from "
        "others. Promised: the mean over choices of the test samples that thresholds come from; 19 of 20 choices reach "
        "the bound. Both hold if new inputs are like these, and count groups, such as patients, equally. More: test "
        "samples of the class, one of each group; `--folds 5 --refit` has more of them."
    )
    names = ", ".join(found.answers.classes[c] for c in found.alarms.classes)
    title = " ".join(filter(None, (f"{names}: flagged by predict --site SITE", found.option)))
    rows, note = [*found.rows()], note * (not found.option)
    if narrow:
        shown, note = [0, 2, 3, 6, 7, 8], "The page has intervals, thresholds, and the same with --prior train."
        header, *rows = [[row[j] for j in shown] for row in [header, *rows]]
    return Table(title=title, header=header, rows=rows, note=note, words_last=True)


def critical_table(tested: Tested, questions: Questions | None = None) -> pd.DataFrame:
    """One row per critical class and site with test samples of it: as `Tested.pairs`, with the recall by `--prior`."""
    pairs = tested.pairs
    if questions is not None:
        pairs = pairs.assign(informed=100 * questions.informed.matrix.ravel())
    own = pairs[pairs["class"].isin(tested.critical) & (pairs["tested"] > 0)]
    return own.sort_values("class", key=lambda names: names.map(list(tested.critical).index), kind="stable")


def critical_blocks(tested: Tested, questions: Questions | None = None, flags: Sequence[Flags] = ()) -> Iterator[Block]:
    """The section, if a class is critical."""
    if tested.critical:
        *flagged, answers = critical_tables(tested, questions, flags)
        yield Heading(answers.title)
        yield from flagged
        yield replace(answers, title="Answers" if flagged else "")


def critical_tables(
    tested: Tested, questions: Questions | None = None, flags: Sequence[Flags] = (), *, narrow: bool = False
) -> list[Table]:
    """The recall of the critical classes at each site, of flags and of answers, with intervals."""
    if not tested.critical:
        return []
    found = critical_table(tested, questions)
    site = (lambda row: f"{row['class']}, {row['domain']}") if len(tested.critical) > 1 else itemgetter("domain")
    columns: Columns = {
        "site": site,
        "found": lambda row: f"{row['hits']:,} of {row['tested']:,}",
        "recall, %": shown("accuracy"),
    }
    columns |= {"95 % interval": both_ends}
    columns |= {f"{TRACKS[1]}, %": shown("known")} if "known" in found else {}
    untested = [name for name in tested.critical if name not in set(found["class"])]
    notes = [f"There are no test samples of {', '.join(untested)}."] if untested else []
    if questions is not None:
        columns["--prior, %"] = shown("informed")
        notes.append(
            f"--prior: recall of answers that take into account how frequent classes are (`{questions.option}`)."
        )
    title = f"{CRITICAL}: {', '.join(tested.critical)}"
    answers = records_table(found.to_dict("records"), columns, title=title, note=" ".join(notes))
    return [*(flags_table(one, narrow=narrow) for one in flags), answers]

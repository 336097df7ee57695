"""How often a model is right: if every pair is equally important, and for samples as they come."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics import Answers, PairAccuracy
from crosstail.metrics._calibration import calibrated
from crosstail.metrics.as_they_come import by_prevalence
from crosstail.prediction.evaluate import Evaluated
from crosstail.reports.document.model import Block, Card, Heading, Table
from crosstail.reports.wording import percent
from crosstail.training.result import mean_counts, pooled
from crosstail.training.run import Run

ALIKE, COME = "every pair equal", "as they come"
MEANING = "Every pair equal: each (domain, class) pair is equally important. As they come: "
KNOWING = "With the option, answers take into account how frequent each class is at the site"
TRAIN = "train"


@dataclass(frozen=True, eq=False)
class Questions:
    """The accuracy of the default answers, and of those that take the prevalence of the classes into account."""

    domains: Sequence[str]
    default: PairAccuracy
    informed: PairAccuracy
    """By the answers of `predict --prior`."""
    weights: NDArray[np.float64]
    """How frequent each pair is (D, C) where samples come as they do."""
    prior: str = TRAIN

    @classmethod
    def of_runs(cls, runs: Sequence[Run]) -> "Questions | None":
        """Of a run, or of one for each fold; None unless it is calibrated and tested on domains it was trained on."""
        parts: list[Answers] = []
        for run in runs:
            known = run.held_out is not None and run.calibration is not None and run.calibration.samples
            if not known or run.result.spec.unseen_domains:
                return None
            assert run.held_out is not None and run.calibration is not None
            # After folds, the samples of every other one stand in for validation samples; all were held out.
            folds = run.result.estimate is not None and run.result.spec.folds is not None
            kept = run.held_out.every if folds else run.held_out.test
            parts.append(by_prevalence(calibrated(kept, run.calibration)))
        results = [run.result for run in runs]
        informed = PairAccuracy.of(Answers.pooled(parts))
        found = cls(results[0].domains, pooled(results), informed, mean_counts(results).astype(np.float64))
        return found if (found.weights * informed.totals).any() else None

    @classmethod
    def of_evaluated(cls, found: Evaluated, prior: str | None) -> "Questions | None":
        """Of an evaluation, where classes are as frequent as a prior says; None for an uncalibrated run."""
        answers = found.answers
        if found.weights is None or not (found.weights * answers.value().totals).any():
            return None
        informed = PairAccuracy.of(by_prevalence(answers))
        return cls(answers.domains, PairAccuracy.of(answers), informed, found.weights, prior or TRAIN)

    @property
    def option(self) -> str:
        """What `predict` needs to be told."""
        return f"--site SITE --prior {self.prior}"

    @property
    def meaning(self) -> str:
        """How pairs weigh in both questions, and what the option does."""
        come = "each pair weighs as much as it has training samples"
        if self.prior != TRAIN:
            come = f"the classes of a site are as frequent as --prior {self.prior} says"
        return f"{MEANING}{come}. {KNOWING} (`{self.option}`)."

    def rows(self) -> Iterator[tuple[str, list[tuple[float, tuple[float, float]]]]]:
        """Of all samples and of each site: its name and, for both answers to both questions, value and interval."""
        both = self.default, self.informed
        views = [view for one in both for view in (one.by_class(), one.weighted(self.weights))]
        yield "all", [(view.pair_average or 0.0, view.interval() or (0.0, 1.0)) for view in views]
        for d, name in enumerate(self.domains):
            if all(view.domains[d] is not None for view in views):
                yield name, [(view.domains[d] or 0.0, view.interval(d) or (0.0, 1.0)) for view in views]

    def to_json(self) -> dict[str, Any]:
        """By question and answers, of all samples and of each site; accuracies between 0 and 1."""
        names = [(ALIKE, "default"), (COME, "default"), (ALIKE, self.option), (COME, self.option)]
        rows = [
            {"site": site, "question": question, "answers": answers, "value": value, "low": low, "high": high}
            for site, cells in self.rows()
            for (question, answers), (value, (low, high)) in zip(names, cells, strict=True)
        ]
        return {"option": self.option, "accuracy": rows}


def _cell(found: tuple[float, tuple[float, float]]) -> str:
    value, (low, high) = found
    return f"{percent(value)} ({percent(low)} to {percent(high)})"


def summary(found: Questions) -> Table:
    """Two answers to two questions, for the terminal."""
    _, cells = next(found.rows())
    answers = ["default answers", f"with {found.option}"]
    rows = [[name, *map(_cell, cells[i : i + 2])] for name, i in zip(answers, (0, 2), strict=True)]
    title = "Two questions: % right with 95 % interval"
    return Table(title=title, header=["", ALIKE, COME], rows=rows, emphasised={(0, 1), (1, 2)}, note=found.meaning)


def questions_table(found: Questions) -> Table:
    """The same for all samples and for each site."""
    rows = [[name, *map(_cell, cells)] for name, cells in found.rows()]
    header = ["site", f"{ALIKE}: default", f"{COME}: default", f"{ALIKE}: with option", f"{COME}: with option"]
    note, some, every = f"% right, with 95 % interval. {found.meaning}", found.informed.totals, found.default.totals
    if some.sum() < every.sum():
        note += f" The answers with option are known for {some.sum():,} of {every.sum():,} test samples."
    return Table(header=header, rows=rows, note=note, emphasised={(i, j) for i in range(len(rows)) for j in (1, 4)})


def card_of(found: Questions) -> Card:
    """What is right of the samples as they come."""
    _, (_, come, _, informed) = next(found.rows())
    ends = " to ".join(map(percent, informed[1]))
    note = f"told how frequent classes are ({found.option}); 95 % interval {ends}; default answers {percent(come[0])} %"
    return Card("Samples as they come", f"{percent(informed[0])} %", note)


def question_blocks(found: Questions | None) -> Iterator[Block]:
    """The section, if the run is calibrated."""
    if found is not None:
        yield Heading("Two questions", 3)

        yield questions_table(found)

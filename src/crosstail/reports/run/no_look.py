"""How many inputs need no look by a person, and how many of these are right, for every coverage asked for."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.metrics import Answers, PairAccuracy
from crosstail.prediction.cross_fit import covered
from crosstail.prediction.sets import COVERAGE
from crosstail.reports.charts import colours, palette
from crosstail.reports.document.model import Block, Card, Cards, Chart, Choice, Code, Heading, Slider, Table, Text
from crosstail.reports.run.certainty_data import Certainty
from crosstail.reports.run.tested import share_of
from crosstail.reports.run.two_questions import ALIKE, COME, TRAIN
from crosstail.reports.vega_lite import draw, facet, field, layer
from crosstail.reports.wording import interval, number, percent

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.85, COVERAGE, 0.95, 0.98, 0.99)
SITES = 30  # in a table
MOST = 2**24  # probabilities of the samples that this is computed from, a random part of more
Sets = Callable[[float, str | None], pd.DataFrame]
"""A row for each sample, as `covered` has it, by the coverage and the prior."""


@dataclass(frozen=True, eq=False)
class Point:
    """The answers with a coverage: which need no look, and which of these are right, as pairs are weighted."""

    question: str
    prior: str | None
    coverage: float
    alone: PairAccuracy
    right: PairAccuracy

    @property
    def share(self) -> float:
        return self.alone.pair_average or 0.0

    @property
    def interval(self) -> str:
        """The 95 % interval of how many are right of those that need no look; empty if there are none."""
        ends = self.right.interval()
        return "" if ends is None else interval(100 * ends[0], 100 * ends[1])

    def rows(self, domains: Sequence[str]) -> Iterator[list[str]]:
        """Of each site with samples: its name, their number, how many need no look, and how many of these are right."""
        for d, name in enumerate(domains):
            if (share := self.alone.domains[d]) is not None:
                ends = self.right.interval(d) if self.right.domains[d] is not None else None
                shown = "" if ends is None else interval(100 * ends[0], 100 * ends[1])
                tested = f"{int(self.alone.totals[d].sum()):,}"
                yield [name, tested, percent(share), percent(self.right.domains[d]), shown]


def points(test: Answers, weights: NDArray[np.float64], sets: Sets, prior: str) -> list[Point]:
    """For both questions; `weights` (D, C) are how frequent pairs are where samples come as they do."""
    found = []
    for question, own, given in ((ALIKE, np.ones(test.counts.shape), None), (COME, weights, prior)):
        for coverage in COVERAGES:
            table = sets(coverage, given)
            sure = ~table["review"].to_numpy()
            alone = share_of(test, sure).weighted(own)
            right = share_of(test, table["inside"].to_numpy(), sure).weighted(own * np.nan_to_num(alone.matrix))
            found.append(Point(question, given, coverage, alone, right))
    return found


def points_of_run(about: Certainty) -> list[Point]:
    """Of the test samples of a run, with thresholds from others of them; none if it was not calibrated."""
    test, given, questions = about.samples, about.given, about.questions
    if questions is None or len(test) < 2:
        return []
    if (most := MOST // len(test.classes)) < len(test):
        test = test.keep(np.sort(np.random.default_rng(0).permutation(len(test))[:most]))
    return points(test, questions.weights, lambda at, prior: covered(test, given, at, prior, about.recalls), TRAIN)


def no_look_blocks(found: Sequence[Point], domains: Sequence[str]) -> Iterator[Block]:
    """The section, if there are points, with the options of `predict` for each."""
    if not found:
        return
    yield Heading("What needs no look?")
    header = ["site", "tested", "need no look, %", "right of these, %", "95 % interval"]
    choices = []
    for one in found:
        label = f"{one.question} (default)" if one.prior is None else f"{one.question} (--prior {one.prior})"
        option = ["--coverage", f"{one.coverage:g}", *([] if one.prior is None else ["--prior", one.prior])]
        known = f"of those that need no look; 95 % interval {one.interval}" if one.interval else "none needs no look"
        cards = [
            Card("Need no look", f"{percent(one.share)} %", "of the answers: their set has exactly one class"),
            Card("Right of these", f"{percent(one.right.pair_average)} %", known),
            Card("Need a look", f"{percent(1 - one.share)} %", "of the answers"),
        ]
        sites = list(one.rows(domains))
        more = f"The first {SITES} of {len(sites)} sites." if len(sites) > SITES else ""
        by_site = Table(header=header, rows=sites[:SITES], note=more)
        code = Code(shlex.join(option))
        choices.append(Choice(label, f"{100 * one.coverage:g} %", [Cards(cards), code, by_site]))
    rows = [
        [one.question, f"{one.coverage:g}", percent(one.share), percent(one.right.pair_average), one.interval]
        for one in found
    ]
    header = ["question", "--coverage", *header[2:]]
    table = Table(header=header, rows=rows)
    start = next(i for i, one in enumerate(found) if one.coverage == COVERAGE)
    yield Slider("sets that contain the true class", choices, start, table)
    yield Text(
        "The more often sets have to contain the true class, the more answers need a look by a person, and the more of "
        "the others are right. `crosstail predict` with `--site` and these options works at this point. Measured on "
        "test samples, each with thresholds from others."
    )
    yield _curves(found)


def _curves(found: Sequence[Point]) -> Chart:
    rows = []
    for one in found:
        at = {"question": one.question, "coverage": 100 * one.coverage}
        for what, of in (("need no look", one.alone), ("right of these", one.right)):
            low, high = of.interval() or (np.nan, np.nan)
            value = np.nan if of.pair_average is None else of.pair_average
            rows.append(at | {"what": what, "value": 100 * value, "low": 100 * low, "high": 100 * high})
    table = pd.DataFrame(rows).dropna()
    axes = {
        "x": field("coverage:Q", title="sets that contain the true class, %", scale={"zero": False}),
        "color": colours("what", palette(["need no look", "right of these"]), orient="top"),
    }
    y = {"title": "% of the answers", "scale": {"domain": [0, 100]}}
    band = draw().mark("area", opacity=0.2).encode(y=field("low:Q", **y), y2="high")
    line = draw().mark("line", point=True).encode(y=field("value:Q", **y), tooltip=["what:N", "coverage:Q", "value:Q"])
    panel = layer(band, line, width=300, height=220, encoding=axes)
    drawing = facet(panel, table, field("question:N", title=None), columns=2)
    best = number(max(100 * one.share for one in found if one.coverage == COVERAGE), 0)
    alternative = (
        f"Lines: answers that need no look over the coverage, {best} % at {COVERAGE:g}, and how many are right"
    )
    return Chart("no-look", "", drawing, alternative)

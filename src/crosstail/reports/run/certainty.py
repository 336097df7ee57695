"""How far to trust the probabilities of a run: reliability, prediction sets and probable label errors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration, balanced_weights
from crosstail.metrics._reliability import calibration_error, reliability
from crosstail.prediction.sets import COVERAGE
from crosstail.reports.charts import INK, colours, palette, tip
from crosstail.reports.document.model import Block, Chart, Columns, Heading, Table, Text, records_table
from crosstail.reports.run.certainty_data import FILE, SETS, Certainty, pair_sets, rows_by, set_rows, summary
from crosstail.reports.run.suspects import suspects
from crosstail.reports.vega_lite import draw, field, layer
from crosstail.reports.wording import both_ends, counts, interval, number, shown
from crosstail.training.result import RunResult
from crosstail.training.run import Run

NO_SAMPLES = "There are no validation samples to calibrate on."
SITES, LEAST_BINS = 8, 3  # domains up to which each has a curve, and fewest points of one
CLASSES = 30  # in a table
TITLES = {"log_loss": "log loss", "macro_f1": "macro F1", "auroc": "AUROC", "brier": "Brier score"}


def certainty(run: Run, about: Certainty | None) -> Iterator[Block]:
    """The section, if the run has kept the probabilities of test samples."""
    if about is None:
        return
    yield Heading("How sure is it?")
    yield from _calibrated(run.result, about)
    if about.sets is not None:
        yield from _sets(run.result, about.sets)
    yield from suspects(run)


def all_figures(about: Certainty | None) -> Iterator[Block]:
    """Every metric of the probabilities, by domain and by class, for an appendix."""
    if about is None:
        return
    yield Heading("Metrics of the probabilities", 3)
    table = _reliability(about.samples, about.given, about.metrics)
    yield replace(table, emphasised={(len(table.rows) - 1, j) for j in range(len(table.header))})
    yield from _classes(about.metrics)


@dataclass(frozen=True)
class Confidence:
    """Confidence of a model in its answers (N,), with the domain unknown; all pairs are weighted equally."""

    said: NDArray[np.float64]
    hit: NDArray[np.bool_]
    weights: NDArray[np.float64]
    domain: NDArray[np.int64]

    @classmethod
    def of(cls, test: Answers, given: Calibration | None) -> "Confidence":
        """From test samples, with calibrated probabilities if requested."""
        assert test.log_p is not None
        p = np.exp(test.log_p.astype(np.float64)) if given is None else given.probabilities(test.log_p, -1, ())
        weights = balanced_weights(test.y, test.domain, p.shape[1])
        return cls(p.max(1).astype(np.float64), test.correct, weights, test.domain)

    def error(self, own: NDArray[np.bool_] | slice = slice(None)) -> tuple[float, float, float]:
        """The calibration error of some samples with its 95 % interval, in points."""
        found, low, high = calibration_error(self.said[own], self.hit[own], self.weights[own])
        return 100 * found, 100 * low, 100 * high

    def cancels(self) -> bool:
        """Whether the error is larger than in each of several domains, because some of them have fewer bins."""
        every = [self.domain == d for d in np.unique(self.domain)]
        larger = self.error()[0] > max(self.error(own)[0] for own in every)
        return len(every) > 1 and larger and len(self._bins(slice(None))) > min(len(self._bins(own)) for own in every)

    def curves(self, domains: Sequence[str], together: str = "all domains") -> pd.DataFrame:
        """Confidence and accuracy in %, by bins of equal weight: of each domain with several, and if some lack them,
        of all samples.
        """
        groups = {name: self.domain == d for d, name in enumerate(domains)}
        every = {name: self._bins(own) for name, own in groups.items() if own.any()}
        parts = {name: bins for name, bins in every.items() if len(bins) >= LEAST_BINS and len(every) <= SITES}
        if len(parts) < len(every):
            parts = {together: self._bins(slice(None))} | parts
        table = pd.concat([part.assign(domain=name) for name, part in parts.items()])
        return table.assign(confidence=100 * table["confidence"], accuracy=100 * table["accuracy"])

    def _bins(self, own: NDArray[np.bool_] | slice) -> pd.DataFrame:
        return reliability(self.said[own], self.hit[own], self.weights[own])


RELIABILITY = ["tested", "temperature", "calibration error, points", "95 % interval", *TITLES.values()]
EVERY = "all, domain unknown"
RELIABILITY_NOTE = "Temperatures apply where the domain is known; the rest is measured with it unknown."


def reliability_rows(test: Answers, given: Calibration, table: pd.DataFrame) -> list[list[str]]:
    """A row for each domain with test samples, and for all: its name and what `RELIABILITY` names.

    `table` is from `calibrated_metrics`.
    """
    confidence, rows = Confidence.of(test, given), []
    parts = {name: test.domain == d for d, name in enumerate(test.domains)} | {EVERY: np.ones(len(test), bool)}
    for row in pd.concat([rows_by(table, "domain"), rows_by(table).assign(domain=EVERY)]).to_dict("records"):
        error, low, high = confidence.error(parts[row["domain"]])
        temperature = 1 / given.sites.get(row["domain"], given.sharpness)
        about = [row["domain"], f"{row['samples']:,}", number(temperature, 2), number(error), interval(low, high)]
        rows.append([*about, *(number(row[name], 3) for name in TITLES)])
    return rows


def _reliability(test: Answers, given: Calibration, metrics: pd.DataFrame) -> Table:
    return Table(header=["domain", *RELIABILITY], rows=reliability_rows(test, given, metrics), note=RELIABILITY_NOTE)


def differences(table: Table) -> Table:
    """A table of `RELIABILITY` with the differences between confidence and accuracy alone, in words."""
    start = table.header.index("tested")
    own = [*range(start + 1), start + 2, start + 3]
    rows = [[row[j] for j in own] for row in table.rows]
    return replace(
        table, header=[*table.header[: start + 1], "difference, points", "95 % interval"], rows=rows, note=""
    )


def _calibrated(result: RunResult, about: Certainty) -> Iterator[Block]:
    given, test = about.given, about.samples
    confidence, before = Confidence.of(test, given), Confidence.of(test, None)
    error, low, high = confidence.error()
    used = given.samples and given.sharpness != 1
    compared = f"; before calibration it was {number(before.error()[0])}" if used else ""
    source = _source(given, helped=error <= before.error()[0])
    tested = int(np.sum(result.tested().totals))
    if len(test.y) < tested:
        source += f" With so many classes, this section is about a random {len(test.y):,} of {tested:,} test samples."
    yield Text(
        f"When the model says 80 %, is it right in 80 of 100 cases? On the test samples, with all pairs weighted "
        f"equally, confidence and accuracy differ by {number(error)} points on average (95 % interval "
        f"{interval(low, high)}){compared}. {source}"
    )
    if confidence.cancels():
        yield Text(
            "This is more than in each domain: where samples are few, they are compared in few groups of similar "
            "confidence, in which too much and too little of it cancel out."
        )
    table = _reliability(test, given, about.metrics)
    yield differences(replace(table, note="", emphasised={(len(table.rows) - 1, j) for j in range(4)}))
    yield from reliability_chart(confidence.curves(result.domains))


def _source(given: Calibration, helped: bool) -> str:
    """Where the temperature comes from, and why it is used or not."""
    if not given.samples:
        return NO_SAMPLES
    fitted = f"{given.samples:,} validation samples"
    if given.sharpness == 1:
        return (
            f"Scores are used as they are: temperatures from parts of the {fitted} were no better on the other parts."
        )
    despite = "" if helped else ", though not this difference on the test samples"
    return f"Temperatures come from {fitted}: from parts of them, they lower the log loss of the other parts{despite}."


def reliability_chart(curves: pd.DataFrame) -> Iterator[Chart]:
    """Accuracy over confidence, if the model is not equally sure of everything."""
    if curves["confidence"].nunique() < 2:
        return
    scale = {"domain": [0, 100]}
    axes = {
        "x": field("confidence:Q", title="what the model says, %", scale=scale),
        "y": field("accuracy:Q", title="how often it is right, %", scale=scale),
    }
    even = pd.DataFrame({"confidence": [0, 100], "accuracy": [0, 100]})
    base = draw(curves).mark("line", point=True)
    lines = base.encode(
        color=colours("domain", palette(dict.fromkeys(curves["domain"])), orient="top"),
        tooltip=[tip("confidence", ".0f"), tip("accuracy", ".0f"), tip("samples", ","), "domain:N"],
    )
    diagonal = draw(even).mark("line", color=INK, strokeDash=[4, 4])
    drawing = layer(diagonal, lines, width="container", height=300, encoding=axes)
    yield Chart("reliability", "", drawing, "Lines: accuracy over confidence by domain", widest=640)


def _classes(table: pd.DataFrame) -> Iterator[Block]:
    found = rows_by(table, "class")
    worst = found.sort_values("macro_f1", kind="stable").head(CLASSES) if len(found) > CLASSES else found
    shares = 100 * worst[["accuracy", "macro_f1", "auroc", "calibration_error", "calibration_low", "calibration_high"]]
    worst = worst.assign(**shares).rename(columns={"calibration_low": "low", "calibration_high": "high"})
    columns: Columns = {"class": itemgetter("class"), "tested": counts("samples"), "accuracy, %": shown("accuracy")}
    columns |= {"F1, %": shown("macro_f1"), "AUROC, %": shown("auroc"), "log loss": shown("log_loss", 3)}
    columns |= {"Brier score": shown("brier", 3), "calibration error, points": shown("calibration_error")}
    columns |= {"95 % interval": both_ends}
    title = "By class, in all domains" if len(found) <= CLASSES else f"The {CLASSES} classes with the lowest F1"
    note = (
        "All samples are weighted equally; F1 and AUROC are of the class against all others. "
        f"`{FILE}` has all metrics of every domain, class and pair."
    )
    yield records_table(worst.to_dict("records"), columns, title=title, note=note)


def _sets(result: RunResult, table: pd.DataFrame) -> Iterator[Block]:
    yield Heading("Prediction sets", 3)
    inside, size, review = summary(table).values()
    yield Text(
        f"With `--coverage {COVERAGE}` and `--site`, `crosstail predict` adds a set of classes that contains "
        f"the true one in {100 * COVERAGE:.0f} of 100 cases, for every pair with enough test samples. On these test "
        f"samples, each with thresholds from others, {100 * inside:.1f} % of the sets do. They have {size:.1f} classes "
        f"on average, and a person should look at {100 * review:.0f} % of the inputs, whose set has more than one."
    )
    yield Table(header=["domain", *SETS], rows=set_rows(table, result.domains))
    yield pair_sets(table, result.domains, result.classes)


def certainty_card(run: Run, about: Certainty | None) -> list[Block]:
    """Reliability and prediction sets, for a model card."""
    if about is None or about.sets is None:
        return []
    prior = "Probabilities are for equally frequent pairs; `crosstail predict --prior` corrects them to a prevalence."
    blocks = [Text(prior), *_calibrated(run.result, about), *_sets(run.result, about.sets)]
    return [block for block in blocks if not isinstance(block, Chart)]

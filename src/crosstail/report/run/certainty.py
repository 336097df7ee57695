"""How far to trust the probabilities of a run: reliability, prediction sets and probable label errors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data import ImageFiles
from crosstail.data.splits.groups import fold_of
from crosstail.metrics.calibration import Calibration, balanced_weights
from crosstail.metrics.probabilities import calibration_error, metric_table, reliability
from crosstail.prediction.label_errors import label_errors
from crosstail.prediction.sets import COVERAGE, PredictionSets
from crosstail.report.charts import INK, colours, palette, tip
from crosstail.report.document.model import Block, Chart, Gallery, Heading, Picture, Table, Text, bullets
from crosstail.report.run.reported import ReportedRun
from crosstail.report.vega_lite import draw, field, layer
from crosstail.report.wording import interval, number
from crosstail.training.probabilities import Probabilities

FOLDS = 5
NO_SAMPLES = "There are no validation samples to calibrate on."
SITES, LEAST_BINS = 8, 3  # most curves in one chart, and fewest points of one
SUSPECTS, SIDE = 12, 160  # label errors that are shown, and pixels of their pictures
TITLES = {"log_loss": "log loss", "macro_f1": "macro F1", "auroc": "AUROC", "brier": "Brier score"}


def certainty(run: ReportedRun) -> Iterator[Block]:
    """The section, if the run has kept the probabilities of test samples."""
    kept, given = run.probabilities, run.calibration
    if kept is None or given is None or not kept.test.any():
        return
    test = kept.part(test=True)
    yield Heading("How sure is it?")
    yield from _calibrated(run, given, test)
    yield from _sets(run, given, test)
    yield from suspects(run, kept, given)


@dataclass(frozen=True)
class Confidence:
    """How sure a model is of its answers (N,), with the domain unknown; every pair weighs the same."""

    said: NDArray[np.float64]
    hit: NDArray[np.bool_]
    weights: NDArray[np.float64]
    domain: NDArray[np.int64]

    @classmethod
    def of(cls, test: Probabilities, given: Calibration | None) -> "Confidence":
        """On test samples, calibrated if so."""
        p = np.exp(test.unknown.astype(np.float64)) if given is None else given.probabilities(test.unknown, -1, ())
        weights = balanced_weights(test.y, test.domain, p.shape[1])
        return cls(p.max(1).astype(np.float64), test.predicted == test.y, weights, test.domain)

    def error(self, own: NDArray[np.bool_] | slice = slice(None)) -> tuple[float, float, float]:
        """The calibration error of some samples with its 95 % interval, in points."""
        found, low, high = calibration_error(self.said[own], self.hit[own], self.weights[own])
        return 100 * found, 100 * low, 100 * high

    def curves(self, domains: Sequence[str], together: str = "all domains") -> pd.DataFrame:
        """Confidence and accuracy in %, by bins of equal weight: of each domain if all have some, or of all samples."""
        groups = {name: self.domain == d for d, name in enumerate(domains)}
        parts = {name: self._bins(own) for name, own in groups.items() if own.any()}
        if len(parts) > SITES or min(map(len, parts.values())) < LEAST_BINS:
            parts = {together: self._bins(slice(None))}
        table = pd.concat([part.assign(domain=name) for name, part in parts.items()])
        return table.assign(confidence=100 * table["confidence"], accuracy=100 * table["accuracy"])

    def _bins(self, own: NDArray[np.bool_] | slice) -> pd.DataFrame:
        return reliability(self.said[own], self.hit[own], self.weights[own])


RELIABILITY = ["tested", "temperature", "calibration error, points", "95 % interval", *TITLES.values()]
RELIABILITY_NOTE = "Temperatures are those where the domain is known; the rest is measured with it unknown."
SETS = ["tested", "covered, %", "classes per set", "to review, %"]


def reliability_rows(
    test: Probabilities, given: Calibration, domains: list[str], classes: list[str]
) -> list[list[str]]:
    """A row for each domain with test samples: its name, and what `RELIABILITY` names."""
    said, confidence, rows = given.probabilities(test.unknown, -1, ()), Confidence.of(test, given), []
    for row in metric_table(said, test.y, test.domain, "domain", domains=domains, classes=classes).to_dict("records"):
        error, low, high = confidence.error(test.domain == domains.index(row["domain"]))
        temperature = number(1 / given.sites.get(row["domain"], given.sharpness), 2)
        about = [row["domain"], f"{row['samples']:,}", temperature, number(error), interval(low, high)]
        rows.append([*about, *(number(row[name], 3) for name in TITLES)])
    return rows


def set_rows(table: pd.DataFrame, domains: list[str]) -> list[list[str]]:
    """A row for each domain with test samples: its name, and what `SETS` names; the table is that of `covered`."""
    parts = ((name, table[table["domain"] == d]) for d, name in enumerate(domains))
    return [
        [
            name,
            f"{len(own):,}",
            number(100 * own["inside"].mean()),
            number(own["size"].mean(), 2),
            number(100 * (own["size"] != 1).mean(), 0),
        ]
        for name, own in parts
        if len(own)
    ]


def _calibrated(run: ReportedRun, given: Calibration, test: Probabilities) -> Iterator[Block]:
    confidence, before = Confidence.of(test, given), Confidence.of(test, None)
    error, low, high = confidence.error()
    source = f"Temperatures come from {given.samples:,} validation samples." if given.samples else NO_SAMPLES
    tested = int(np.sum(run.result.tested().totals))
    if len(test.y) < tested:
        source += f" With so many classes, this section is about a random {len(test.y):,} of {tested:,} test samples."
    yield Text(
        f"When the model says 80 %, is it right in 80 of 100 cases? On the test samples, with every pair weighing the "
        f"same, confidence and accuracy differ by {number(error)} points on average (95 % interval "
        f"{interval(low, high)}); before calibration it was {number(before.error()[0])}. {source}"
    )
    rows = reliability_rows(test, given, run.result.domains, run.result.classes)
    yield Table(header=["domain", *RELIABILITY], rows=rows, note=RELIABILITY_NOTE)
    yield from reliability_chart(confidence.curves(run.result.domains))


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


def covered(test: Probabilities, given: Calibration, domains: list[str], coverage: float = COVERAGE) -> pd.DataFrame:
    """A row for each test sample: domain, class, whether its set contains it, and the size of the set.

    Thresholds come from other test samples, in turns, with groups kept whole.
    """
    said = given.probabilities(test.told(), test.domain, domains)
    own, pair = said[np.arange(len(said)), test.y], test.domain * said.shape[1] + test.y
    members, sizes = np.ones(said.shape, bool), {"num_sites": len(domains), "num_classes": said.shape[1]}
    groups = len(pair) if test.group is None else len(np.unique(test.group))
    fold = fold_of(pair, test.group, min(FOLDS, groups), seed=0) if groups > 1 else np.zeros(len(pair), np.int64)
    for k in range(int(fold.max()) + 1):
        rest, now = fold != k, fold == k
        sets = PredictionSets.calibrated(own[rest], test.y[rest], test.domain[rest], **sizes, coverage=coverage)
        members[now] = sets.members(said[now], test.domain[now])
    inside = members[np.arange(len(pair)), test.y]
    return pd.DataFrame({"domain": test.domain, "class": test.y, "inside": inside, "size": members.sum(1)})


def _sets(run: ReportedRun, given: Calibration, test: Probabilities) -> Iterator[Block]:
    if len(test.y) < 2:
        return
    result, table = run.result, covered(test, given, run.result.domains)
    yield Heading("Prediction sets", 3)
    inside, size, review = table["inside"].mean(), table["size"].mean(), (table["size"] != 1).mean()
    yield Text(
        f"With `--coverage {COVERAGE}` and `--site`, `crosstail predict` adds a set of classes that contains "
        f"the true one in {100 * COVERAGE:.0f} of 100 cases, for every pair with enough test samples. On these test "
        f"samples, each with thresholds from others, {100 * inside:.1f} % of the sets do. They have {size:.1f} classes "
        f"on average, and a person should look at {100 * review:.0f} % of the inputs, whose set has more than one."
    )
    yield Table(header=["domain", *SETS], rows=set_rows(table, result.domains))


def certainty_card(run: ReportedRun) -> list[Block]:
    """Reliability and prediction sets of each domain, for a model card."""
    kept, given, domains = run.probabilities, run.calibration, run.result.domains
    if kept is None or given is None or kept.test.sum() < 2:
        return []
    test = kept.part(test=True)
    sets = {name: row for name, *row in set_rows(covered(test, given, domains), domains)}
    rows = [
        [*row[:2], *row[3:5], *sets[row[0]][1:]] for row in reliability_rows(test, given, domains, run.result.classes)
    ]
    header = ["domain", *RELIABILITY[:1], *RELIABILITY[2:4], *SETS[1:]]
    error, low, high = Confidence.of(test, given).error()
    about = [
        f"Confidence and accuracy differ by {number(error)} points on average over pairs (95 % interval "
        f"{interval(low, high)}), after calibration on {given.samples:,} samples.",
        f"Prediction sets are those of `--coverage {COVERAGE}` with thresholds for every pair. A person should look "
        "where the set has not exactly one class.",
        "Probabilities are for equally frequent pairs; `crosstail predict --prior` corrects them to a prevalence.",
    ]
    return [bullets(about), Table(header=header, rows=rows)]


def label_error_note(run: ReportedRun) -> str:
    """How many held-out samples are probably labelled wrongly; empty if none are."""
    kept, given = run.probabilities, run.calibration
    if kept is None or given is None or not len(kept.y):
        return ""
    found = len(label_errors(given.probabilities(kept.unknown, -1, ()), kept.y))
    where = f"`crosstail audit {run.result.spec.dataset} --run {run.folder}` lists them"
    return f"{found:,} of {len(kept.y):,} held-out samples are probably labelled wrongly: {where}." if found else ""


def suspects(run: ReportedRun, kept: Probabilities, given: Calibration) -> Iterator[Block]:
    """Held-out samples whose label is probably wrong."""
    result = run.result
    said = given.probabilities(kept.unknown, -1, result.domains)
    found = label_errors(said, kept.y)
    if found.empty:
        return
    yield Heading("Probable label errors", 3)
    yield Text(
        f"{len(found):,} of {len(kept.y):,} held-out samples look as if they had another class, the "
        f"most suspicious first. Some of them are mistakes of the model: look before you correct a label."
    )
    shown = found.head(SUSPECTS)
    pictures, lines = [], []
    for i, seems in zip(shown["row"], shown["seems"], strict=True):
        row, label, other = int(kept.row[i]), result.classes[kept.y[i]], result.classes[seems]
        x = None if run.dataset is None else run.dataset.x
        place = x.paths(row)[0] if isinstance(x, ImageFiles) else f"sample {row}"
        lines.append(f"{place}: labelled {label}, seems {other} ({result.domains[kept.domain[i]]})")
        if x is not None and len(result.input_shape) == 3:
            try:
                pictures.append(Picture(x[row], f"{label} → {other}?", lines[-1], place))
            except (OSError, ValueError):  # a file was removed or damaged since
                continue
    yield Gallery("label → what it seems to be", pictures, SIDE) if len(pictures) == len(lines) else bullets(lines)

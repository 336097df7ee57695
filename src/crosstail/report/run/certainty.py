"""How far to trust the probabilities of a run: reliability, prediction sets and probable label errors."""

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data import ImageFiles
from crosstail.data.splits.groups import fold_of
from crosstail.metrics.calibration import Calibration, balanced_weights
from crosstail.metrics.probabilities import calibration_error, metric_table, reliability
from crosstail.prediction.label_errors import label_errors
from crosstail.prediction.sets import PredictionSets
from crosstail.report.charts import INK, colours, palette, tip
from crosstail.report.document.model import Block, Chart, Gallery, Heading, Picture, Table, Text, bullets
from crosstail.report.run.reported import ReportedRun
from crosstail.report.wording import interval, number
from crosstail.training.probabilities import Probabilities

COVERAGE, FOLDS = 0.9, 5
NO_SAMPLES = "There are no validation samples to calibrate on."
SITES, LEAST_BINS = 8, 3  # most curves in one chart, and fewest points of one
SUSPECTS, SIDE = 12, 160  # label errors that are shown, and pixels of their pictures
TITLES = {"log_loss": "log loss", "macro_f1": "macro F1", "auroc": "AUROC", "brier": "Brier score"}


def certainty(run: ReportedRun) -> Iterator[Block]:
    """The section, if the run has kept the probabilities of test samples."""
    kept = run.probabilities
    if kept is None or not kept.test.any():
        return
    given = kept.calibration(run.result.domains)
    test = kept.part(test=True)
    said = given.probabilities(test.unknown, -1, run.result.domains)
    yield Heading("How sure is it?")
    yield from _calibrated(run, given, test, said)
    yield from _sets(run, given, test)
    yield from suspects(run, kept, given)


def _calibrated(
    run: ReportedRun, given: Calibration, test: Probabilities, said: NDArray[np.float32]
) -> Iterator[Block]:
    confidence, hit = said.max(1).astype(np.float64), test.predicted == test.y
    weights = balanced_weights(test.y, test.domain, said.shape[1])
    before = calibration_error(np.exp(test.unknown.max(1).astype(np.float64)), hit, weights)[0]
    error, low, high = (100 * value for value in calibration_error(confidence, hit, weights))
    source = f"Temperatures come from {given.samples:,} validation samples." if given.samples else NO_SAMPLES
    yield Text(
        f"When the model says 80 %, is it right in 80 of 100 cases? On the test samples, with every pair weighing the "
        f"same, confidence and accuracy differ by {number(error)} points on average (95 % interval "
        f"{interval(low, high)}); before calibration it was {number(100 * before)}. {source}"
    )
    names: dict[str, Any] = {"domains": run.result.domains, "classes": run.result.classes}
    rows = []
    for row in metric_table(said, test.y, test.domain, "domain", **names).to_dict("records"):
        own = test.domain == run.result.domains.index(row["domain"])
        error, low, high = (100 * value for value in calibration_error(confidence[own], hit[own], weights[own]))
        about = [row["domain"], f"{row['samples']:,}", number(1 / given.sites[row["domain"]], 2)]
        rows.append([*about, number(error), interval(low, high), *(number(row[name], 3) for name in TITLES)])
    header = ["domain", "tested", "temperature", "calibration error, points", "95 % interval", *TITLES.values()]
    note = "Temperatures are those where the domain is known; the rest is measured with it unknown."
    yield Table(header=header, rows=rows, note=note)
    curves = _curves(confidence, hit, weights, test, run.result.domains)
    if curves["confidence"].nunique() > 1:
        chart = _reliability_chart(curves)
        yield Chart("reliability", "", chart, "Lines: accuracy over confidence by domain", widest=640)


def _curves(
    confidence: NDArray[np.float64],
    hit: NDArray[np.bool_],
    weights: NDArray[np.float64],
    test: Probabilities,
    domains: list[str],
) -> pd.DataFrame:
    """Confidence and accuracy in %, by bins of equal weight, of each domain if all have some, or of all together."""
    groups = {name: test.domain == d for d, name in enumerate(domains)}
    parts = {name: reliability(confidence[own], hit[own], weights[own]) for name, own in groups.items() if own.any()}
    if len(parts) > SITES or min(map(len, parts.values())) < LEAST_BINS:
        parts = {"all domains": reliability(confidence, hit, weights)}
    table = pd.concat([part.assign(domain=name) for name, part in parts.items()])
    return table.assign(confidence=100 * table["confidence"], accuracy=100 * table["accuracy"])


def _reliability_chart(curves: pd.DataFrame) -> alt.LayerChart:
    scale = alt.Scale(domain=[0, 100])
    x = alt.X("confidence:Q", title="what the model says, %", scale=scale)
    y = alt.Y("accuracy:Q", title="how often it is right, %", scale=scale)
    even = alt.Chart(pd.DataFrame({"confidence": [0, 100], "accuracy": [0, 100]}))
    diagonal = even.mark_line(color=INK, strokeDash=[4, 4]).encode(x=x, y=y)
    told = [tip("confidence", ".0f"), tip("accuracy", ".0f"), tip("samples", ","), "domain:N"]
    lines = (
        alt.Chart(curves)
        .mark_line(point=True)
        .encode(x=x, y=y, color=colours("domain", palette(dict.fromkeys(curves["domain"])), orient="top"), tooltip=told)
    )
    return (diagonal + lines).properties(width="container", height=300)


def covered(test: Probabilities, given: Calibration, domains: list[str], coverage: float = COVERAGE) -> pd.DataFrame:
    """A row for each test sample: domain, class, whether its set contains it, and the size of the set.

    Thresholds come from other test samples, in turns, with groups kept whole.
    """
    said = given.probabilities(test.told(), test.domain, domains)
    pair = test.domain * said.shape[1] + test.y
    members = np.ones(said.shape, bool)
    groups = len(pair) if test.group is None else len(np.unique(test.group))
    fold = fold_of(pair, test.group, min(FOLDS, groups), seed=0) if groups > 1 else np.zeros(len(pair), np.int64)
    for k in range(int(fold.max()) + 1):
        rest, own = fold != k, fold == k
        sets = PredictionSets.calibrated(
            said[rest], test.y[rest], test.domain[rest], num_sites=len(domains), coverage=coverage
        )
        members[own] = sets.members(said[own], test.domain[own])
    inside = members[np.arange(len(pair)), test.y]
    return pd.DataFrame({"domain": test.domain, "class": test.y, "inside": inside, "size": members.sum(1)})


def _sets(run: ReportedRun, given: Calibration, test: Probabilities) -> Iterator[Block]:
    if len(test.y) < 2:
        return
    result, table = run.result, covered(test, given, run.result.domains)
    yield Heading("Prediction sets", 3)
    inside, size, review = table["inside"].mean(), table["size"].mean(), (table["size"] != 1).mean()
    yield Text(
        f"`crosstail predict {run.folder} FILES --site NAME --coverage {COVERAGE}` adds a set of classes that contains "
        f"the true one in {100 * COVERAGE:.0f} of 100 cases, for every pair with enough test samples. On these test "
        f"samples, each with thresholds from others, {100 * inside:.1f} % of the sets do. They have {size:.1f} classes "
        f"on average, and a person should look at {100 * review:.0f} % of the inputs, whose set has more than one."
    )
    parts = [(name, table[table["domain"] == d]) for d, name in enumerate(result.domains)]
    rows = [
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
    yield Table(header=["domain", "tested", "covered, %", "classes per set", "to review, %"], rows=rows)


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

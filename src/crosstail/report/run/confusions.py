"""What the worst pairs are mistaken for, and which test samples fail."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from crosstail.data import DomainDataset, ImageFiles
from crosstail.report.charts import PALETTE, colours, names, tip
from crosstail.report.document.model import Block, Chart, Gallery, Heading, Picture, Text, bullets
from crosstail.report.run.reported import ReportedRun
from crosstail.report.run.tables import pair_table, worst_table
from crosstail.training.predictions import Predictions
from crosstail.training.result import RunResult

Pair = tuple[int, int]

PAIRS = 8  # of the worst
CLASSES = 5  # most frequent wrong answers per pair
SAMPLES = 6  # failures per pair
KINDS = {"right": PALETTE[0], "wrong": PALETTE[5], "wrong, other classes": PALETTE[1]}


def failing_pairs(result: RunResult) -> list[Pair]:
    """The worst pairs with at least one failure, as (domain, class) indices."""
    worst = worst_table(pair_table([result]), PAIRS)
    worst = worst[worst["hits"] < worst["tested"]]
    named = zip(worst["domain"], worst["class"], strict=True)
    return [(result.domains.index(domain), result.classes.index(name)) for domain, name in named]


def confusion_table(result: RunResult, predictions: Predictions, pairs: Sequence[Pair]) -> pd.DataFrame:
    """One row per pair and answer: pair, answer, samples, share in %, kind; rare answers share one row."""
    rows = []
    for d, c in pairs:
        given = predictions.predicted[(predictions.domain == d) & (predictions.y == c)]
        counts = np.bincount(given, minlength=len(result.classes))
        right, counts[c] = counts[c], 0
        order = [int(k) for k in np.argsort(-counts, kind="stable") if counts[k]]
        answers = [(result.classes[c], right, "right")]
        answers += [(result.classes[k], counts[k], "wrong") for k in order[:CLASSES]]
        answers.append((f"others: {len(order) - CLASSES}", counts[order[CLASSES:]].sum(), "wrong, other classes"))
        pair = _name(result, (d, c))
        rows += [(pair, answer, int(n), 100 * n / len(given), kind) for answer, n, kind in answers if n]
    return pd.DataFrame(rows, columns=["pair", "answer", "samples", "share", "kind"])


def failures(predictions: Predictions, pair: Pair) -> list[int]:
    """Positions in the test set, from 0, of the first samples of a pair that fail."""
    own = (predictions.domain == pair[0]) & (predictions.y == pair[1])
    return [int(i) for i in np.flatnonzero(own & (predictions.predicted != predictions.y))[:SAMPLES]]


def confusion_blocks(run: ReportedRun) -> list[Block]:
    """What the worst pairs are mistaken for and the samples that fail, if the run has its predictions."""
    result, predictions = run.result, run.predictions
    pairs = [pair for pair in failing_pairs(result) if predictions and failures(predictions, pair)]
    if predictions is None or not pairs:
        return []
    chart = confusion_chart(confusion_table(result, predictions, pairs))
    heading = Heading(f"Misclassified test samples of the worst pairs, up to {SAMPLES} of each")
    images = len(result.input_shape) == 3
    if images and run.dataset is not None:
        try:
            galleries = [_gallery(result, predictions, run.dataset, pair) for pair in pairs]
            return [chart, heading, Text("Under each sample is the predicted class."), *galleries]
        except (OSError, ValueError):  # a file was removed or damaged since
            pass
    gone = "The images are missing or have changed, so only their numbers are shown. " if images else ""
    lines = []
    for pair in pairs:
        answers = (f"{i} as {result.classes[predictions.predicted[i]]}" for i in failures(predictions, pair))
        lines.append(f"{_name(result, pair)}: " + "; ".join(answers))
    return [chart, heading, Text(f"{gone}Test samples are numbered from 0 in the order of the data."), bullets(lines)]


def _gallery(result: RunResult, predictions: Predictions, dataset: DomainDataset, pair: Pair) -> Gallery:
    name, rows, pictures = _name(result, pair), dataset.rows("test"), []
    for number in failures(predictions, pair):
        row, answer = int(rows[number]), result.classes[predictions.predicted[number]]
        place = dataset.x.paths(row)[0] if isinstance(dataset.x, ImageFiles) else f"test sample {number}"
        pictures.append(Picture(dataset.x[row], answer, f"{name} predicted as {answer}: {place}"))
    return Gallery(name, pictures)


def _name(result: RunResult, pair: Pair) -> str:
    return f"{result.domains[pair[0]]} / {result.classes[pair[1]]}"


def confusion_chart(table: pd.DataFrame) -> Chart:
    """A panel per pair, a bar per answer."""
    most = table[table["kind"] == "wrong"].sort_values("samples", ascending=False, kind="stable").iloc[0]
    kinds = {kind: colour for kind, colour in KINDS.items() if kind in set(table["kind"])}
    base = alt.Chart(table, width=210, height=alt.Step(16)).mark_bar()
    bars = base.encode(
        x=alt.X("samples:Q", title="test samples", axis=alt.Axis(tickMinStep=1, format="d")),
        y=names(alt.Y, "answer"),
        color=colours("kind", kinds, "answer", orient="top", labelLimit=0),
        tooltip=["pair:N", "answer:N", "samples:Q", tip("share", ".0f", "% of the pair")],
    )
    order = list(dict.fromkeys(table["pair"]))
    facet = alt.Facet("pair:N", title=None, sort=order, header=alt.Header(labelFontWeight="bold", labelLimit=300))
    drawing = bars.facet(facet=facet, columns=2).resolve_scale(y="independent")
    tested = table[table["pair"] == most["pair"]]["samples"].sum()
    title = f"{most['pair']} is mistaken for {most['answer']} in {most['samples']} of {tested} test samples"
    return Chart("confusions", title, drawing, "Bars: predicted classes of the worst pairs")

"""What the worst pairs are taken for, and which test samples fail."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail import protocols
from crosstail.data import DomainDataset, ImageFiles
from crosstail.report.charts import PALETTE
from crosstail.report.compare.charts import Figure
from crosstail.report.page import Page, Picture
from crosstail.report.run.tables import pair_table, worst_table
from crosstail.report.tables import Result
from crosstail.training import RunSpec
from crosstail.training.folder import RunFolder
from crosstail.training.inputs import sized

PAIRS = 8  # of the worst
CLASSES = 5  # that a pair is most often taken for
SAMPLES = 6  # of each pair that fail
KINDS = {"right": PALETTE[0], "wrong": PALETTE[5], "wrong, other classes": PALETTE[1]}

Predictions = Mapping[str, NDArray[Any]]


def read_predictions(folder: RunFolder) -> Predictions | None:
    """`predicted`, `y` and `domain` of every test sample, in the order of the data; None where they were not kept."""
    found = folder.load("predictions.pt")
    return None if found is None else {name: values.numpy() for name, values in found.items()}


def failing_pairs(result: Result) -> list[tuple[int, int]]:
    """The worst pairs that have a failure, as (domain, class) numbers."""
    worst = worst_table(pair_table([result]), PAIRS)
    worst = worst[worst["hits"] < worst["tested"]]
    number = [{name: i for i, name in enumerate(result[names])} for names in ("domains", "classes")]
    return [(number[0][d], number[1][c]) for d, c in zip(worst["domain"], worst["class"], strict=True)]


def confusion_table(result: Result, predictions: Predictions, pairs: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """One row per pair and answer: pair, answer, samples, share in %, kind; the answers beyond five are one row."""
    rows = []
    for d, c in pairs:
        given = predictions["predicted"][(predictions["domain"] == d) & (predictions["y"] == c)]
        counts = np.bincount(given, minlength=len(result["classes"]))
        right, counts[c] = counts[c], 0
        order = [int(k) for k in np.argsort(-counts, kind="stable") if counts[k]]
        answers = [(result["classes"][c], right, "right")]
        answers += [(result["classes"][k], counts[k], "wrong") for k in order[:CLASSES]]
        answers.append((f"others: {len(order) - CLASSES}", counts[order[CLASSES:]].sum(), "wrong, other classes"))
        rows += [
            (_name(result, (d, c)), answer, int(n), 100 * n / len(given), kind) for answer, n, kind in answers if n
        ]
    return pd.DataFrame(rows, columns=["pair", "answer", "samples", "share", "kind"])


def failures(predictions: Predictions, pair: tuple[int, int]) -> list[int]:
    """The numbers among the test samples, from 0, of the first samples of a pair that fail."""
    own = (predictions["domain"] == pair[0]) & (predictions["y"] == pair[1])
    return [int(i) for i in np.flatnonzero(own & (predictions["predicted"] != predictions["y"]))[:SAMPLES]]


def show_confusions(page: Page, folder: Path, result: Result) -> None:
    """Add what the worst pairs are taken for and the samples that fail, if the run kept what it said of each sample."""
    predictions = read_predictions(RunFolder(folder))
    if predictions is None:
        return
    pairs = [pair for pair in failing_pairs(result) if failures(predictions, pair)]
    if not pairs:
        return
    confusion_figure(confusion_table(result, predictions, pairs)).show(page)
    images = len(result["input_shape"]) == 3
    pictures = failing_images(result, predictions, pairs) if images else None
    page.heading(f"Test samples of the worst pairs that fail, up to {SAMPLES} of each")
    if pictures:
        page.text("Under each sample is what it was taken for.")
        for pair, shown in zip(pairs, pictures, strict=True):
            page.gallery(_name(result, pair), shown)
        return
    gone = "The images are not where they were, or not the same, so only their numbers are shown. " if images else ""
    page.text(f"{gone}Numbers count the test samples from 0 in the order of the data.")
    for pair in pairs:
        said = (f"{i} taken for {_answer(result, predictions, i)}" for i in failures(predictions, pair))
        page.text(f"{_name(result, pair)}: " + "; ".join(said))


def failing_images(
    result: Result, predictions: Predictions, pairs: Sequence[tuple[int, int]]
) -> list[list[Picture]] | None:
    """The samples of each pair that fail, as they were before any embedding; None if they are gone or have changed."""
    spec = RunSpec.from_json(result["spec"])
    try:
        dataset = sized(spec, protocols.prepare(spec))
        if dataset.checksum != result["data"]["checksum"]:
            return None
        return [
            [
                _picture(dataset, i, _name(result, pair), _answer(result, predictions, i))
                for i in failures(predictions, pair)
            ]
            for pair in pairs
        ]
    except (OSError, ValueError):
        return None


def _picture(dataset: DomainDataset, number: int, pair: str, answer: str) -> Picture:
    row = int(dataset.rows("test")[number])
    place = dataset.x.paths(row)[0] if isinstance(dataset.x, ImageFiles) else f"test sample {number}"
    return Picture(dataset.x[row], answer, f"{pair}, taken for {answer}: {place}")


def _name(result: Result, pair: tuple[int, int]) -> str:
    return f"{result['domains'][pair[0]]} / {result['classes'][pair[1]]}"


def _answer(result: Result, predictions: Predictions, number: int) -> str:
    return str(result["classes"][predictions["predicted"][number]])


def confusion_figure(table: pd.DataFrame) -> Figure:
    """A panel per pair, a bar per answer."""
    most = table[table["kind"] == "wrong"].sort_values("samples", ascending=False, kind="stable").iloc[0]
    kinds = {kind: colour for kind, colour in KINDS.items() if kind in set(table["kind"])}
    bars = (
        alt.Chart(table, width=210, height=alt.Step(16))
        .mark_bar()
        .encode(
            x=alt.X("samples:Q", title="test samples", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("answer:N", title=None, sort=None, axis=alt.Axis(labelLimit=120)),
            color=alt.Color(
                "kind:N",
                title="answer",
                scale=alt.Scale(domain=list(kinds), range=list(kinds.values())),
                legend=alt.Legend(orient="top", labelLimit=0),
            ),
            tooltip=["pair:N", "answer:N", "samples:Q", alt.Tooltip("share:Q", format=".0f", title="% of the pair")],
        )
    )
    order = list(dict.fromkeys(table["pair"]))
    facet = alt.Facet("pair:N", title=None, sort=order, header=alt.Header(labelFontWeight="bold", labelLimit=300))
    chart = bars.facet(facet=facet, columns=2).resolve_scale(y="independent")
    tested = table[table["pair"] == most["pair"]]["samples"].sum()
    title = f"{most['pair']} is taken for {most['answer']} in {most['samples']} of {tested} test samples"
    return Figure("confusions", title, chart, "Bars: what the samples of each of the worst pairs are taken for")

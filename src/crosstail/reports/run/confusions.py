"""What the worst pairs are mistaken for, and which test samples fail."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data import DomainDataset
from crosstail.metrics import Answers
from crosstail.reports.charts import PALETTE, colours, tip
from crosstail.reports.document.model import Block, Chart, Gallery, Heading, Picture, Text, bullets
from crosstail.reports.run.tested import Tested
from crosstail.reports.vega_lite import draw, field, layer
from crosstail.training.run import Run

Pair = tuple[int, int]

PAIRS = 8  # of the worst
CLASSES = 5  # most frequent wrong answers per pair
NAMED = 3  # of them, in the line above the bar
SAMPLES = 6  # failures per pair
KINDS = {"right": PALETTE[0], "wrong": PALETTE[5], "wrong, other classes": PALETTE[1]}


def failing_pairs(answers: Answers) -> list[Pair]:
    """The clearest failures, lowest upper end of the interval first, as (domain, class) indices."""
    pairs = Tested.of_answers(answers).pairs
    worst = pairs[pairs["hits"] < pairs["tested"]].sort_values(["high", "accuracy"], kind="stable").head(PAIRS)
    named = zip(worst["domain"], worst["class"], strict=True)
    return [(answers.domains.index(domain), answers.classes.index(name)) for domain, name in named]


def confusion_table(answers: Answers, pairs: Sequence[Pair]) -> pd.DataFrame:
    """One row per pair and answer: pair, answer, samples, share in %, kind; rare answers share one row."""
    rows = []
    for d, c in pairs:
        given = answers.predicted[(answers.domain == d) & (answers.y == c)]
        counts = np.bincount(given, minlength=len(answers.classes))
        right, counts[c] = counts[c], 0
        order = [int(k) for k in np.argsort(-counts, kind="stable") if counts[k]]
        said = [(answers.classes[c], right, "right")]
        said += [(answers.classes[k], counts[k], "wrong") for k in order[:CLASSES]]
        said.append((f"others: {len(order) - CLASSES}", counts[order[CLASSES:]].sum(), "wrong, other classes"))
        pair = _name(answers, (d, c))
        rows += [(pair, answer, int(n), 100 * n / len(given), kind) for answer, n, kind in said if n]
    return pd.DataFrame(rows, columns=["pair", "answer", "samples", "share", "kind"])


def failures(answers: Answers, pair: Pair) -> list[int]:
    """Positions in the test set, from 0, of the first samples of a pair that fail."""
    own = (answers.domain == pair[0]) & (answers.y == pair[1])
    return [int(i) for i in np.flatnonzero(own & ~answers.correct)[:SAMPLES]]


def confusion_blocks(answers: Answers | None, dataset: DomainDataset | None, *, images: bool) -> list[Block]:
    """What the worst pairs are mistaken for and the test samples that fail, with pictures if there are any."""
    if answers is None or not (pairs := failing_pairs(answers)):
        return []
    chart = confusion_chart(confusion_table(answers, pairs))
    before: list[Block] = [Heading("What the worst pairs are mistaken for", 3), chart]
    before.append(Heading("Misclassified samples", 3))
    if images and dataset is not None:
        rows = dataset.rows("test") if answers.row is None else answers.row
        try:
            galleries = [_gallery(answers, dataset, rows, pair) for pair in pairs]
            words = f"Up to {SAMPLES} test samples of each of the worst pairs, with predicted class and file or number."
            return [*before, Text(words), *galleries]
        except (OSError, ValueError):  # a file was removed or damaged since
            pass
    gone = "The images are missing or have changed, so only their numbers are shown. " if images else ""
    lines = []
    for pair in pairs:
        said = (f"{i} as {answers.classes[answers.predicted[i]]}" for i in failures(answers, pair))
        lines.append(f"{_name(answers, pair)}: " + "; ".join(said))
    return [*before, Text(f"{gone}Test samples are numbered from 0 in the order of the data."), bullets(lines)]


def pooled_answers(runs: Sequence[Run]) -> Answers | None:
    """The test samples of all folds in the order of the data; None if a run lacks its answers or its data."""
    data = [run.dataset for run in runs if run.dataset is not None]
    tested = [run.test for run in runs if run.test is not None]
    if min(len(data), len(tested)) < len(runs) or any(not np.array_equal(one.y, data[0].y) for one in data):
        return None
    rows = [dataset.rows("test") for dataset in data]
    return Answers.pooled([replace(of, row=own, informed=None) for of, own in zip(tested, rows, strict=True)]).sorted()


def _gallery(answers: Answers, dataset: DomainDataset, rows: NDArray[np.int64], pair: Pair) -> Gallery:
    name, pictures = _name(answers, pair), []
    for number in failures(answers, pair):
        row, answer = int(rows[number]), answers.classes[answers.predicted[number]]
        place = dataset.names(row)[0] if dataset.kind.names else f"test sample {number}"
        pictures.append(Picture(dataset.x[row], f"→ {answer}", f"{name} predicted as {answer}: {place}", place))
    return Gallery(name, pictures)


def _name(answers: Answers, pair: Pair) -> str:
    return f"{answers.domains[pair[0]]} / {answers.classes[pair[1]]}"


def confusion_chart(table: pd.DataFrame) -> Chart:
    """A bar per pair, divided by answer, under lines that name the answers; it fits any width."""
    most = table[table["kind"] == "wrong"].sort_values("samples", ascending=False, kind="stable").iloc[0]
    kinds = {kind: colour for kind, colour in KINDS.items() if kind in set(table["kind"])}
    order = list(dict.fromkeys(table["pair"]))
    table = table.assign(rank=range(len(table)))
    y = field("pair:N", sort=order, axis=None)
    whole = {"scale": {"domain": [0, 100]}, "axis": {"tickCount": 5}}
    bars = draw(table).mark("bar", height=14, yOffset=17, stroke="currentColor", strokeOpacity=0.3, strokeWidth=0.7)
    bars = bars.encode(
        x=field("share:Q", title="share of the test samples, %", **whole),
        y=y,
        color=colours("kind", kinds, orient="top", labelLimit=0),
        order="rank:Q",
        tooltip=["pair:N", "answer:N", "samples:Q", tip("share", ".0f", "% of the pair")],
    )
    lines = pd.DataFrame({"pair": order, "line": [_line(table[table["pair"] == pair]) for pair in order]})
    style = {"align": "left", "baseline": "top", "dy": -25, "lineBreak": "\n", "lineHeight": 16}
    words = draw(lines).mark("text", fontSize=12, color="currentColor", limit={"expr": "width"}, **style)
    words = words.encode(x={"value": 0}, y=y, text="line:N")
    drawing = layer(bars, words, width="container", height=58 * len(order))
    tested = table[table["pair"] == most["pair"]]["samples"].sum()
    title = f"{most['pair']} is mistaken for {most['answer']} in {most['samples']} of {tested} test samples"
    return Chart("confusions", title, drawing, "Bars: predicted classes of the worst pairs", widest=900)


def _line(answers: pd.DataFrame) -> str:
    """The pair, and on a second line what it is mistaken for."""
    rows = answers.to_dict("records")
    right = sum(row["samples"] for row in rows if row["kind"] == "right")
    wrong = [row for row in rows if row["kind"] == "wrong"][:NAMED]
    rest = sum(row["samples"] for row in rows) - right - sum(row["samples"] for row in wrong)
    words = [*(f"{row['samples']} as {row['answer']}" for row in wrong), *[f"{rest} as others"] * (rest > 0)]
    return f"{rows[0]['pair']}: {right} of {sum(row['samples'] for row in rows)} right\n{', '.join(words)}"

"""What the worst pairs are mistaken for, and which test samples fail."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crosstail.data import DomainDataset
from crosstail.metrics import Answers
from crosstail.reports.document.model import Block, Gallery, Heading, Picture, Table, Text, bullets
from crosstail.reports.run.tested import Tested
from crosstail.training.run import Run

Pair = tuple[int, int]

PAIRS = 8  # of the worst
NAMED = 5  # most frequent wrong answers per pair
SAMPLES = 6  # failures per pair


def failing_pairs(answers: Answers) -> list[Pair]:
    """The clearest failures, lowest upper end of the interval first, as (domain, class) indices."""
    pairs = Tested.of_answers(answers).pairs
    worst = pairs[pairs["hits"] < pairs["tested"]].sort_values(["high", "accuracy"], kind="stable").head(PAIRS)
    named = zip(worst["domain"], worst["class"], strict=True)
    return [(answers.domains.index(domain), answers.classes.index(name)) for domain, name in named]


def confusion_table(answers: Answers, pairs: Sequence[Pair]) -> Table:
    """What the pairs are mistaken for, most often first; rare answers are counted together."""
    rows = []
    for d, c in pairs:
        counts = np.bincount(
            answers.predicted[(answers.domain == d) & (answers.y == c)], minlength=len(answers.classes)
        )
        every, counts[c] = int(counts.sum()), 0
        order = [int(k) for k in np.argsort(-counts, kind="stable") if counts[k]]
        said = [f"{counts[k]:,} as {answers.classes[k]}" for k in order[:NAMED]]
        said += [f"{counts[order[NAMED:]].sum():,} as others"] * (len(order) > NAMED)
        rows.append([_name(answers, (d, c)), f"{every - counts.sum():,} of {every:,}", ", ".join(said)])
    return Table(header=["pair", "right", "mistaken for"], rows=rows, words_last=True)


def failures(answers: Answers, pair: Pair) -> list[int]:
    """Positions in the test set, from 0, of the first samples of a pair that fail."""
    own = (answers.domain == pair[0]) & (answers.y == pair[1])
    return [int(i) for i in np.flatnonzero(own & ~answers.correct)[:SAMPLES]]


def confusion_blocks(answers: Answers | None, dataset: DomainDataset | None, *, images: bool) -> list[Block]:
    """What the worst pairs are mistaken for and the test samples that fail, with pictures if there are any."""
    if answers is None or not (pairs := failing_pairs(answers)):
        return []
    before: list[Block] = [Heading("What the worst pairs are mistaken for", 3), confusion_table(answers, pairs)]
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

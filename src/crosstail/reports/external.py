"""The page of a classifier that was trained elsewhere, from its predictions on labelled samples."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.data import shot_thresholds
from crosstail.metrics import Answers
from crosstail.reports.document import html
from crosstail.reports.document.model import Block, Chart, Document, Heading, Text, bullets
from crosstail.reports.graph_chart import READING, graph_chart
from crosstail.reports.run.confusions import confusion_blocks
from crosstail.reports.run.model_card import accuracy_table, intervals_note
from crosstail.reports.run.tables import distance_table
from crosstail.reports.run.tested import Tested
from crosstail.reports.run.verdict import usable
from crosstail.reports.run.worst_pairs import pair_map, worst_pairs
from crosstail.reports.wording import several, shown_statistics
from crosstail.training.evaluation import MOST_PAIRS
from crosstail.transfer import TransferabilityGraph


def write_report(
    out: str | Path,
    *,
    predictions: ArrayLike,
    labels: ArrayLike,
    domains: ArrayLike,
    classes: Sequence[str],
    domain_names: Sequence[str],
    train_counts: ArrayLike,
    features: ArrayLike | None = None,
    title: str = "A classifier",
    notes: Sequence[str] = (),
) -> Path:
    """Write the page that `crosstail fit` writes, for a model that any program has trained, as an .html file.

    `predictions`, `labels` and `domains` (N,) are indices into `classes` and `domain_names`, one of each for every
    test sample; `train_counts` (D, C) are the training samples of each pair. With `features` (N, F) of the samples,
    the page also has α, β, γ and their transferability graph. `notes` are shown below the metrics.
    """
    path = Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{path}: expected a name that ends in .html")
    given = {"predictions": predictions, "labels": labels, "domains": domains}
    sizes = {"predictions": len(classes), "labels": len(classes), "domains": len(domain_names)}
    y_hat, y, domain = (_indices(name, values, sizes[name]) for name, values in given.items())
    if not len(y) == len(domain) == len(y_hat) > 0:
        raise ValueError(f"there are {len(y_hat)} predictions, {len(y)} labels and {len(domain)} domains")
    counts = np.asarray(train_counts)
    shape = len(domain_names), len(classes)
    if counts.shape != shape or counts.dtype.kind not in "iu" or counts.min() < 0:
        raise ValueError(f"train_counts is {counts.dtype} {counts.shape}, expected counts of shape {shape}")
    z = None if features is None else np.asarray(features)
    if z is not None and (z.ndim != 2 or len(z) != len(y)):
        raise ValueError(f"features have the shape {z.shape}, expected ({len(y)}, F)")
    about: dict[str, Any] = {"domains": list(domain_names), "classes": list(classes), "counts": counts.astype(np.int64)}
    answers = Answers(**about, y=y, domain=domain, predicted=y_hat, shots=shot_thresholds(title))
    html.save(_document(answers, title, z, notes), path)
    return path


def _indices(name: str, values: ArrayLike, size: int) -> NDArray[np.int64]:
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(f"{name} is {found.dtype} {found.shape}, expected integers (N,)")
    wrong = np.flatnonzero((found < 0) | (found >= size))
    if len(wrong):
        raise ValueError(f"{name} of sample {wrong[0]} is {found[wrong[0]]}, expected 0 to {size - 1}")
    return found.astype(np.int64)


def _document(answers: Answers, title: str, features: NDArray[np.float64] | None, notes: Sequence[str]) -> Document:
    tested = Tested.of_answers(answers)
    samples = f"{several(int(answers.counts.sum()), 'training sample')} and {several(len(answers), 'test sample')}"
    where = f"{several(len(answers.domains), 'domain')}, {several(len(answers.classes), 'class', 'classes')}"
    blocks: list[Block] = [
        Heading("Can I use it?"),
        *usable(tested),
        Heading("Where does it fail?"),
        *pair_map(tested.pairs, tested.shots[1]),
        *confusion_blocks(answers, None, images=False),
        *worst_pairs(tested),
        Heading("How was it made?"),
        bullets(["The model was trained by another program; this page has its predictions only.", *notes]),
        Text(f"{samples}; {where}."),
        Heading("All metrics", 3),
        Text(f"Accuracy, in %. {intervals_note(tested.accuracy)}"),
        accuracy_table(tested),
        *(() if features is None else _graph(answers, features)),
    ]
    return Document(title, blocks)


def _graph(answers: Answers, features: NDArray[np.float64]) -> Iterator[Block]:
    d, c = len(answers.domains), len(answers.classes)
    graph = TransferabilityGraph.from_features(
        features, answers.y, answers.domain, num_domains=d, num_classes=c, most_pairs=MOST_PAIRS
    )
    yield Heading("Transferability: α, β, γ", 3)
    yield Text("Mean distances between the features of pairs, here of the test samples.")
    yield distance_table(shown_statistics(graph), bool(graph.estimate))
    yield Text(READING)
    nodes = graph.nodes(answers.domains, answers.classes)
    nodes["count"] = answers.counts[graph.pairs[:, 0], graph.pairs[:, 1]]  # training samples, as elsewhere
    drawing = graph_chart(nodes)
    yield Chart("graph", "", drawing, "Scatter plot: the pairs of the model in two dimensions")

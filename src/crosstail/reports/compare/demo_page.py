"""The page and the table of the demo: the report of its runs, and what only the demo has to say."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from crosstail import data
from crosstail.reports.compare.feature_charts import model_features
from crosstail.reports.compare.page import blocks
from crosstail.reports.compare.results import Results
from crosstail.reports.compare.tables import of_metric
from crosstail.reports.document import html
from crosstail.reports.document.model import Block, Document, Gallery, Heading, Picture, Text

DEFAULT = "frozen:blend"


def write_page(path: Path, results: Results, graphs: Sequence[Path]) -> None:
    """Write what the runs of the demo show; `graphs` are the runs whose features to draw."""
    spec = results.runs.table["run"].iloc[0].spec
    images = data.load(spec.dataset, labels=["uniform"], seed=spec.data_seed)
    page: list[Block] = [
        Text(verdict(results.summary)),
        Text(
            "Three domains, ten digits, thirty (domain, class) pairs. Each domain has its own long tail, so a digit "
            "that is rare in one domain is common in another, and two pairs have no training samples. The test set is "
            "balanced. Each image was embedded once by EfficientNet-Lite0 (frozen ImageNet weights). frozen:blend fits "
            "a classifier on the embeddings as they are; every other method trained the same two-layer network on them "
            f"for {spec.steps} steps."
        ),
        Heading("The domains"),
        Text("Handwriting, handwriting over coloured textures, and printed type as on signs; one image per digit."),
        *(_examples(images, d) for d in range(images.num_domains)),
        *blocks(results, [model_features(run) for run in graphs]),
        Heading("Method"),
        Text(
            "Hyperparameters: for each method that has some, the best of 20 random trials on the validation set (the "
            "first uses the defaults), then a new run for each seed. The evaluation with the best validation accuracy "
            "is reported. `crosstail demo` reproduces everything on this page."
        ),
    ]
    html.save(Document("Digits from three domains with long tails", page), path)


def _examples(images: data.DomainDataset, d: int) -> Gallery:
    first = [np.flatnonzero((images.domain == d) & (images.y == c))[0] for c in range(images.num_classes)]
    named = zip(np.asarray(images.x[first]), images.classes, strict=True)
    return Gallery(images.domains[d], [Picture(x, "", f"{images.domains[d]} / {name}") for x, name in named], 64)


def verdict(summary: pd.DataFrame) -> str:
    """Gain of the default over ERM and over the best of the others, on all pairs and on rare ones."""

    def of(metric: str, column: str = "mean") -> dict[str, float]:
        rows = of_metric(summary, [metric]).to_dict("records")
        return {row["method"]: row[column] for row in rows}

    mean, std = of("pair average"), of("pair average", "std")
    best = max((method for method in mean if method != DEFAULT), key=lambda method: mean[method])
    spread = max(std[DEFAULT], std[best])
    sure = "one seed each" if np.isnan(spread) else f"standard deviation over the seeds {spread:.1f}"
    text = (
        f"Without any option, crosstail fit uses {DEFAULT}: {mean[DEFAULT]:.1f} % on average over all pairs, "
        f"{mean[DEFAULT] - mean['erm']:+.1f} points against erm and {mean[DEFAULT] - mean[best]:+.1f} against {best}, "
        f"the best of the others ({sure})."
    )
    shots = {
        "few": f"with 1 to {data.shot_thresholds('digits')[1]} training samples",
        "zero": "without any, whose class it has seen only in other domains",
    }
    for metric, pairs in shots.items():
        if found := of(metric):
            text += f" On pairs {pairs}, it reaches {found[DEFAULT]:.1f} % (erm: {found['erm']:.1f} %)."
    return text

"""The page and the table of the demo: the report of its runs, and what only the demo has to say."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from crosstail import data
from crosstail.report.compare.feature_charts import model_features
from crosstail.report.compare.page import results
from crosstail.report.compare.read_runs import Runs
from crosstail.report.compare.tables import METRICS, of_metric, summary_table
from crosstail.report.document import html
from crosstail.report.document.model import Block, Document, Gallery, Heading, Picture, Table, Text
from crosstail.report.wording import number


def write_page(path: Path, runs: Runs, graphs: Sequence[Path]) -> None:
    """Write what the runs of the demo show; `graphs` are the runs whose features to draw."""
    spec = runs.table["run"].iloc[0].spec
    images = data.load(spec.dataset, labels=["uniform"], seed=spec.data_seed)
    blocks: list[Block] = [
        Text(
            "Three domains, ten digits, thirty (domain, class) pairs. Each domain has its own long tail, so a digit "
            "that is rare in one domain is common in another, and two pairs have no training samples. The test set is "
            "balanced. Each image was embedded once by EfficientNet-Lite0 (frozen ImageNet weights); each method then "
            f"trained the same two-layer network on the embeddings for {spec.steps} steps."
        ),
        Text(verdict(summary_table(runs.chosen))),
        Heading("The domains"),
        Text("Handwriting, handwriting over coloured textures, and printed type as on signs; one image per digit."),
        *(_examples(images, d) for d in range(images.num_domains)),
        *results(runs, "erm", [model_features(run) for run in graphs]),
        Heading("Method"),
        Text(
            "Hyperparameters: for each method the best of 20 random trials on the validation set (the first uses the "
            "defaults), then a new run for each seed. The evaluation with the best validation accuracy is reported. "
            "`crosstail demo` reproduces everything on this page."
        ),
    ]
    html.save(Document("BoDA and ERM on digits from three domains", blocks), path)


def _examples(images: data.DomainDataset, d: int) -> Gallery:
    first = [np.flatnonzero((images.domain == d) & (images.y == c))[0] for c in range(images.num_classes)]
    named = zip(np.asarray(images.x[first]), images.classes, strict=True)
    return Gallery(images.domains[d], [Picture(x, "", f"{images.domains[d]} / {name}") for x, name in named])


def metrics_table(summary: pd.DataFrame, methods: Sequence[str]) -> Table:
    """Metrics down, methods across, for the terminal: mean ± deviation, and the gain over the first method."""
    rows = summary[summary["kind"] == "metric"].to_dict("records")
    known = {(row["metric"], row["method"]): (row["mean"], row["std"]) for row in rows}

    def cell(metric: str, method: str) -> str:
        (mean, std), (base, _) = known[metric, method], known[metric, methods[0]]
        gain = "" if method == methods[0] else f" ({number(mean - base, 1, '+')})"
        return number(mean) + ("" if np.isnan(std) else f"±{number(std)}") + gain

    shown = [metric for metric in METRICS if (metric, methods[0]) in known]
    cells = [[metric, *(cell(metric, method) for method in methods)] for metric in shown]
    seeds = int(summary["n"].max())
    spread = f"Mean ± standard deviation over {seeds} seeds" if seeds > 1 else "One seed"
    note = f"{spread}; the gain over {methods[0]} in brackets."
    return Table(header=["accuracy, %", *methods], rows=cells, note=note)


def verdict(summary: pd.DataFrame) -> str:
    """boda:retrain against erm and erm:retrain, in a sentence."""
    of_pairs = of_metric(summary, ["pair average"]).set_index("method")
    mean, std = of_pairs["mean"], of_pairs["std"]
    over_crt = mean["boda:retrain"] - mean["erm:retrain"]
    spread = max(std["boda:retrain"], std["erm:retrain"])
    if np.isnan(spread):
        sure = "one seed is not enough to tell whether that is noise"
    elif over_crt > 2 * spread:
        sure = f"more than twice the standard deviation over the seeds (± {spread:.1f})"
    else:
        sure = f"with a standard deviation over the seeds of ± {spread:.1f}, so BoDA does not beat CRT here"
    return (
        f"boda:retrain reaches a pair average of {mean['boda:retrain']:.1f} %, "
        f"{mean['boda:retrain'] - mean['erm']:+.1f} points against erm. Against erm:retrain, which is the method CRT, "
        f"the difference is {over_crt:+.1f} points, {sure}."
    )

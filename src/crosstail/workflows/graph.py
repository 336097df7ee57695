"""How close the pairs of a trained model are in feature space."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from crosstail import data
from crosstail.data import data_name
from crosstail.progress import Progress, silent
from crosstail.reports.document import html
from crosstail.reports.document.files import save_chart
from crosstail.reports.document.model import Chart
from crosstail.reports.graph_chart import READING, NamedGraph, graph_chart, side_by_side
from crosstail.reports.graph_page import graph_document
from crosstail.reports.run.trace import moving_charts, traced
from crosstail.training import evaluation
from crosstail.training.evaluation import graph_of, transferability
from crosstail.training.existing import existing_run, naming_run, require_data
from crosstail.training.folder import RunFolder
from crosstail.training.model import load_data, load_model
from crosstail.transfer import TransferabilityGraph

Metric = Literal["euclidean", "mahalanobis"]


@dataclass(frozen=True)
class Graphs:
    """The graph of one model or two, and the file that shows it."""

    out: Path
    models: Sequence[NamedGraph]

    def to_json(self) -> Any:
        """α, β and γ of the model, or of both."""
        plain = [msgspec.to_builtins(transferability(one.graph)) for one in self.models]
        return plain if len(plain) > 1 else plain[0]


def graph(
    *places: Path,
    out: Path | None = None,
    metric: Metric = "euclidean",
    trust: bool = False,
    progress: Progress = silent,
) -> Graphs:
    """Draw the transferability graph of a run, of two runs side by side, or of any features, with α, β and γ.

    Args:
        places: Folder of a finished run, or of two; or features of your own model: an .npz file with x (N, F), y and
            domain.
        out: An .html, .png, .svg, .pdf or .csv file; default: RUN/graph.html, RUN/graphs.html for two runs, or
            FILE.graph.html.
        metric: Distance between pairs.
        trust: Run the Python files that are stored with the runs.
        progress: Called while images are embedded.
    """
    if len(places) not in (1, 2):
        raise ValueError("expected one of: the folder of a run, the folders of two runs, or an .npz file of features")
    runs: tuple[Path, ...] = ()
    if len(places) == 1 and places[0].suffix.lower() == ".npz":
        path, found = places[0].with_suffix(".graph.html"), [_of_features(places[0], metric)]
    else:
        runs = tuple(existing_run(place) for place in places)
        path = runs[0] / ("graphs.html" if len(runs) == 2 else "graph.html")
        found = [_of_run(run, metric, trust, progress) for run in runs]
    _draw(found, runs, metric, out or path)
    return Graphs(out or path, found)


def _draw(found: list[NamedGraph], runs: Sequence[Path], metric: str, path: Path) -> None:
    """Draw one graph (with a slider if the run has a trace), write its table, or draw two graphs side by side."""
    title, graph, domains, classes = found[0]
    chart = None
    if len(found) == 2:
        methods = [one.name.partition(" on ")[0] for one in found]
        names = methods if methods[0] != methods[1] else [str(run) for run in runs]
        found = [one._replace(name=name) for one, name in zip(found, names, strict=True)]
        chart = side_by_side(*found)
        title = f"{names[0]} and {names[1]}"
    elif path.suffix == ".csv":
        graph.to_frame(domains, classes).to_csv(path, index=False)
        return
    elif path.suffix == ".html" and runs and metric == "euclidean":
        folder = RunFolder(runs[0])
        with naming_run(folder.path):
            chart = next(iter(moving_charts(folder.finished_result(), traced(folder.records()))), None)
    if chart is None:
        drawing = graph_chart(graph.nodes(domains, classes))
        alternative = "Scatter plot: the pairs of the model in two dimensions"
        chart = Chart("graph", title, drawing, alternative, READING, widest=760)
    if path.suffix == ".html":
        shown = replace(chart, title="") if chart.title == title else chart
        html.save(graph_document(title, found, shown), path)
    else:
        save_chart(chart, path)


def _of_run(run: Path, metric: Metric, trust: bool, progress: Progress) -> NamedGraph:
    folder = RunFolder(run)
    spec = folder.spec()
    require_data(run, spec.dataset)
    with naming_run(run):
        dataset = load_data(folder, trust).embedded(progress)
        found = graph_of(load_model(folder, dataset, trust), dataset, metric)
    return NamedGraph(f"{spec.method} on {data_name(spec.dataset)}", found, dataset.domains, dataset.classes)


def _of_features(file: Path, metric: Metric) -> NamedGraph:
    """The graph of features in a file: of its training samples, or of all samples if it has no split."""
    dataset = data.load_arrays(file)
    if dataset.kind.rank > 1:
        held = f"{dataset.kind.noun}s"
        raise ValueError(f"{file}: x holds {held}, expected features (N, F): crosstail fit trains a model on {held}")
    with np.load(file, allow_pickle=False) as arrays:
        rows = dataset.rows("train") if "split" in arrays.files else np.arange(len(dataset))
    sizes = {"num_domains": dataset.num_domains, "num_classes": dataset.num_classes}
    x, y, domain = np.asarray(dataset.x[rows]), dataset.y[rows], dataset.domain[rows]
    found = TransferabilityGraph.from_features(x, y, domain, **sizes, metric=metric, most_pairs=evaluation.MOST_PAIRS)
    return NamedGraph(file.name, found, dataset.domains, dataset.classes)

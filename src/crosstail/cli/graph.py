"""crosstail graph: how close the pairs of a trained model are in feature space."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._parameters import Json, Trust
from crosstail.cli._progress import progress_bar
from crosstail.training.existing import existing_run, naming_run, require_data

if TYPE_CHECKING:  # importing torch takes seconds, and --help does not need it
    from crosstail.reports.graph_chart import NamedGraph

MEANINGS = {
    "α": "same class, other domain (small is good)",
    "β": "other class, same domain (large is good)",
    "γ": "other class, other domain (large is good)",
}


def graph(
    places: Annotated[tuple[Path, ...], Parameter(name="RUN")],
    /,
    *,
    out: Path | None = None,
    metric: Literal["euclidean", "mahalanobis"] = "euclidean",
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Draw the transferability graph of a run, of two runs side by side, or of any features, and print α, β and γ.

    Example: `crosstail graph run --out graph.png`, `crosstail graph erm boda`, or
    `crosstail graph features.npz`

    Args:
        places: Folder of a finished run, or of two; or features of your own model: an .npz file with x (N, F), y and
            domain.
        out: An .html, .png, .svg, .pdf or .csv file; default: RUN/graph.html, RUN/graphs.html for two
            runs, or FILE.graph.html.
        metric: Distance between pairs.
    """
    features = places[0] if len(places) == 1 and places[0].suffix.lower() == ".npz" else None
    if len(places) not in (1, 2):
        raise ValueError("expected one of: the folder of a run, the folders of two runs, or an .npz file of features")
    runs = () if features else tuple(existing_run(place) for place in places)
    if features:
        found, path = [_of_features(features, metric)], features.with_suffix(".graph.html")
    else:
        found = [_of_run(run, metric, trust) for run in runs]
        path = runs[0] / ("graphs.html" if len(runs) == 2 else "graph.html")
    _draw(found, runs, metric, out or path)
    statistics = [one.graph.statistics for one in found]
    if as_json:
        from crosstail.training.evaluation import transferability

        plain = [msgspec.to_builtins(transferability(one.graph)) for one in found]
        print(json.dumps(plain if len(plain) > 1 else plain[0]))
        return
    from crosstail.reports.run.tables import ESTIMATED
    from crosstail.reports.wording import shown_statistics

    console = Console(highlight=False, markup=False)
    if len(runs) == 2:
        console.print(f"{runs[0]} / {runs[1]}", soft_wrap=True)
    shown = zip(*(shown_statistics(one.graph) for one in found), strict=True)
    for (symbol, meaning), values in zip(MEANINGS.items(), shown, strict=True):
        console.print(f"{symbol} {' / '.join(values)}  {meaning}")
    if any(one.graph.estimate for one in found):
        console.print(ESTIMATED)
    separations = _numbers([one.separation for one in statistics])
    console.print(f"(β + γ) − α = {separations}; chart in {out or path}")


def _numbers(values: Iterable[float]) -> str:
    return " / ".join("–" if math.isnan(value) else f"{value:.2f}" for value in values)


def _draw(found: "list[NamedGraph]", runs: Sequence[Path], metric: str, path: Path) -> None:
    """Draw one graph (with a slider if the run has a trace), write its table, or draw two graphs side by side."""
    from crosstail.reports.document import html
    from crosstail.reports.document.files import save_chart
    from crosstail.reports.document.model import Chart
    from crosstail.reports.graph_chart import READING, graph_chart, side_by_side
    from crosstail.reports.graph_page import graph_document
    from crosstail.reports.run.trace import moving_charts, traced
    from crosstail.training.folder import RunFolder

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


def _of_run(run: Path, metric: Any, trust: bool) -> "NamedGraph":
    """The graph of a run's training samples."""
    from crosstail.data import data_name
    from crosstail.reports.graph_chart import NamedGraph
    from crosstail.training.evaluation import graph_of
    from crosstail.training.folder import RunFolder
    from crosstail.training.inputs import load_inputs
    from crosstail.training.model import load_model

    folder = RunFolder(run)
    spec = folder.spec()
    require_data(run, spec.dataset)
    with progress_bar(Console(stderr=True)) as progress, naming_run(run):
        dataset = load_inputs(spec).seen(progress)
        found = graph_of(load_model(folder, dataset, trust), dataset, metric)
    return NamedGraph(f"{spec.method} on {data_name(spec.dataset)}", found, dataset.domains, dataset.classes)


def _of_features(file: Path, metric: Any) -> "NamedGraph":
    """The graph of features in a file: of its training samples, or of all samples if it has no split."""
    import numpy as np

    from crosstail import data
    from crosstail.reports.graph_chart import NamedGraph
    from crosstail.training.evaluation import MOST_PAIRS
    from crosstail.transfer import TransferabilityGraph

    dataset = data.load_arrays(file)
    if dataset.kind.rank > 1:
        held = f"{dataset.kind.noun}s"
        raise ValueError(f"{file}: x holds {held}, expected features (N, F): crosstail fit trains a model on {held}")
    with np.load(file, allow_pickle=False) as arrays:
        rows = dataset.rows("train") if "split" in arrays.files else np.arange(len(dataset))
    sizes = {"num_domains": dataset.num_domains, "num_classes": dataset.num_classes}
    x, y, domain = np.asarray(dataset.x[rows]), dataset.y[rows], dataset.domain[rows]
    found = TransferabilityGraph.from_features(x, y, domain, **sizes, metric=metric, most_pairs=MOST_PAIRS)
    return NamedGraph(file.name, found, dataset.domains, dataset.classes)

"""crosstail graph: how close the pairs of a trained model are in feature space."""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._parameters import Json, Trust
from crosstail.cli._progress import progress_bar

if TYPE_CHECKING:  # importing torch takes seconds, and --help does not need it
    from crosstail.data import DomainDataset
    from crosstail.report.compare.charts import Figure
    from crosstail.transfer import TransferabilityGraph

MEANINGS = {
    "α": "same class, other domain (small is good)",
    "β": "other class, same domain (large is good)",
    "γ": "other class, other domain (large is good)",
}


class Found(NamedTuple):
    """A graph, its data set and its title."""

    graph: "TransferabilityGraph"
    dataset: "DomainDataset"
    title: str


def graph(
    runs: Annotated[tuple[Path, ...], Parameter(name="RUN")] = (),
    /,
    *,
    features: Path | None = None,
    out: Path | None = None,
    metric: Literal["euclidean", "mahalanobis"] = "euclidean",
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Draw the transferability graph of a run, of two runs side by side, or of any features, and print α, β and γ.

    Example: `crosstail graph run --out graph.png`, `crosstail graph erm boda`, or
    `crosstail graph --features mine.npz`

    Args:
        runs: Folder of a finished run, or of two.
        features: Features of your own model instead of a run: an .npz file with x (N, F), y and domain.
        out: An .html, .png, .svg, .pdf or .csv file; default: RUN/graph.html, or graphs.html for two runs.
        metric: Distance between pairs.
    """
    if (len(runs) not in (1, 2)) if features is None else runs:
        raise ValueError("expected one of: the folder of a run, the folders of two runs, or --features FILE.npz")
    if features:
        found, path = [_of_features(features, metric)], features.with_suffix(".html")
    else:
        found = [_of_run(run, metric, trust) for run in runs]
        path = runs[0] / ("graphs.html" if len(runs) == 2 else "graph.html")
    _draw(found, runs, metric, out or path)
    statistics = [one.graph.statistics for one in found]
    if as_json:
        plain = [{name: None if math.isnan(v) else v for name, v in one._asdict().items()} for one in statistics]
        print(json.dumps(plain if len(plain) > 1 else plain[0]))
        return
    console = Console(highlight=False, markup=False)
    if len(runs) == 2:
        console.print(f"{runs[0]} / {runs[1]}", soft_wrap=True)
    for (symbol, meaning), values in zip(MEANINGS.items(), zip(*statistics, strict=True), strict=True):
        console.print(f"{symbol} {_numbers(values)}  {meaning}")
    separations = _numbers([one.separation for one in statistics])
    console.print(f"(β + γ) − α = {separations}; chart in {out or path}")


def _numbers(values: Iterable[float]) -> str:
    return " / ".join("–" if math.isnan(value) else f"{value:.2f}" for value in values)


def _draw(found: list[Found], runs: Sequence[Path], metric: str, path: Path) -> None:
    """Draw one graph (with a slider if the run has a trace), write its table, or draw two graphs side by side."""
    from crosstail.report.compare.page import titled
    from crosstail.report.graph_chart import graph_chart
    from crosstail.report.page import Page, save_chart

    graph, dataset, title = found[0]
    figure = None
    if len(found) == 2:
        figure, title = _side_by_side(found, runs), f"{runs[0]} beside {runs[1]}"
    elif path.suffix == ".csv":
        graph.to_frame(dataset.domains, dataset.classes).to_csv(path, index=False)
        return
    elif path.suffix == ".html" and runs and metric == "euclidean":
        figure = _moving(runs[0])
    if figure is None:
        save_chart(graph_chart(graph.nodes(dataset.domains, dataset.classes), title), path)
    elif path.suffix == ".html":
        page = Page(title)
        figure.show(page)
        page.save(path)
    else:
        save_chart(titled(figure), path)


def _side_by_side(found: list[Found], runs: Sequence[Path]) -> "Figure":
    """Name each graph by its algorithm, or by its folder where the algorithms are equal."""
    from crosstail.report.compare.two_graphs import Model, side_by_side

    names = [one.title.partition(" on ")[0] for one in found]
    names = names if names[0] != names[1] else [str(run) for run in runs]
    first, second = (
        Model(name, one.graph, one.dataset.domains, one.dataset.classes) for name, one in zip(names, found, strict=True)
    )
    return side_by_side(first, second)


def _moving(run: Path) -> "Figure | None":
    """The graph at every evaluation, if the run has a trace."""
    from crosstail.report.run.trace import moving_figure
    from crosstail.training.folder import RunFolder

    folder = RunFolder(run)
    records = folder.records()
    return moving_figure(folder.read_json("result.json"), records) if any("trace" in r for r in records) else None


def _of_run(run: Path, metric: Any, trust: bool) -> Found:
    """The graph of a run's training samples."""
    from crosstail.training.evaluation import graph_of
    from crosstail.training.folder import RunFolder
    from crosstail.training.inputs import load_inputs
    from crosstail.training.model import load_model

    folder = RunFolder(run)
    spec = folder.spec()
    with progress_bar(Console(stderr=True)) as progress:
        dataset = load_inputs(spec).seen(progress)
    found = graph_of(load_model(folder, dataset, trust), dataset, metric)
    return Found(found, dataset, f"{spec.method} on {spec.dataset}")


def _of_features(file: Path, metric: Any) -> Found:
    """The graph of features in a file: of its training samples, or of all samples if it has no split."""
    import numpy as np

    from crosstail import data
    from crosstail.transfer import TransferabilityGraph

    dataset = data.load_arrays(file)
    if dataset.is_image:
        raise ValueError(f"{file}: x holds images, expected features (N, F): crosstail fit trains a model on images")
    with np.load(file, allow_pickle=False) as arrays:
        rows = dataset.rows("train") if "split" in arrays.files else np.arange(len(dataset))
    sizes = {"num_domains": dataset.num_domains, "num_classes": dataset.num_classes}
    x, y, domain = np.asarray(dataset.x[rows]), dataset.y[rows], dataset.domain[rows]
    return Found(TransferabilityGraph.from_features(x, y, domain, **sizes, metric=metric), dataset, file.name)

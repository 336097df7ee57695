"""crosstail graph: how the pairs of a trained model lie to each other."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

from crosstail.cli._progress import progress_bar

if TYPE_CHECKING:  # importing torch takes seconds, and --help needs none of it
    from crosstail.data import DomainDataset
    from crosstail.transfer import TransferabilityGraph


def graph(
    run: Annotated[Path | None, typer.Argument(help="The folder of a finished run.")] = None,
    features: Annotated[
        Path | None,
        typer.Option(help="Features of a model of your own instead: an .npz with x (N, F), y and domain."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="An .html, .png, .svg, .pdf or .csv file; by default RUN/graph.html.")
    ] = None,
    metric: Annotated[str, typer.Option(help="euclidean or mahalanobis.")] = "euclidean",
    trust: Annotated[bool, typer.Option("--trust", help="Run the algorithm file that the run brings along.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the statistics as JSON.")] = False,
) -> None:
    """Draw the transferability graph of a run, or of any features, and print α, β, γ.

    Example: [b]crosstail graph run --out graph.png[/], or [b]crosstail graph --features mine.npz[/]
    """
    from crosstail.report.page import save_chart

    if run is not None and features is None:
        found, dataset, title = _of_run(run, metric, trust)
        path = out or run / "graph.html"
    elif features is not None and run is None:
        found, dataset, title = _of_features(features, metric)
        path = out or features.with_suffix(".html")
    else:
        raise ValueError("expected the folder of a run or --features FILE.npz, one of the two")
    if path.suffix == ".csv":
        found.to_frame(dataset.domains, dataset.classes).to_csv(path, index=False)
    else:
        save_chart(found.chart(dataset.domains, dataset.classes, title=title), path)
    statistics = found.statistics
    if as_json:
        print(json.dumps({name: None if math.isnan(v) else v for name, v in statistics._asdict().items()}))
    else:
        console = Console(highlight=False, markup=False)
        alpha, beta, gamma, separation = (
            "–" if math.isnan(v) else f"{v:.2f}" for v in (*statistics, statistics.separation)
        )
        console.print(f"α {alpha}  same class, other domain (small is good)")
        console.print(f"β {beta}  other class, same domain (large is good)")
        console.print(f"γ {gamma}  other class, other domain (large is good)")
        console.print(f"(β + γ) − α = {separation}; picture in {path}")


def _of_run(run: Path, metric: Any, trust: bool) -> tuple["TransferabilityGraph", "DomainDataset", str]:
    """The graph of a run's training samples."""
    from crosstail import protocols
    from crosstail.training.folder import RunFolder
    from crosstail.training.run import graph_of, load_model

    folder = RunFolder(run)
    spec = folder.spec()
    with progress_bar(Console(stderr=True)) as progress:
        dataset = protocols.inputs(spec, progress)
    return graph_of(load_model(folder, dataset, trust), dataset, metric), dataset, f"{spec.algorithm} on {spec.dataset}"


def _of_features(file: Path, metric: Any) -> tuple["TransferabilityGraph", "DomainDataset", str]:
    """The graph of features from anywhere: of the training samples, or of all where the file knows no split."""
    from crosstail import data
    from crosstail.transfer import TransferabilityGraph

    dataset = data.load_arrays(file)
    if dataset.is_image:
        raise ValueError(f"{file}: x holds images, expected features (N, F): crosstail fit trains a model on images")
    with np.load(file, allow_pickle=False) as arrays:
        rows = dataset.rows("train") if "split" in arrays.files else np.arange(len(dataset))
    sizes = {"num_domains": dataset.num_domains, "num_classes": dataset.num_classes}
    x, y, domain = np.asarray(dataset.x[rows]), dataset.y[rows], dataset.domain[rows]
    return TransferabilityGraph.from_features(x, y, domain, **sizes, metric=metric), dataset, file.name

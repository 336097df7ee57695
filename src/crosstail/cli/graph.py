"""crosstail graph: how the pairs of a trained model lie to each other."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crosstail.cli._progress import progress_bar


def graph(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    out: Annotated[
        Path | None, typer.Option(help="An .html, .png, .svg or .csv file; by default RUN/graph.html.")
    ] = None,
    metric: Annotated[str, typer.Option(help="euclidean or mahalanobis.")] = "euclidean",
    trust: Annotated[bool, typer.Option("--trust", help="Run the algorithm file that the run brings along.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the statistics as JSON.")] = False,
) -> None:
    """Draw the transferability graph of a run and print α, β, γ.

    Example: [b]crosstail graph run --out graph.png[/]
    """
    from crosstail import protocols
    from crosstail.report.page import save_chart
    from crosstail.training.folder import RunFolder
    from crosstail.training.run import graph_of, load_model

    folder = RunFolder(run)
    spec = folder.spec()
    with progress_bar(Console(stderr=True)) as progress:
        dataset = protocols.inputs(spec, progress)
    found = graph_of(load_model(folder, dataset, trust), dataset, metric)  # type: ignore[arg-type]
    path = out or run / "graph.html"
    if path.suffix == ".csv":
        found.to_frame(dataset.domains, dataset.classes).to_csv(path, index=False)
    else:
        save_chart(found.chart(dataset.domains, dataset.classes, title=f"{spec.algorithm} on {spec.dataset}"), path)
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

"""crosstail graph: how the pairs of a trained model lie to each other."""

import json
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the statistics as JSON.")] = False,
) -> None:
    """Draw the transferability graph of a run and print α, β, γ.

    Example: [b]crosstail graph run --out graph.png[/]
    """
    from crosstail.report.page import save_chart
    from crosstail.training.folder import RunFolder
    from crosstail.training.run import graph_of, load_inputs, load_model

    folder = RunFolder(run)
    spec = folder.spec()
    with progress_bar(Console(stderr=True)) as progress:
        dataset = load_inputs(spec, progress)
    found = graph_of(load_model(folder, dataset), dataset, metric)  # type: ignore[arg-type]
    path = out or run / "graph.html"
    if path.suffix == ".csv":
        found.to_frame(dataset.domains, dataset.classes).to_csv(path, index=False)
    else:
        save_chart(found.chart(dataset.domains, dataset.classes, title=f"{spec.algorithm} on {spec.dataset}"), path)
    statistics = found.statistics
    if as_json:
        print(json.dumps(statistics._asdict()))
    else:
        console = Console(highlight=False)
        console.print(f"α {statistics.alpha:.2f}  same class, other domain (small is good)")
        console.print(f"β {statistics.beta:.2f}  other class, same domain (large is good)")
        console.print(f"γ {statistics.gamma:.2f}  other class, other domain (large is good)")
        console.print(f"(β + γ) − α = {statistics.separation:.2f}; picture in {path}")

"""crosstail graph: how close the pairs of a trained model are in feature space."""

import json
import math
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._progress import progress_bar
from crosstail.cli._verb import Json, described, import_torch
from crosstail.training.existing import existing_run

MEANINGS = {
    "α": "same class, other domain (small is good)",
    "β": "other class, same domain (large is good)",
    "γ": "other class, other domain (large is good)",
}


@described
def graph(
    places: Annotated[tuple[Path, ...], Parameter(name="RUN")],
    /,
    *,
    out: Path | None = None,
    metric: Literal["euclidean", "mahalanobis"] = "euclidean",
    trust: bool = False,
    as_json: Json = False,
) -> None:
    """Example: `crosstail graph run --out graph.png`, `crosstail graph erm boda`, or `crosstail graph features.npz`"""
    runs = () if len(places) == 1 and places[0].suffix.lower() == ".npz" else tuple(map(existing_run, places))
    import_torch()

    from crosstail.reports.graph_page import verdict
    from crosstail.reports.run.tables import ESTIMATED
    from crosstail.reports.wording import shown_statistics
    from crosstail.workflows.graph import graph

    with progress_bar(Console(stderr=True)) as progress:
        graphs = graph(*places, out=out, metric=metric, trust=trust, progress=progress)
    if as_json:
        print(json.dumps(graphs.to_json()))
        return
    console, found = Console(highlight=False, markup=False), [one.graph for one in graphs.models]
    if len(runs) == 2:
        console.print(f"{runs[0]} / {runs[1]}", soft_wrap=True)
    shown = zip(*map(shown_statistics, found), strict=True)
    for (symbol, meaning), values in zip(MEANINGS.items(), shown, strict=True):
        console.print(f"{symbol} {' / '.join(values)}  {meaning}")
    if any(one.estimate for one in found):
        console.print(ESTIMATED)
    separations = (one.statistics.separation for one in found)
    shown_separations = " / ".join("–" if math.isnan(value) else f"{value:.2f}" for value in separations)
    console.print(f"(β + γ) − α = {shown_separations} (large is good)")
    for one in graphs.models:
        if said := verdict(one.graph):
            console.print(f"{one.name}: {said}")
    console.print(f"It is drawn in {graphs.out}.", soft_wrap=True)

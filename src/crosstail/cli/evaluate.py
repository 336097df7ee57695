"""crosstail evaluate: a trained model on any labelled data."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crosstail.cli._progress import progress_bar
from crosstail.cli._tables import accuracy_table


def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    source: Annotated[str, typer.Argument(help="A folder, a manifest, an .npz file, or a data set's name.")],
    split: Annotated[str, typer.Option(help="all, train, val or test.")] = "all",
    weights: Annotated[
        Path | None, typer.Option(help="Where the weights of the frozen backbone are now, if not where they were.")
    ] = None,
    skip_broken: Annotated[bool, typer.Option("--skip-broken", help="Leave out images that cannot be read.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Run the algorithm file that the run brings along.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Test a run's model on data with known classes; its domains may be new ones.

    Example: [b]crosstail evaluate run new_hospital/[/]
    """
    from crosstail import data
    from crosstail.prediction.predictor import Predictor, evaluate_on

    if split not in ("all", *data.SPLITS):
        raise ValueError(f"--split is {split!r}, expected all, train, val or test")
    predictor = Predictor(run, weights, trust)
    dataset = data.load(source, labels=(), skip_broken=skip_broken)
    with progress_bar(Console(stderr=True)) as progress:
        accuracy = evaluate_on(predictor, dataset, split, progress)
    if as_json:
        print(json.dumps({"domains": dataset.domains, "classes": predictor.classes, **accuracy.to_json()}))
        return
    console = Console()
    for note in dataset.notes:
        console.print(f"note: {note}", markup=False)
    console.print(accuracy_table(f"{run} on {source}, {split}", accuracy, dataset.domains, predictor.classes))

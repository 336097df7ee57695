"""crosstail evaluate: test a trained model on any labelled data."""

import json
from typing import Literal

from rich.console import Console

from crosstail.cli._parameters import Json, MovedWeights, Run, Trust
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import Data, SkipBroken


def evaluate(
    run: Run,
    source: Data,
    /,
    *,
    split: Literal["all", "train", "val", "test"] = "all",
    weights: MovedWeights = None,
    skip_broken: SkipBroken = False,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Test a run's model on labelled data, also from domains that it has not seen.

    Example: `crosstail evaluate run new_hospital/`

    Args:
        split: Part of the data to test on.
    """
    from crosstail import data
    from crosstail.prediction.predictor import Predictor, evaluate_on
    from crosstail.report.document import terminal
    from crosstail.report.run.summary import accuracy_summary

    predictor = Predictor(run, weights, trust)
    dataset = data.load(source, labels=(), skip_broken=skip_broken)
    with progress_bar(Console(stderr=True)) as progress:
        accuracy = evaluate_on(predictor, dataset, split, progress)
    if as_json:
        print(json.dumps({"domains": dataset.domains, "classes": predictor.classes, **accuracy.to_json()}))
        return
    console = Console(markup=False)
    for note in dataset.notes:
        console.print(f"note: {note}")
    title = f"{run} on {source}, {split}"
    terminal.show([accuracy_summary(title, accuracy, dataset.domains, predictor.classes)], console)

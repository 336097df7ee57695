"""crosstail predict: classes for unlabelled files."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._parameters import Json, MovedWeights, Run, Trust
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import SkipBroken

if TYPE_CHECKING:
    from crosstail.prediction.predictor import Prediction


def predict(
    run: Run,
    files: Annotated[list[Path], Parameter(name="FILES")],
    /,
    *,
    out: Path | None = None,
    weights: MovedWeights = None,
    skip_broken: SkipBroken = False,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Predict the class of images or vectors, with a probability for each class; no domain is needed.

    Example: `crosstail predict run photos/ another.jpg --out classes.csv`

    Args:
        files: Images, folders of images, or one .npy or .npz file of inputs.
        out: A .csv or .json file; default: CSV on standard output.
    """
    from crosstail.prediction.predictor import Predictor, find_inputs, predict_inputs

    console = Console(stderr=True, markup=False)
    predictor = Predictor(run, weights, trust)
    names, inputs = find_inputs(files, predictor)
    with progress_bar(console) as progress:
        rows = predict_inputs(predictor, names, inputs, skip_broken=skip_broken, progress=progress)
    for row in rows:
        if row.problem:
            console.print(f"skipped: {row.name}: {row.problem}", soft_wrap=True)
    predicted = [row for row in rows if not row.problem]
    as_json = as_json or (out is not None and out.suffix == ".json")
    text = _json(predicted, predictor.classes) if as_json else _csv(predicted, predictor.classes)
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        console.print(f"{len(predicted)} predictions in {out}")


def _json(rows: "list[Prediction]", classes: Sequence[str]) -> str:
    records = [
        {"input": row.name, "class": row.label, "probabilities": dict(zip(classes, row.probabilities, strict=True))}
        for row in rows
    ]
    return json.dumps(records, indent=1, ensure_ascii=False) + "\n"


def _csv(rows: "list[Prediction]", classes: Sequence[str]) -> str:
    import pandas as pd

    header = ["input", "class", *(f"p({name})" for name in classes)]
    table = pd.DataFrame([[row.name, row.label, *row.probabilities] for row in rows], columns=header)
    return table.to_csv(index=False, float_format="%.6f", lineterminator="\n")

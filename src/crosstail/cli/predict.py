"""crosstail predict: classes for files without labels."""

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from crosstail.cli._progress import progress_bar

if TYPE_CHECKING:
    from crosstail.prediction.predictor import Prediction


def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    files: Annotated[list[Path], typer.Argument(help="Images, folders of images, or one .npy or .npz of inputs.")],
    out: Annotated[Path | None, typer.Option(help="A .csv or .json file; by default CSV is printed.")] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Where the weights of the frozen backbone are now, if not where they were.")
    ] = None,
    skip_broken: Annotated[bool, typer.Option("--skip-broken", help="Leave out images that cannot be read.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Run the algorithm file that the run brings along.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of CSV.")] = False,
) -> None:
    """Say the class of images or vectors, with the probability of each class; the domain is not needed.

    Example: [b]crosstail predict run photos/ one_more.jpg --out classes.csv[/]
    """
    from crosstail.prediction.predictor import Predictor, find_inputs, predict_inputs

    console = Console(stderr=True)
    predictor = Predictor(run, weights, trust)
    names, inputs = find_inputs(files, predictor)
    with progress_bar(console) as progress:
        rows = predict_inputs(predictor, names, inputs, skip_broken=skip_broken, progress=progress)
    broken = [row for row in rows if row.problem]
    for row in broken:
        console.print(f"left out: {row.name}: {row.problem}", markup=False, soft_wrap=True)
    known = [row for row in rows if not row.problem]
    as_json = as_json or (out is not None and out.suffix == ".json")
    text = _json(known, predictor.classes) if as_json else _csv(known, predictor.classes)
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        console.print(f"{len(known)} predictions in {out}", markup=False)


def _json(rows: "list[Prediction]", classes: Sequence[str]) -> str:
    said = [
        {"input": r.name, "class": r.label, "probabilities": dict(zip(classes, r.probabilities, strict=True))}
        for r in rows
    ]
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


def _csv(rows: "list[Prediction]", classes: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["input", "class", *(f"p({name})" for name in classes)])
    writer.writerows([r.name, r.label, *(f"{p:.6f}" for p in r.probabilities)] for r in rows)
    return text.getvalue()

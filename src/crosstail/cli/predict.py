"""crosstail predict: classes for unlabelled files."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._parameters import Json, MovedWeights, Run, Site, Trust
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import SkipBroken
from crosstail.training.existing import existing_run

if TYPE_CHECKING:
    from crosstail.prediction.predictor import Prediction


def predict(
    run: Run,
    files: Annotated[list[Path], Parameter(name="FILES")],
    /,
    *,
    site: Site = None,
    out: Path | None = None,
    weights: MovedWeights = None,
    skip_broken: SkipBroken = False,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Predict the class of images or vectors, with a probability for each class; their domain may be unknown.

    Example: `crosstail predict run photos/ another.jpg --out classes.csv`

    Args:
        files: Images, folders of images, or one .npy or .npz file of inputs.
        out: A .csv or .json file; default: CSV on standard output.
    """
    run = existing_run(run)
    for file in files:
        if not file.exists():
            raise FileNotFoundError(f"{file}: there is no such file or folder")

    from crosstail.prediction.predictor import Predictor, find_inputs, predict_inputs

    console = Console(stderr=True, markup=False)
    predictor = Predictor(run, weights, trust)
    domain = predictor.site(site)
    names, inputs = find_inputs(files, predictor)
    if note := predictor.site_note(site):
        console.print(f"note: {note}", soft_wrap=True)
    with progress_bar(console) as progress:
        rows = predict_inputs(predictor, names, inputs, site=domain, skip_broken=skip_broken, progress=progress)
    for row in rows:
        if row.problem:
            console.print(f"skipped: {row.name}: {row.problem}", soft_wrap=True)
    predicted = [row for row in rows if not row.problem]
    as_json = as_json or (out is not None and out.suffix == ".json")
    used = {} if site is None else {"site": None if note else site}
    text = (_json if as_json else _csv)(predicted, predictor.classes, used)
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        console.print(f"{len(predicted)} predictions in {out}")


def _json(rows: "list[Prediction]", classes: Sequence[str], used: dict[str, str | None]) -> str:
    records = [
        {"input": row.name, **used, "class": row.label}
        | {"probabilities": dict(zip(classes, row.probabilities, strict=True))}
        for row in rows
    ]
    return json.dumps(records, indent=1, ensure_ascii=False) + "\n"


def _csv(rows: "list[Prediction]", classes: Sequence[str], used: dict[str, str | None]) -> str:
    import pandas as pd

    header = ["input", *used, "class", *(f"p({name})" for name in classes)]
    cells = [[row.name, *used.values(), row.label, *row.probabilities] for row in rows]
    table = pd.DataFrame(cells, columns=header)
    return table.to_csv(index=False, float_format="%.6f", lineterminator="\n")

"""crosstail predict: classes for unlabelled files."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._parameters import Json, MovedWeights, Run, Trust
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import SkipBroken
from crosstail.prediction.sets import require_coverage
from crosstail.training.existing import existing_run

if TYPE_CHECKING:
    import pandas as pd

    from crosstail.prediction.decision import Decided
    from crosstail.prediction.predictor import Predictor


def predict(
    run: Run,
    files: Annotated[list[Path], Parameter(name="FILES")],
    /,
    *,
    site: str | None = None,
    prior: str | None = None,
    coverage: float | None = None,
    per: Literal["all", "site", "class", "pair"] = "pair",
    out: Path | None = None,
    weights: MovedWeights = None,
    skip_broken: SkipBroken = False,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Predict the class of images or vectors, with a calibrated probability for each class.

    Example: `crosstail predict run photos/ --site lagos --prior estimate --coverage 0.9 --out classes.csv`

    Args:
        files: Images, folders of images, one .csv with a column `path`, or one .npy or .npz file of inputs.
        site: The site that the inputs are from: a domain of the run; `folder`, if the path of each file contains its
            site; or `column:NAME` of the .csv. Without it, the site is unknown.
        prior: How frequent the classes are: `uniform`; as in `train`ing at the site; a .csv file with the columns
            `class` and `share`; or `estimate`, from these inputs. Without it, the model's own answer: every pair
            is taken to be equally frequent.
        coverage: Add a set of classes for each input that contains the true one with this probability, such as 0.9,
            and whether a person should look at it, because the set has not exactly one class.
        per: Which groups of inputs the coverage is promised for, each on its own.
        out: A .csv or .json file; default: CSV on standard output.
    """
    run = existing_run(run)
    for file in files:
        if not file.exists():
            raise FileNotFoundError(f"{file}: there is no such file or folder")
    if prior not in (None, "uniform", "train", "estimate") and not Path(prior).is_file():
        raise FileNotFoundError(f"--prior {prior}: there is no such file; or use uniform, train or estimate")
    if coverage is not None:
        require_coverage(coverage)

    from crosstail.prediction.decision import decide
    from crosstail.prediction.predictor import Predictor, find_inputs, predict_inputs
    from crosstail.prediction.sites import sites_of

    console = Console(stderr=True, markup=False, highlight=False)
    predictor = Predictor(run, weights, trust)
    names, inputs, table = find_inputs(files, predictor)
    where = sites_of(predictor, names, site, table)
    for note in where.notes:
        console.print(f"note: {note}", soft_wrap=True)
    with progress_bar(console) as progress:
        rows, log_p, problems = predict_inputs(
            predictor, names, inputs, where.domain, skip_broken=skip_broken, progress=progress
        )
    for row, problem in problems.items():
        console.print(f"skipped: {names[row]}: {problem}", soft_wrap=True)
    if not len(rows):
        raise ValueError(f"{files[0]}: none of the {len(names):,} inputs can be read")
    found = decide(predictor, log_p, where.domain[rows], prior=prior, coverage=coverage, per=per)
    for note in found.notes:
        console.print(f"note: {note}", soft_wrap=True)
    _show_prevalence(console, predictor, found)
    columns = {"input": [names[row] for row in rows]}
    if site is not None:
        columns["site"] = [where.names[row] for row in rows]
    text = _written(columns, predictor, found, as_json or (out is not None and out.suffix == ".json"))
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        console.print(f"{len(rows)} predictions in {out}")


def _show_prevalence(console: Console, predictor: "Predictor", found: "Decided") -> None:
    """Print the estimated shares of the classes, with their intervals."""
    from crosstail.report.document import terminal
    from crosstail.report.document.model import Table

    names = [*predictor.result.domains, "unknown site"]
    for site, one in found.estimates.items():
        rows = [
            [name, f"{100 * share:.1f}", f"{100 * low:.1f} to {100 * high:.1f}"]
            for name, share, low, high in zip(predictor.classes, one.share, one.low, one.high, strict=True)
        ]
        title = f"Estimated prevalence, {names[site]}"
        terminal.show([Table(header=["class", "%", "95 % interval"], rows=rows, title=title)], console)


def _written(columns: "dict[str, list[str]]", predictor: "Predictor", found: "Decided", as_json: bool) -> str:
    """The predictions as CSV or JSON."""
    import pandas as pd

    classes = predictor.classes
    table = pd.DataFrame({**columns, "class": [classes[c] for c in found.probabilities.argmax(1)]})
    sets = None
    if found.members is not None:
        sets = [[classes[c] for c in row.nonzero()[0]] for row in found.members]
        table["review"] = [len(one) != 1 for one in sets]
    if as_json:
        return _json(table, sets, predictor, found)
    if sets is not None:
        table.insert(table.shape[1] - 1, "set", [" | ".join(one) for one in sets])
        table["review"] = ["yes" if each else "no" for each in table["review"]]
    shares = pd.DataFrame(found.probabilities, columns=[f"p({name})" for name in classes])
    return pd.concat([table, shares], axis=1).to_csv(index=False, float_format="%.6f", lineterminator="\n")


def _json(table: "pd.DataFrame", sets: list[list[str]] | None, predictor: "Predictor", found: "Decided") -> str:
    import json

    records = table.to_dict("records")
    for i, record in enumerate(records):
        record |= {"set": sets[i]} if sets is not None else {}
        record["probabilities"] = dict(zip(predictor.classes, map(float, found.probabilities[i]), strict=True))
    return json.dumps(records, indent=1, ensure_ascii=False) + "\n"

"""crosstail predict: classes for unlabelled files."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._imports import import_torch
from crosstail.cli._next import free, say_next
from crosstail.cli._parameters import Json, MovedWeights, RowLauncher, RowWorkers, Run, Trust
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import SkipBroken
from crosstail.prediction.sets import require_coverage
from crosstail.training.existing import existing_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from crosstail.prediction.decision import Decision
    from crosstail.prediction.predictor import Predictor

    Parts = Iterator[tuple[bool, pd.DataFrame, NDArray[np.float32]]]
    """Some inputs at a time: whether they are the first ones, the answers, and the probabilities of every class."""


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
    launcher: RowLauncher = "inline",
    workers: RowWorkers = None,
    as_json: Json = False,
) -> None:
    """Predict the class of images or vectors, with a calibrated probability for each class.

    Example: `crosstail predict run photos/ --site lagos --prior estimate --coverage 0.9 --out classes.csv`

    Args:
        files: Images, folders of images, one .csv with a column `path`, or one .npy or .npz file of inputs.
        site: The site that the inputs are from: a domain of the run; `folder`, if the path of each file contains its
            site; or `column:NAME` of the .csv. Without it, the site is unknown.
        prior: How frequent the classes are: `uniform`; `train` (as frequent as in training at the site); a .csv file
            with the columns `class` and `share`; or `estimate` (from these inputs). Default: the model's own answer,
            for which all pairs are equally frequent.
        coverage: For each input, add a set of classes that contains the true one with this probability, such as 0.9,
            and mark the input for review unless the set contains exactly one class.
        per: Groups for which the coverage holds separately.
        out: A .csv or .json file; default: CSV on standard output. With a file, an interrupted command resumes.
    """
    run = existing_run(run)
    for file in files:
        if not file.exists():
            raise FileNotFoundError(f"{file}: there is no such file or folder")
    if prior not in (None, "uniform", "train", "estimate") and not Path(prior).is_file():
        raise FileNotFoundError(f"--prior {prior}: there is no such file; or use uniform, train or estimate")
    if coverage is not None:
        require_coverage(coverage)
    import_torch()

    import numpy as np
    import pandas as pd

    from crosstail.data import ImageFiles
    from crosstail.prediction.decision import decide
    from crosstail.prediction.inputs import NamedInputs, RayActors, predict_inputs
    from crosstail.prediction.kept_scores import KeptScores, mark_of
    from crosstail.prediction.predictor import Predictor, find_inputs
    from crosstail.prediction.sites import sites_of

    console = Console(stderr=True, markup=False, highlight=False)
    predictor = Predictor(run, weights, trust)
    names, x, table = find_inputs(files, predictor)
    where = sites_of(predictor, names, site, table)
    for note in where.notes:
        console.print(f"note: {note}", soft_wrap=True)
    inputs = NamedInputs(names, x, where.domain, skip_broken)
    shape = len(names), len(predictor.classes)
    if out is None:
        kept = KeptScores(shape)
    else:
        sources = [Path(name) for name in names] if isinstance(x, ImageFiles) else files
        mark = mark_of(predictor.folder.path / "result.json", sources, where.domain)
        kept = KeptScores(shape, out.with_name(f".{out.name}.part"), mark)
    with progress_bar(console) as progress:
        on_ray = RayActors(workers, weights, trust) if launcher == "ray" else None
        scores = predict_inputs(predictor, inputs, kept, progress, on_ray)
    rows, log_p = scores.rows, scores.log_p
    for row, problem in scores.problems.items():
        console.print(f"skipped: {names[row]}: {problem}", soft_wrap=True)
    if not len(rows):
        raise ValueError(f"{files[0]}: none of the {len(names):,} inputs can be read")
    domain = where.domain[rows]
    found = decide(predictor, log_p, domain, prior=prior, coverage=coverage, per=per)
    for note in found.notes:
        console.print(f"note: {note}", soft_wrap=True)
    _show_prevalence(console, predictor, found)

    def parts() -> "Parts":
        classes = np.array(predictor.classes, object)
        for some, probabilities, members in found.chunks(log_p, domain):
            columns = {"input": [names[row] for row in rows[some]]}
            columns |= {} if site is None else {"site": [where.names[row] for row in rows[some]]}
            table = pd.DataFrame({**columns, "class": classes[probabilities.argmax(1)]})
            if members is not None:
                table["set"] = [classes[row].tolist() for row in members]
                table["review"] = members.sum(1) != 1
            yield some.start == 0, table, probabilities

    write = _json if as_json or (out is not None and out.suffix == ".json") else _csv
    with nullcontext(sys.stdout) if out is None else out.open("w", encoding="utf-8", newline="") as stream:
        stream.writelines(write(parts(), predictor.classes))
    kept.remove()
    if out is not None:
        console.print(f"{len(rows)} predictions in {out}")
        say_next(console, "export", run, "--format", "torch", "--out", free("model.pt2"))


def _show_prevalence(console: Console, predictor: "Predictor", found: "Decision") -> None:
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


def _csv(parts: "Parts", classes: "Sequence[str]") -> "Iterator[str]":
    import pandas as pd

    for first, table, probabilities in parts:
        if "set" in table:
            answers = {"set": table["set"].str.join(" | "), "review": table["review"].map({True: "yes", False: "no"})}
            table = table.assign(**answers)
        shares = pd.DataFrame(probabilities, columns=[f"p({name})" for name in classes])
        whole = pd.concat([table, shares], axis=1)
        yield whole.to_csv(index=False, header=first, float_format="%.6f", lineterminator="\n")


def _json(parts: "Parts", classes: "Sequence[str]") -> "Iterator[str]":
    import json

    for first, table, probabilities in parts:
        records = table.to_dict("records")
        for record, said in zip(records, probabilities.tolist(), strict=True):
            record["probabilities"] = dict(zip(classes, said, strict=True))
        yield ("[" if first else ",") + json.dumps(records, indent=1, ensure_ascii=False)[1:-2]
    yield "\n]\n"

"""crosstail predict: classes for unlabelled files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._checks import require_output
from crosstail.cli._imports import import_torch
from crosstail.cli._next import free, say_next
from crosstail.cli._parameters import Json, MovedWeights, RowLauncher, RowWorkers, Run, Trust
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import SkipBroken
from crosstail.prediction.sets import require_coverage
from crosstail.training.existing import existing_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from crosstail.prediction.answers import Parts
    from crosstail.prediction.decision import Decision
    from crosstail.prediction.inputs import Scores
    from crosstail.prediction.predictor import Predictor
    from crosstail.progress import Progress


def predict(
    run: Run,
    files: Annotated[list[Path], Parameter(name="FILES")],
    /,
    *,
    site: str | None = None,
    prior: str | None = None,
    coverage: float | None = None,
    per: Literal["all", "site", "class", "pair"] = "pair",
    top: int | None = None,
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
        top: Write only this many of the most probable classes, with their probabilities; default: all classes, or 5 if
            there are more than 1,000.
        out: A .csv or .json file; default: CSV on standard output. With a file, an interrupted command resumes.
    """
    run = existing_run(run)
    for file in files:
        if not file.exists():
            raise FileNotFoundError(f"{file}: there is no such file or folder")
    if out is not None:
        require_output(out, files, ".csv", ".json")
    if prior not in (None, "uniform", "train", "estimate") and not Path(prior).is_file():
        raise FileNotFoundError(f"--prior {prior}: there is no such file; or use uniform, train or estimate")
    if coverage is not None:
        require_coverage(coverage)
    import_torch()

    import numpy as np
    import pandas as pd

    from crosstail.data import kind_of
    from crosstail.prediction.answers import CSV, JSON, Answers, blocks_of, shown_classes
    from crosstail.prediction.decision import decide
    from crosstail.prediction.inputs import BATCH, NamedInputs, RayActors, predict_inputs
    from crosstail.prediction.kept_scores import mark_of
    from crosstail.prediction.predictor import Predictor, find_inputs
    from crosstail.prediction.sites import sites_of

    console = Console(stderr=True, markup=False, highlight=False)
    predictor = Predictor(run, weights, trust)
    names, x, table = find_inputs(files, predictor)
    where = sites_of(predictor, names, site, table)
    for note in where.notes:
        console.print(f"note: {note}", soft_wrap=True)
    inputs, classes = NamedInputs(names, x, where.domain, skip_broken), np.array(predictor.classes, object)
    shown, blocks = shown_classes(len(classes), top), blocks_of(len(names), len(classes), BATCH)
    if prior == "estimate" and len(blocks) > 1:
        size = f"{len(names):,} inputs × {len(classes):,} classes are too many probabilities"
        raise ValueError(f"--prior estimate: {size}. Give at most {blocks[0].stop:,} inputs at a time")
    sources = files if kind_of(x).names is None else [Path(name) for name in names]
    form = JSON if as_json or (out is not None and out.suffix == ".json") else CSV
    mark = "" if out is None else mark_of(predictor.folder.path / "result.json", sources, where.domain)
    answers = Answers(out, mark, how=repr((form.end, shown, prior, coverage, per, site)))
    found: Decision | None = None

    def parts(rows: "NDArray[np.int64]", log_p: "NDArray[np.float32]") -> "Parts":
        assert found is not None
        for some, probabilities, members in found.chunks(log_p, where.domain[rows]):
            columns = {"input": [names[row] for row in rows[some]]}
            columns |= {} if site is None else {"site": [where.names[row] for row in rows[some]]}
            table = pd.DataFrame({**columns, "class": classes[probabilities.argmax(1)]})
            if members is not None:
                table["set"] = [classes[row].tolist() for row in members]
                table["review"] = members.sum(1) != 1
            yield some.start == 0 and not answers.written, table, probabilities

    on_ray = RayActors(workers, weights, trust) if launcher == "ray" else None
    with progress_bar(console) as progress:

        def scored(block: slice) -> "Scores":
            kept, here = answers.scores(block, len(classes)), _counted(progress, block.start, len(names))
            return predict_inputs(predictor, inputs.part(block), kept, here, on_ray)

        todo = [block for block in blocks if block.start not in answers.blocks]
        first = scored(todo[0]) if prior == "estimate" and todo else None  # of the only block
        if first is not None or prior != "estimate":
            log_p, sites = (first.log_p, where.domain[first.rows]) if first else (np.empty((0, 0)), where.domain)
            found = decide(predictor, log_p, sites, prior=prior, coverage=coverage, per=per) if len(sites) else None
        for block in todo:
            scores = first or scored(block)
            rows = block.start + scores.rows
            skipped = [f"{names[block.start + row]}: {problem}" for row, problem in scores.problems.items()]
            texts = form.texts(parts(rows, scores.log_p), predictor.classes, shown) if len(rows) else ()
            answers.add(block, len(rows), skipped, texts)
    for problem in answers.skipped:
        console.print(f"skipped: {problem}", soft_wrap=True)
    if not answers.written:
        answers.remove()
        raise ValueError(f"{files[0]}: none of the {len(names):,} inputs can be read")
    if found is not None:
        for note in found.notes:
            console.print(f"note: {note}", soft_wrap=True)
        _show_prevalence(console, predictor, found)
    answers.finish(form.end)
    if out is not None:
        console.print(f"{answers.written} predictions in {out}")
        say_next(console, "export", run, "--format", "torch", "--out", free("model.pt2"))


def _counted(progress: "Progress", start: int, total: int) -> "Progress":
    """Progress in a block of the inputs as progress in all of them."""
    return lambda what, done, _: progress(what, start + done, total)


def _show_prevalence(console: Console, predictor: "Predictor", found: "Decision") -> None:
    """Print the estimated shares of the classes, with their intervals."""
    from crosstail.reports.document import terminal
    from crosstail.reports.document.model import Table

    names = [*predictor.result.domains, "unknown site"]
    for site, one in found.estimates.items():
        rows = [
            [name, f"{100 * share:.1f}", f"{100 * low:.1f} to {100 * high:.1f}"]
            for name, share, low, high in zip(predictor.classes, one.share, one.low, one.high, strict=True)
        ]
        title = f"Estimated prevalence, {names[site]}"
        terminal.show([Table(header=["class", "%", "95 % interval"], rows=rows, title=title)], console)

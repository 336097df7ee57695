"""crosstail evaluate: test a trained model on any labelled data."""

import hashlib
import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._checks import known_source, require_output
from crosstail.cli._imports import import_torch
from crosstail.cli._next import free, inputs_of, say_next
from crosstail.cli._parameters import Json, MovedWeights, Run, Trust
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import Data, ReadOptions
from crosstail.training.existing import existing_run


def evaluate(
    run: Run,
    source: Data,
    /,
    *,
    split: Literal["all", "train", "val", "test"] = "all",
    out: Path | None = None,
    options: Annotated[ReadOptions, Parameter(name="*")] = ReadOptions(),  # noqa: B008 - immutable
    weights: MovedWeights = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Test a run's model on new labelled data, including domains that it has not seen.

    Samples that the run was trained or selected on are found by content and left out, and so are samples of classes
    that the model does not know. Writes a page with the new domains beside those that the run was tested on.

    Example: `crosstail evaluate run new_hospital/`

    Args:
        split: Split to evaluate on; for the run's own data, the run's split. Default: all unseen samples.
        out: The page to write; default: in RUN/evaluated.
    """
    folder, source = existing_run(run), known_source(source)
    read = options.spec(source)
    import_torch()

    from crosstail.prediction.evaluate import evaluate_on, load_for
    from crosstail.prediction.predictor import Predictor
    from crosstail.reports.document import terminal
    from crosstail.reports.run.certainty_elsewhere import certainty_json
    from crosstail.reports.run.command import options as options_of
    from crosstail.reports.run.command import words
    from crosstail.reports.run.evaluated import write_evaluation
    from crosstail.reports.run.summary import accuracy_summary

    predictor = Predictor(folder, weights, trust)
    with progress_bar(Console(stderr=True)) as progress:
        dataset = load_for(predictor, read, split, progress)
        found = evaluate_on(predictor, dataset, split, progress)
    if out is not None:
        require_output(out, (), ".html", ".htm")
    page = out or folder / "evaluated" / page_name(source, split)
    said = [*words(split=split), *options_of(read)]
    command = shlex.join(["crosstail", "evaluate", str(run), source, *said])
    seen = [name for name in dataset.domains if name in predictor.sites]
    if as_json:
        facts = {"domains": dataset.domains, "classes": predictor.classes, "left_out": asdict(found.left_out)}
        known = {"known": {"sites": seen, **found.known.to_json()}} if found.known else {}
        certain = {"probabilities": certainty_json(found, predictor.calibration, list(predictor.classes))}
        print(json.dumps({**facts, **found.accuracy.to_json(), **known, **certain}))
        write_evaluation(page, predictor, found, command)
        return
    console = Console(markup=False)
    for note in dataset.notes:
        console.print(f"note: {note}", soft_wrap=True)
    if str(found.left_out):
        console.print(f"left out {found.left_out}", soft_wrap=True)
    unseen = [name for name in dataset.domains if name not in seen]
    if found.known and unseen:
        console.print(f"note: new to the model, so they stay unknown: {', '.join(unseen)}", soft_wrap=True)
    title = f"{run} on {source}, {split}"
    table = accuracy_summary(title, found.accuracy, dataset.domains, predictor.classes, found.known)
    terminal.show([table], console)
    write_evaluation(page, predictor, found, command)  # last: the run's folder may be read-only
    console.print(f"The page is in {page}.", soft_wrap=True)
    if inputs := inputs_of(source, dataset, read.columns):
        say_next(console, "predict", run, *inputs, "--out", free("classes.csv"))
    else:  # a benchmark has no files that one could predict
        say_next(console, "export", run, "--format", "torch", "--out", free("model.pt2"))


def page_name(source: str, split: str) -> str:
    """One name for every source and split, also of files with the same name in different folders."""
    path = Path(source).resolve()
    place = hashlib.sha256(str(path).encode()).hexdigest()[:6]
    return "-".join([path.stem, place, *([] if split == "all" else [split])]) + ".html"

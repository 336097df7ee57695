"""crosstail evaluate: test a trained model on any labelled data."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console

from crosstail.cli._checks import check_prior, known_source
from crosstail.cli._next import say_all, say_predict
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import SPLIT, Data, ReadOptions, options
from crosstail.cli._verb import Json, Run, described, import_torch
from crosstail.training.existing import existing_run


@described
def evaluate(
    run: Run,
    source: Data,
    /,
    *,
    split: Literal["all", "train", "val", "test"] = "all",
    prior: str | None = None,
    out: Path | None = None,
    options: Annotated[ReadOptions, options(without=(*SPLIT, "labels", "data_seed"))] = ReadOptions(),  # noqa: B008 - immutable
    weights: Path | None = None,
    trust: bool = False,
    as_json: Json = False,
) -> None:
    """Example: `crosstail evaluate run new_hospital/`"""
    existing_run(run)
    check_prior(prior)
    spec = options.spec(known_source(source))
    import_torch()

    from crosstail.reports.document import terminal
    from crosstail.reports.run.command import inputs_of
    from crosstail.reports.run.critical import critical_tables, flags_of_evaluated
    from crosstail.reports.run.summary import accuracy_summary
    from crosstail.reports.run.tested import Tested
    from crosstail.reports.run.two_questions import summary
    from crosstail.workflows.evaluate import evaluate

    how: dict[str, Any] = {"weights": weights, "trust": trust}
    with progress_bar(Console(stderr=True)) as progress:
        evaluated = evaluate(run, spec, split=split, prior=prior, out=out, **how, progress=progress)
    found, dataset = evaluated.found, evaluated.dataset
    console = Console(markup=False)
    if as_json:
        print(json.dumps(evaluated.to_json()))
    else:
        say_all(console, "note", dataset.notes)
        if str(found.left_out):
            console.print(f"left out {found.left_out}", soft_wrap=True)
        unseen = [name for name in dataset.domains if name not in evaluated.known_domains]
        if found.answers.informed is not None and unseen:
            console.print(f"note: new to the model, so they stay unknown: {', '.join(unseen)}", soft_wrap=True)
        tested = replace(Tested.of_answers(found.answers), critical=list(evaluated.predictor.run.result.critical))
        tables = critical_tables(tested, evaluated.questions, flags_of_evaluated(found), narrow=True)
        terminal.show(
            [
                *tables,
                accuracy_summary(f"{run} on {spec.dataset}, {split}", tested),
                *([summary(evaluated.questions)] if evaluated.questions else []),
            ],
            console,
        )
    if evaluated.unwritten:
        raise evaluated.unwritten
    if as_json:
        return
    console.print(f"The page is in {evaluated.page}.", soft_wrap=True)
    say_predict(console, run, inputs_of(spec, dataset))

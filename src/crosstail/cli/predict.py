"""crosstail predict: classes for unlabelled files."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._checks import check_prior, require_output
from crosstail.cli._next import say_all, say_predict
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import SkipBroken
from crosstail.cli._verb import Json, Run, described, import_torch
from crosstail.training.existing import existing_run

if TYPE_CHECKING:
    from crosstail.prediction.decision import Decision
    from crosstail.prediction.predictor import Predictor


@described
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
    weights: Path | None = None,
    skip_broken: SkipBroken = False,
    trust: bool = False,
    launcher: Literal["inline", "ray"] = "inline",
    workers: int | None = None,
    as_json: Json = False,
    page: Annotated[bool, Parameter(negative="--no-page")] = True,
) -> None:
    """Example: `crosstail predict run photos/ --site lagos --prior estimate --coverage 0.9 --out classes.csv`

    Args:
        out: A .csv or .json file; default: CSV on standard output. With a file, an interrupted command resumes.
        page: For photos and an OUT, also write OUT.html: look at them, correct answers, save labels."""
    run = existing_run(run)
    if out is not None:
        require_output(out, files, ".csv", ".json")
    check_prior(prior)
    import_torch()

    from crosstail.prediction.decision import question_of
    from crosstail.workflows.predict import NothingPredicted, predict

    console = Console(stderr=True, markup=False, highlight=False)
    how: dict[str, Any] = {"site": site, "prior": prior, "coverage": coverage, "per": per, "top": top}
    how |= {"weights": weights, "skip_broken": skip_broken, "trust": trust, "launcher": launcher, "workers": workers}
    try:
        with progress_bar(console) as progress:
            found = predict(run, files, out=out or sys.stdout, **how, as_json=as_json, page=page, progress=progress)
    except NothingPredicted as error:
        say_all(console, "note", error.notes)
        say_all(console, "skipped", error.skipped)
        raise
    say_all(console, "note", found.site_notes)
    say_all(console, "skipped", found.skipped)
    if found.decision is not None:
        say_all(console, "note", [question_of(prior), *found.decision.notes])
        _show_prevalence(console, found.predictor, found.decision)
    say_all(console, "drift", found.drift)
    if out is not None:
        console.print(f"{found.number} predictions in {out}")
        if found.page is not None:
            console.print(f"Look at the photos and correct the answers in {found.page}", soft_wrap=True)
        say_predict(console, run, ())


def _show_prevalence(console: Console, predictor: "Predictor", found: "Decision") -> None:
    from crosstail.reports.document import terminal
    from crosstail.reports.document.model import Table

    names = [*predictor.run.result.domains, "unknown site"]
    for site, one in found.estimates.items():
        rows = [
            [name, f"{100 * share:.1f}", f"{100 * low:.1f} to {100 * high:.1f}"]
            for name, share, low, high in zip(predictor.classes, one.share, one.low, one.high, strict=True)
        ]
        title = f"Estimated prevalence, {names[site]}"
        terminal.show([Table(header=["class", "%", "95 % interval"], rows=rows, title=title)], console)

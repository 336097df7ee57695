"""crosstail audit: look at a data set before any training."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._checks import known_source
from crosstail.cli._imports import import_torch
from crosstail.cli._next import free, say_next
from crosstail.cli._parameters import Json
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import HIDDEN, Data, SampleOptions
from crosstail.training.existing import existing_run

if TYPE_CHECKING:
    from crosstail.reports.run.reported import ReportedRun

ALL = "`--out` shows more of each pair, and `--json` lists all of them."


@dataclass(frozen=True, kw_only=True)
class AuditOptions(SampleOptions):
    """Broken images are reported, not left out."""

    skip_broken: Annotated[bool, HIDDEN] = False


def audit(
    source: Data,
    /,
    *,
    options: Annotated[AuditOptions, Parameter(name="*")] = AuditOptions(),  # noqa: B008 - immutable
    run: Path | None = None,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Count the pairs, compare the label distributions, find duplicates and broken images, and suggest what to try.

    Example: `crosstail audit photos/ --out audit.html`

    Args:
        run: A finished run on these data: also list probable label errors among its held-out samples. After
            `fit --folds 5 --refit`, every sample was held out: --run OUT/refit.
        out: Also write an .html page that works offline.
    """
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: expected a name that ends in .html")
    spec = options.spec(known_source(source))
    run = None if run is None else existing_run(run)
    import_torch()

    from crosstail import data
    from crosstail.data import protocols
    from crosstail.reports.audit import audit as examine
    from crosstail.reports.audit import recommend
    from crosstail.reports.audit.document import page, summary
    from crosstail.reports.audit.inputs import ImageInputs
    from crosstail.reports.document import html, terminal
    from crosstail.reports.run.command import options as options_of
    from crosstail.reports.run.suspects import suspect_table, suspects, suspects_by_pair

    many, few = data.shot_thresholds(spec.dataset)
    with progress_bar(Console(stderr=True)) as progress:
        dataset = protocols.split(data.load_source(spec, progress), spec)
        found = examine(dataset.plain(), many=many, few=few, progress=progress)
    trained = None if run is None else _run_on(run, spec.dataset)
    if out is not None:
        html.save(page(found, dataset, [] if trained is None else list(suspects_by_pair(trained))), out)
    if as_json:
        wrong = {} if trained is None else {"label_errors": suspect_table(trained).to_dict("records")}
        print(json.dumps({**found.to_json(), **wrong}))
        return
    console = Console(highlight=False)
    terminal.show([*summary(found), *([] if trained is None else suspects(trained, ALL))], console)
    where = f"The page is in {out}." if out else "Add --out audit.html for a page with charts and pictures."
    console.print(where, markup=False, soft_wrap=True)
    if recommend(found) is not None:
        broken = isinstance(found.inputs, ImageInputs) and bool(found.inputs.broken)
        said = options_of(replace(spec, skip_broken=broken))
        say_next(console, "race", spec.dataset, *said, "--out", free("race"))


def _run_on(path: Path, source: str) -> "ReportedRun":
    """A run on these data that has stored probabilities of its held-out samples."""
    from crosstail.reports.run.reported import read_run

    run = read_run(path)
    trained = run.result.spec.dataset
    if Path(trained).resolve() != Path(source).resolve():
        raise ValueError(f"--run {path} was trained on {trained}, not on {source}")
    if run.dataset is None:
        raise ValueError(f"--run {path}: {source} has changed since it was trained on")
    if run.probabilities is None or run.calibration is None:
        raise ValueError(f"--run {path} has no probabilities.npz: run its `crosstail fit` command again, which adds it")
    return run

"""crosstail audit: look at a data set before any training."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from crosstail.cli._checks import known_source
from crosstail.cli._imports import import_torch
from crosstail.cli._next import say_next
from crosstail.cli._parameters import Json
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import Columns, Data, DataSeed, GroupBy, Labels
from crosstail.training.existing import existing_run
from crosstail.workflows._output import unused_path

if TYPE_CHECKING:
    from crosstail.reports.run.reported import ReportedRun

ALL = "`--out` shows more of each pair, and `--json` lists all of them."


def audit(
    source: Data,
    /,
    *,
    labels: Labels = None,
    columns: Columns = {},  # noqa: B006 - only read
    group_by: GroupBy = None,
    data_seed: DataSeed = 0,
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
    source = known_source(source)
    run = None if run is None else existing_run(run)
    import_torch()

    from crosstail import data
    from crosstail.reports.audit import audit as examine
    from crosstail.reports.audit import recommend
    from crosstail.reports.audit.document import page, summary
    from crosstail.reports.audit.inputs import ImageInputs
    from crosstail.reports.document import html, terminal
    from crosstail.reports.run.command import options
    from crosstail.reports.run.suspects import suspect_table, suspects, suspects_by_pair
    from crosstail.training import RunSpec

    many, few = data.shot_thresholds(source)
    with progress_bar(Console(stderr=True)) as progress:
        dataset = data.load(
            source, labels=labels, seed=data_seed, columns=columns, group_by=group_by, progress=progress
        )
        found = examine(dataset.plain(), many=many, few=few, progress=progress)
    trained = None if run is None else _run_on(run, source)
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
        how: dict[str, Any] = {"labels": labels, "columns": columns, "group_by": group_by, "data_seed": data_seed}
        spec = RunSpec(dataset=source, **how, skip_broken=broken)
        say_next(console, "race", source, *options(spec), "--out", unused_path("race"))


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

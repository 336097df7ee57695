"""crosstail audit: look at a data set before any training."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from rich.console import Console

from crosstail.cli._checks import known_source
from crosstail.cli._next import say_next
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import SPLIT, Data, ReadOptions, options
from crosstail.cli._verb import Json, described, import_torch
from crosstail.training.existing import existing_run
from crosstail.workflows._output import unused_path

ALL = "`--out` shows more of each pair, and `--json` lists all of them."


@described
def audit(
    source: Data,
    /,
    *,
    options: Annotated[ReadOptions, options(without=SPLIT)] = ReadOptions(),  # noqa: B008 - immutable
    run: Path | None = None,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Example: `crosstail audit photos/ --out audit.html`"""
    spec = options.spec(known_source(source))
    run = None if run is None else existing_run(run)
    import_torch()

    from crosstail.data.splits.gaps import leaking_column
    from crosstail.reports.audit import recommend
    from crosstail.reports.audit.document import summary
    from crosstail.reports.audit.inputs import ImageInputs
    from crosstail.reports.document import terminal
    from crosstail.reports.run.command import options as options_of
    from crosstail.reports.run.suspects import suspects
    from crosstail.workflows.audit import audit

    with progress_bar(Console(stderr=True)) as progress:
        audited = audit(spec, run=run, out=out, progress=progress)
    found, trained = audited.found, audited.run
    if as_json:
        print(json.dumps(audited.to_json()))
        return
    console = Console(highlight=False)
    terminal.show([*([] if trained is None else suspects(trained, ALL)), *summary(found)], console)
    where = f"The page is in {out}." if out else "Add --out audit.html for a page with charts and pictures."
    console.print(where, markup=False, soft_wrap=True)
    if recommend(found) is not None:
        broken = spec.skip_broken or (isinstance(found.inputs, ImageInputs) and bool(found.inputs.broken))
        names = spec.names or ("merge" if found.same_names else None)
        said = options_of(replace(spec, skip_broken=broken, names=names).with_group(leaking_column(audited.dataset)))
        say_next(console, "race", spec.dataset, *said, "--out", unused_path("race"))

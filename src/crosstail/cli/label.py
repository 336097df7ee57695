"""crosstail label: what to label next."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from crosstail.cli._checks import require_output
from crosstail.cli._next import say_all
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import SkipBroken
from crosstail.cli._verb import Json, described, import_torch
from crosstail.training.existing import existing_run

SHOWN = 10  # pairs


@described
def label(
    pool: Path,
    /,
    *,
    run: Path,
    out: Path,
    budget: int = 100,
    site: str | None = None,
    seed: int = 0,
    weights: Path | None = None,
    skip_broken: SkipBroken = False,
    trust: bool = False,
    as_json: Json = False,
) -> None:
    """Example: `crosstail label new_photos/ --run run --site lagos --budget 100 --out next.csv`"""
    run = existing_run(run)
    require_output(out, [pool], ".csv")
    import_torch()

    from crosstail.prediction.gains import MORE
    from crosstail.reports.document import terminal
    from crosstail.reports.document.model import Table
    from crosstail.reports.wording import percent
    from crosstail.workflows.label import label

    console = Console(stderr=True, markup=False, highlight=False)
    how: dict[str, Any] = {"weights": weights, "skip_broken": skip_broken, "trust": trust}
    with progress_bar(console) as progress:
        found = label(run, pool, budget=budget, site=site, out=out, seed=seed, **how, progress=progress)
    say_all(console, "note", found.notes)
    if as_json:
        answer = {"inputs": found.table.to_dict("records"), "pairs": [asdict(pair) for pair in found.pairs]}
        json.dump(answer, sys.stdout, indent=1, ensure_ascii=False)
    elif found.pairs:
        rows = [
            [pair.domain, pair.label, f"{pair.labels:,}", percent(pair.recall), f"{100 * pair.gain:+.1f}"]
            for pair in found.pairs[:SHOWN]
        ]
        header = ["site", "class", "labels", "recall, %", f"{MORE} more labels, points"]
        title = f"Where more labels would help most, about ({len(found.pairs)} pairs)"
        terminal.show([Table(header=header, rows=rows, title=title)], console)
    console.print(f"{len(found.table):,} inputs in {out}, drawn at random: choosing them was not reliably better")
    if found.page is not None:
        console.print(f"Label the photos in {found.page}", soft_wrap=True)

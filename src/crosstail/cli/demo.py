"""crosstail demo: a first result without any data, in a few minutes."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console

from crosstail.cli._progress import progress_bar
from crosstail.cli._verb import described, import_torch


@described
def demo(*, out: Path = Path("demo"), seeds: Annotated[int, Parameter(validator=Number(gte=1))] = 3) -> None:
    """Example: `crosstail demo --out demo`, then open demo/report.html in a browser."""
    import_torch()

    from crosstail.reports.compare.demo_page import verdict
    from crosstail.reports.compare.paper_table import paper_table
    from crosstail.reports.document import terminal
    from crosstail.workflows.demo import demo

    began = time.monotonic()
    console = Console(highlight=False, markup=False)
    console.print("Digits from three domains with long tails in opposite directions; frozen ImageNet features.")
    with progress_bar(console) as progress:
        found = demo(out, seeds=seeds, progress=progress)
    (data,), results = found.results.files, found.results
    if table := paper_table(results.summary, results.tests, data, data):
        terminal.show([replace(table, title="", note=table.title)], console)
    console.print(verdict(results.summary))
    console.print(f"Took {time.monotonic() - began:.0f} s. Open {found.page} in a browser.")

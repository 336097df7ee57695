"""crosstail demo: a first result without any data, in a few minutes."""

import time
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

    from crosstail.reports.compare.demo_page import metrics_table, verdict
    from crosstail.reports.document import terminal
    from crosstail.workflows.demo import METHODS, demo

    began = time.monotonic()
    console = Console(highlight=False, markup=False)
    console.print("Digits from three domains with long tails in opposite directions; frozen ImageNet features.")
    with progress_bar(console) as progress:
        found = demo(out, seeds=seeds, progress=progress)
    terminal.show([metrics_table(found.summary, METHODS)], console)
    console.print(verdict(found.summary))
    console.print(f"Took {time.monotonic() - began:.0f} s. Open {found.page} in a browser.")

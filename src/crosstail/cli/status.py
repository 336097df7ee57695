"""crosstail status: how far a sweep is."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from crosstail.cli._sweeps import status_table

EVERY = 2.0  # seconds


def status(
    folder: Annotated[Path, typer.Argument(help="The folder of a sweep.")],
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every two seconds, until all is done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what is done, running and failed, and how long the rest will take.

    Example: [b]crosstail status sweep --watch[/]
    """
    from crosstail.sweep.status import status
    from crosstail.sweep.store import Store

    store = Store.existing(folder)
    if as_json:
        print(json.dumps([asdict(row) for row in status(store)]))
        return
    console = Console()
    if not watch:
        console.print(status_table(status(store)))
        return
    with Live(console=console) as live:
        while True:
            rows = status(store)
            live.update(status_table(rows), refresh=True)
            if all(row.done + row.failed + row.pruned == row.planned for row in rows):
                return
            time.sleep(EVERY)

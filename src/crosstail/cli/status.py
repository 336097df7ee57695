"""crosstail status: the progress of a sweep."""

import json
import time
from dataclasses import asdict

from rich.console import Console
from rich.live import Live

from crosstail.cli._verb import Json, Sweep

INTERVAL = 2.0  # seconds


def status(folder: Sweep, /, *, watch: bool = False, as_json: Json = False) -> None:
    """Show which runs are done, running or failed, and the estimated time left.

    Example: `crosstail status sweep --watch`

    Args:
        folder: Folder of a sweep.
        watch: Refresh every two seconds until the sweep is complete.
    """
    from crosstail.reports.compare.sweep_tables import status_table
    from crosstail.reports.document import terminal
    from crosstail.sweeps.outlook import Outlook
    from crosstail.sweeps.status import status
    from crosstail.sweeps.store import Store

    store = Store.existing(folder)
    if as_json:
        print(json.dumps([asdict(row) for row in status(store)]))
        return
    if not watch:
        terminal.show([status_table(status(store), Outlook.of(folder))])
        return
    with Live(console=Console()) as live:
        while True:
            rows = status(store)
            live.update(terminal.render([status_table(rows, Outlook.of(folder))]), refresh=True)
            if all(row.done + row.failed == row.planned for row in rows):
                return
            time.sleep(INTERVAL)

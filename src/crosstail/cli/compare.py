"""crosstail compare: is one run better than another, and on which pairs?"""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._next import say_next
from crosstail.cli._verb import Json, described, import_torch


@described
def compare(
    first: Annotated[Path, Parameter(name="A")],
    second: Annotated[Path, Parameter(name="B")],
    /,
    *,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Example: `crosstail compare run_boda run_erm --out compare.html`"""
    for folder in (first, second):
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder}: there is no such folder")
    import_torch()

    from crosstail.reports.compare.two_runs_page import summary
    from crosstail.reports.document import terminal
    from crosstail.workflows.compare import compare

    found = compare(first, second, out=out)
    if as_json:
        print(json.dumps(found.to_json()))
        return
    console = Console(highlight=False, markup=False)
    terminal.show(summary(found), console)
    if out:
        console.print(f"The page is in {out}.", soft_wrap=True)
    else:
        say_next(console, "compare", first, second, "--out", "compare.html")

"""crosstail reproduce: a table or a figure of the paper by its name."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from crosstail import discovery
from crosstail.cli._checks import check_spec
from crosstail.cli._next import pasted
from crosstail.cli._progress import progress_bar, sweep_progress
from crosstail.cli._verb import Json, described, import_torch

if TYPE_CHECKING:
    from crosstail.sweeps.plan import Plan
    from crosstail.sweeps.worker import Job, Outcome
    from crosstail.workflows.reproduce import Forecast


@described
def reproduce(
    name: Annotated[str | None, Parameter(name="NAME")] = None,
    /,
    *,
    out: Path | None = None,
    data: Path | None = None,
    list_: Annotated[bool, Parameter(name="--list")] = False,
    dry_run: bool = False,
    quick: bool = False,
    algorithm: tuple[str, ...] = (),
    backbone: str | None = None,
    resolution: int | None = None,
    launcher: str = "local",
    workers: int | None = None,
    as_json: Json = False,
) -> None:
    """Example: `crosstail reproduce table2 --data benchmarks/ --out table2`

    Args:
        out: Folder of the sweeps and the report, which the same command resumes; default: NAME.
        list_: List the tables and figures.
        dry_run: Only say what is needed: data, device hours by a measured step, disk. No data are needed for it."""
    from crosstail.workflows import reproduce as work

    if list_:
        _list(work.tables(), as_json)
        return
    if name is None:
        raise ValueError("NAME is missing, such as table2: crosstail reproduce --list shows all")
    how: dict[str, Any] = {"quick": quick, "algorithm": algorithm, "backbone": backbone, "resolution": resolution}
    for job in work.jobs(name, **how):
        check_spec(job.spec, job.how["algorithm"])
    launcher = discovery.known("crosstail.sweeps.launchers", launcher, "launcher")
    how["data"] = data
    import_torch()
    console = Console(stderr=True)
    if dry_run:
        with progress_bar(console) as progress:
            found = work.forecast(name, **how, progress=progress)
        _show(name, found, as_json)
        return

    def watch(plan: "Plan") -> "AbstractContextManager[Callable[[Job, Outcome], None]]":
        console.print(f"{plan.shared.dataset}: {len(plan.methods)} methods", highlight=False)
        return sweep_progress(console, plan)

    done = work.reproduce(name, out=out or Path(name), **how, launcher=launcher, workers=workers, watch=watch)
    print(json.dumps({"page": str(done.page), "failed": done.failed}) if as_json else f"Next: open {done.page}")
    if done.failed:
        folder = (out or Path(name)) / done.failed[0]
        print(f"Runs failed in {', '.join(done.failed)}: {pasted('status', folder)} says why; the same command goes on")
        raise SystemExit(1)


def _list(tables: dict[str, dict[str, Any]], as_json: bool) -> None:
    from crosstail.reports.document import terminal
    from crosstail.reports.document.model import Table

    if as_json:
        print(json.dumps(tables))
        return
    rows = [
        [name, f"{table['title']} ({', '.join(table.get('data', [table.get('same')]))})"]
        for name, table in tables.items()
    ]
    terminal.show([Table(header=["name", "what (data)"], rows=rows, words_last=True)])


def _show(name: str, found: "Forecast", as_json: bool) -> None:
    from crosstail.reports.document import terminal
    from crosstail.reports.document.model import Item, Items, Table, Text
    from crosstail.reports.wording import file_size

    if as_json:
        print(json.dumps(found.to_json()))
        return
    rows = []
    for need in found.needs:
        statistics = f"{need.full_passes / 1e6:,.1f} M" if need.full_passes else "–"
        cells = [f"{need.runs:,}", statistics, f"{need.seconds / 3600:,.1f} h", file_size(need.size)]
        rows.append([need.data, need.state, file_size(need.download) if need.download else "?", *cells])
    header = ["data", "state", "download", "runs", "full passes", "time on one device", "disk"]
    wrong = dict.fromkeys(problem for need in found.needs for problem in need.problems)
    seconds, disk = sum(need.seconds for need in found.needs), sum(need.size for need in found.needs)
    speed = "; ".join(f"{network}: {1 / each:,.1f} images/s" for network, each in found.per_image.items())
    blocks: list[Any] = [Table(title=name, header=header, rows=rows)]
    blocks += [Items([Item(problem) for problem in wrong])] if wrong else []
    device = {"cuda": "GPU", "mps": "GPU"}.get(found.device, "CPU")
    blocks.append(Text(f"In all {seconds / 3600:,.0f} {device} hours and {file_size(disk)}; measured here: {speed}."))
    blocks.append(Text("Full passes are forward passes over training images in the evaluation view, for BoDA's means."))
    terminal.show(blocks)

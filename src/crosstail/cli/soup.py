"""crosstail soup: several runs as one model."""

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._next import say_next
from crosstail.cli._parameters import Json
from crosstail.cli._progress import progress_bar
from crosstail.workflows._output import refuse_foreign


def soup(
    runs: Annotated[list[Path], Parameter(name="RUNS")],
    /,
    *,
    out: Path,
    algorithm: tuple[str, ...] = (),
    uniform: bool = False,
    as_json: Json = False,
) -> None:
    """Combine several finished runs on the same data into one model, such as all runs of a sweep.

    Runs are tried in the order of their validation metric, best first, and kept if they make the model no worse on
    validation. Weights are averaged if all runs have the same network and started from the same weights, otherwise
    probabilities.

    Example: `crosstail soup sweep --algorithm boda --out soup`

    Args:
        runs: Folders of runs, or of a sweep.
        out: Folder of the new run, for predict, evaluate, export and report.
        algorithm: Use only a sweep's runs of these methods, such as boda or boda:retrain.
        uniform: Keep all runs.
    """
    from crosstail.reports.document import terminal
    from crosstail.reports.run.page import write_page
    from crosstail.reports.run.reported import reported
    from crosstail.reports.run.summary import result_summary
    from crosstail.training.soup import make_soup

    refuse_foreign(out, own=False)
    with progress_bar(Console(stderr=True)) as progress:
        run = make_soup(_runs(runs, algorithm), out, uniform=uniform, progress=progress)
    write_page(reported(run))
    if as_json:
        print(msgspec.json.encode(run.result).decode())
        return
    console, made = Console(markup=False, highlight=False), run.result.soup
    assert made is not None
    terminal.show([result_summary(run.result)], console)
    kind = "mean probabilities" if made.ensemble else "mean weights"
    console.print(f"{kind} of {len(made.runs)} of {made.offered} runs: {', '.join(Path(r).name for r in made.runs)}")
    console.print(f"The page is in {out / 'report.html'}.", soft_wrap=True)
    say_next(console, "evaluate", out, run.result.spec.dataset, "--split", "test")


def _runs(given: list[Path], methods: tuple[str, ...]) -> list[Path]:
    """The folders of runs, where one may be that of a sweep or race."""
    from crosstail.sweeps.store import Store
    from crosstail.training.folder import RunFolder
    from crosstail.training.resolve import canonical_method

    found: list[Path] = []
    for path in given:
        if not (path / "plans").is_dir():
            found.append(path)
            continue
        own = [path / "runs" / key for key in Store.existing(path).results()]
        wanted = {canonical_method(method) for method in methods}
        found += [run for run in own if not wanted or RunFolder(run).spec().method in wanted]
    return found

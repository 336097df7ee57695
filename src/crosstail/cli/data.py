"""crosstail data: what the benchmarks are, how to get them, and whether a folder holds one."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console

from crosstail import discovery
from crosstail.cli._progress import progress_bar

PACKAGE = "crosstail.data.benchmarks"


def data(
    name: Annotated[str | None, typer.Argument(help="A benchmark; without one they are listed.")] = None,
    root: Annotated[
        Path | None, typer.Option(help="Its folder; by default the one of that name in [b]$CROSSTAIL_DATA[/].")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare the folder with the data sheet.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="With --check: names and counts only.")] = False,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch and unpack what is missing; goes on where it stopped.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a benchmark's data sheet, fetch the data, or check a folder against the sheet.

    Example: [b]crosstail data pacs --root pacs --download --check[/]
    """
    from crosstail.cli import _sheets

    if name is None:
        if root or check or quick or download:
            raise ValueError(f"which benchmark? There are {', '.join(discovery.names(PACKAGE))}.")
        _sheets.show_all(PACKAGE, as_json)
        return
    module = discovery.find(PACKAGE, name, "benchmark")
    if quick and not check:
        raise ValueError("--quick goes with --check")
    if not check and not download:
        if as_json:
            print(json.dumps(asdict(module.SHEET)))
        else:
            _sheets.show(module.SHEET, root)
        return
    if not module.SHEET.archives:
        raise ValueError(f"{name} is {module.SHEET.source}: there is nothing to fetch or to check")
    from crosstail.data.benchmarks._image_folders import ENVIRONMENT, find_root

    if root is None and not os.environ.get(ENVIRONMENT):
        raise ValueError(f"which folder? Say it with --root, or set {ENVIRONMENT} to the folder that has {name} in it")
    folder = find_root(module.SHEET, root)
    if download:
        _download(module, folder)
    if check:
        _check(module, folder, quick, as_json)
    elif not as_json:
        print(f"Next: crosstail data {name} --root {folder} --check")


def _download(module: ModuleType, folder: Path) -> None:
    from crosstail.data.benchmarks._download import DownloadError
    from crosstail.data.benchmarks._fetch_archives import fetch

    messages = Console(stderr=True)
    try:
        with progress_bar(messages) as progress:
            fetch(
                module.SHEET,
                folder,
                progress=lambda file, done, total: progress(file, done, total or done),
                say=lambda text: messages.print(text, markup=False, highlight=False, soft_wrap=True),
            )
    except DownloadError as error:
        messages.print("error:", style="bold red", end=" ")
        messages.print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    if prepare := getattr(module, "prepare", None):
        messages.print(f"{prepare(folder):,} images are in their folders", markup=False, highlight=False)


def _check(module: ModuleType, folder: Path, quick: bool, as_json: bool) -> None:
    from crosstail.cli import _sheets
    from crosstail.data.benchmarks._check_folder import check_folder
    from crosstail.data.benchmarks._image_folders import existing_root

    existing_root(module.SHEET, folder)
    with progress_bar(Console(stderr=True)) as progress:
        if own := getattr(module, "check", None):  # of a set that is not folders of images
            report = own(folder)
        else:
            report = check_folder(module.SHEET, folder, decode=not quick, duplicates=not quick, progress=progress)
    if as_json:
        print(json.dumps(report.to_json()))
    else:
        _sheets.show_report(report, quick)
    if not report.ok:
        raise typer.Exit(1)

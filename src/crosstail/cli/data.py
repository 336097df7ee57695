"""crosstail data: describe the benchmarks, download them, and check a folder against the data sheet."""

import json
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console

from crosstail import discovery
from crosstail.cli._next import pasted
from crosstail.cli._progress import progress_bar
from crosstail.cli._verb import Json
from crosstail.data.sources.benchmark import spelled, with_folder

if TYPE_CHECKING:
    from crosstail.data.benchmarks._sheet import DataSheet

PACKAGE = "crosstail.data.benchmarks"


def data(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    root: Path | None = None,
    check: bool = False,
    quick: bool = False,
    download: bool = False,
    as_json: Json = False,
) -> None:
    """Show a benchmark's data sheet, download the data, or check a folder against the sheet.

    Example: `crosstail data pacs --root pacs --download --check`

    Args:
        name: A benchmark, NAME:FOLDER, or a file such as ./mine.py.
        root: Folder of the data; default: the folder of that name in `$CROSSTAIL_DATA`.
        check: Compare the folder with the data sheet.
        quick: With --check: compare names and counts only, without reading the images.
        download: Download and unpack what is missing; an interrupted download resumes.
    """
    from crosstail.data.benchmarks._load import existing_sheet
    from crosstail.reports.data_sheet import sheet_document
    from crosstail.reports.document import terminal
    from crosstail.reports.document.model import Heading

    name, named = with_folder(name)
    if named is not None and root is not None:
        raise ValueError(f"{name}:{named} names a folder already: remove --root")
    root = root if named is None else Path(named)
    sheet = existing_sheet(discovery.known(PACKAGE, name, "data set"))
    if quick and not check:
        raise ValueError("--quick needs --check")
    if not check and not download:
        if as_json:
            print(msgspec.json.encode(sheet).decode())
        else:
            document = sheet_document(sheet, root, spelled(name))
            terminal.show([Heading(document.title), *document.blocks])
        return
    if not sheet.archives:
        raise ValueError(f"{name} is {sheet.source}: there is nothing to download or check")
    from crosstail.data.benchmarks._image_folders import find_root

    folder, module = find_root(sheet, root), discovery.find(PACKAGE, name, "data set")
    if download:
        _download(module, sheet, folder)
    if check:
        _check(module, sheet, folder, quick, as_json)
    elif not as_json:
        print(f"Next: {pasted('data', name, '--root', folder, '--check')}")


def _download(module: ModuleType, sheet: "DataSheet", folder: Path) -> None:
    from crosstail.data.benchmarks._archives import fetch

    console = Console(stderr=True, markup=False, highlight=False)
    with progress_bar(console) as progress:
        fetch(sheet, folder, progress=progress, say=partial(console.print, soft_wrap=True))
    if prepare := getattr(module, "prepare", None):
        console.print(f"{prepare(folder):,} images sorted into folders")


def _check(module: ModuleType, sheet: "DataSheet", folder: Path, quick: bool, as_json: bool) -> None:
    from crosstail.data.benchmarks._check_folder import check_folder
    from crosstail.data.benchmarks._image_folders import existing_root
    from crosstail.reports.data_sheet import check_blocks
    from crosstail.reports.document import terminal

    existing_root(sheet, folder)
    with progress_bar(Console(stderr=True)) as progress:
        if own := getattr(module, "check", None):  # a benchmark that is not folders of images
            report = own(folder)
        else:
            report = check_folder(sheet, folder, decode=not quick, duplicates=not quick, progress=progress)
    if as_json:
        print(json.dumps(report.to_json()))
    else:
        terminal.show(check_blocks(report, quick))
    if not report.ok:
        raise SystemExit(1)

"""The images of a benchmark on disk: ROOT/<domain>/<class>/<image>, with lists and split files."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.data.benchmarks._sheet import DataSheet, FolderKind
from crosstail.data.images.decode import SUFFIXES
from crosstail.data.sources._manifest_table import read_split

ENVIRONMENT = "CROSSTAIL_DATA"
Place = tuple[int, int, str]  # domain, class, file name
Files = dict[Place, Path]


def find_root(sheet: DataSheet, root: Path | str | None = None) -> Path:
    """The folder of a benchmark: the given one, or the one named after it in $CROSSTAIL_DATA."""
    if root is not None:
        return Path(root).expanduser()
    parent = os.environ.get(ENVIRONMENT)
    if not parent:
        ways = f"write {sheet.name}:FOLDER, in `crosstail data` --root, or set {ENVIRONMENT} to the folder that has it"
        how = f"`crosstail data {sheet.name}` shows how to get the data"
        raise ValueError(f"{sheet.name}: no folder given; {ways}; {how}")
    return Path(parent).expanduser() / sheet.name


def existing_root(sheet: DataSheet, root: Path | str | None = None) -> Path:
    """`find_root`, if the folder exists."""
    found = find_root(sheet, root)
    if not found.exists():
        how = f"`crosstail data {sheet.name} --root {found}` shows how to get the data"
        raise FileNotFoundError(f"{found}: there is no such folder; {how}")
    return found


def locate(sheet: DataSheet, root: Path) -> Path:
    """The folder with most of the sheet's domains: the root, or one up to two levels below it (from an archive)."""
    level = [root]
    below = list(level)
    for _ in range(2):
        level = [path for folder in level for path in subfolders(folder) if sheet.index("domain", path.name) is None]
        below += level
    return max(below, key=lambda folder: len({i for i, _ in _known(folder, sheet, "domain")}))


def folders_of(sheet: DataSheet, base: Path) -> list[tuple[int, int, Path]]:
    """The class folders that the sheet knows, as (domain, class, path), domains outermost."""
    domains = _known(base, sheet, "domain")
    return [(d, c, folder) for d, domain in domains for c, folder in _known(domain, sheet, "class")]


def all_images(classes: Iterable[tuple[int, int, Path]]) -> Files:
    """The images in class folders, each folder's by name."""
    return {(d, c, name): folder / name for d, c, folder in classes for name in _images_in(folder)}


def image_files(sheet: DataSheet, root: Path, base: Path) -> Files:
    """The images of the set, in the order of the sheet and then by name."""
    files, named = all_images(folders_of(sheet, base)), listed(sheet, root, base)
    return files if named is None else {place: path for place, path in files.items() if place in named}


def _images_in(folder: Path) -> list[str]:
    suffixes = tuple(SUFFIXES)
    with os.scandir(folder) as entries:
        images = [entry for entry in entries if entry.name.lower().endswith(suffixes) and entry.name[0] != "."]
        return sorted(entry.name for entry in images if entry.is_file())


def listed(sheet: DataSheet, *folders: Path) -> set[Place] | None:
    """The images named in the sheet's lists in these folders, or None without lists; an incomplete set is refused."""
    found = {name: _first(folders, name) for name in sheet.lists}
    present = [path for path in found.values() if path]
    if not present:
        return None
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise ValueError(f"{folders[0]}: has {present[0].name} but not {missing[0]}; expected all lists or none")
    return {
        _place(sheet, line.rpartition(" ")[0], f"{path}, line {number}")
        for path in present
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.strip()
    }


def find_split_file(sheet: DataSheet, *folders: Path) -> Path | None:
    """The split file in these folders, named like the paper's or like the benchmark."""
    names = [name for name in (sheet.split_file, f"{sheet.name}.csv") if name]
    return next((found for name in names if (found := _first(folders, name))), None)


def read_split_file(sheet: DataSheet, path: Path) -> dict[Place, str]:
    """The split of each image in one of the paper's files (`env,label,path,split`)."""
    rows = read_split(path, ("path", "split")).itertuples(index=False)
    return {_place(sheet, file, f"{path}: line {line}"): split for line, (file, split) in enumerate(rows, 2)}


def place_name(sheet: DataSheet, place: Place) -> str:
    """The path of an image in the sheet's own names."""
    return f"{sheet.domains[place[0]]}/{sheet.classes[place[1]]}/{place[2]}"


def pairs_of(places: Iterable[tuple[int, int, Any]]) -> NDArray[np.int64]:
    """Domain and class of each image or class folder, (N, 2)."""
    return np.array([place[:2] for place in places], np.int64).reshape(-1, 2)


def _place(sheet: DataSheet, text: str, where: str) -> Place:
    parts = text.replace("\\", "/").split("/")
    if len(parts) < 3:
        raise ValueError(f"{where}: path is {text!r}, expected <domain>/<class>/<image>")
    domain, kind, name = parts[-3:]
    d, c = sheet.index("domain", domain), sheet.index("class", kind)
    if d is None or c is None:
        what, unknown = ("domain", domain) if d is None else ("class", kind)
        raise ValueError(f"{where}: {unknown!r} is not a {what} of {sheet.name}")
    return d, c, name


def _first(folders: Sequence[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _known(folder: Path, sheet: DataSheet, what: FolderKind) -> list[tuple[int, Path]]:
    found = [(sheet.index(what, path.name), path) for path in subfolders(folder)]
    return sorted((i, path) for i, path in found if i is not None)


def subfolders(folder: Path) -> list[Path]:
    """The folders in a folder that are not hidden, by name."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(Path(entry) for entry in entries if entry.is_dir() and not entry.name.startswith("."))

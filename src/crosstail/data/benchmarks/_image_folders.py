"""The images of a benchmark on disk: ROOT/<domain>/<class>/<image>, with lists and split files."""

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosstail.data.benchmarks._sheet import DataSheet, FolderKind
from crosstail.data.dataset import SPLITS
from crosstail.data.images.decode import SUFFIXES
from crosstail.data.splits.paper import paper_split

ENVIRONMENT = "CROSSTAIL_DATA"
_SUFFIXES = tuple(SUFFIXES)
Place = tuple[int, int, str]  # domain, class, file name
Files = dict[Place, Path]


def find_root(sheet: DataSheet, root: Path | str | None = None) -> Path:
    """The folder of a benchmark: the given one, or the one named after it in $CROSSTAIL_DATA."""
    if root is not None:
        return Path(root).expanduser()
    parent = os.environ.get(ENVIRONMENT)
    if not parent:
        raise ValueError(
            f"{sheet.name}: no folder given; write {sheet.name}:FOLDER, or set {ENVIRONMENT} to the folder that "
            f"has {sheet.name} in it; `crosstail data {sheet.name}` tells how to get the data"
        )
    return Path(parent).expanduser() / sheet.name


def existing_root(sheet: DataSheet, root: Path | str | None = None) -> Path:
    """`find_root`, if the folder exists."""
    found = find_root(sheet, root)
    if not found.exists():
        raise FileNotFoundError(
            f"{found}: there is no such folder; `crosstail data {sheet.name} --root {found}` tells how to get the data"
        )
    return found


def locate(sheet: DataSheet, root: Path, depth: int = 2) -> Path:
    """The folder with most of the sheet's domains: the root, or one that an archive created below it."""
    best, most = root, _domains_in(sheet, root)
    level = [root]
    for _ in range(depth):
        level = [path for folder in level for path in _folders(folder) if sheet.index("domain", path.name) is None]
        for folder in level:
            if (found := _domains_in(sheet, folder)) > most:
                best, most = folder, found
    return best


def folders_of(sheet: DataSheet, base: Path) -> Iterator[tuple[int, int, Path]]:
    """The class folders that the sheet knows, as (domain, class, path), domains outermost."""
    for d, domain in _known(base, sheet, "domain"):
        for c, folder in _known(domain, sheet, "class"):
            yield d, c, folder


def image_files(sheet: DataSheet, root: Path, base: Path) -> Files:
    """The images of the set, in the order of the sheet and then by name."""
    files = {(d, c, name): folder / name for d, c, folder in folders_of(sheet, base) for name in images_in(folder)}
    named = listed(sheet, root, base)
    return files if named is None else {place: path for place, path in files.items() if place in named}


def images_in(folder: Path) -> list[str]:
    """The names of the images in a class folder, sorted."""
    with os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if entry.name.lower().endswith(_SUFFIXES) and not entry.name.startswith(".") and entry.is_file()
        )


def listed(sheet: DataSheet, *folders: Path) -> set[Place] | None:
    """The images named in the sheet's lists in these folders, or None without lists; an incomplete set is refused."""
    found = {name: _first(folders, name) for name in sheet.lists}
    present = [path for path in found.values() if path]
    if not present:
        return None
    for name, path in found.items():
        if path is None:
            raise ValueError(f"{folders[0]}: has {present[0].name} but not {name}; expected all lists or none")
    places = set()
    for path in present:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.strip():
                places.add(_place(sheet, line.rpartition(" ")[0], f"{path}, line {number}"))
    return places


def find_split_file(sheet: DataSheet, *folders: Path, given: Path | str | None = None) -> Path | None:
    """The split file: the given one, or one in these folders named like the paper's or like the benchmark."""
    if given is not None:
        path = Path(given).expanduser()
        if not path.is_file():
            raise FileNotFoundError(f"{path}: there is no such split file")
        return path
    names = [name for name in (sheet.split_file, f"{sheet.name}.csv") if name]
    return next((found for name in names if (found := _first(folders, name))), None)


def read_split_file(sheet: DataSheet, path: Path) -> dict[Place, str]:
    """The split of each image in one of the paper's files (`env,label,path,split`)."""
    with path.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        missing = {"path", "split"} - set(reader.fieldnames or ())
        if missing:
            raise ValueError(f"{path}: has no column {min(missing)!r}, expected env, label, path and split")
        splits = {}
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            if row["split"] not in SPLITS:
                raise ValueError(f"{where}: split is {row['split']!r}, expected one of {', '.join(SPLITS)}")
            splits[_place(sheet, row["path"], where)] = row["split"]
    return splits


def place_name(sheet: DataSheet, place: Place) -> str:
    """The path of an image in the sheet's own names."""
    return f"{sheet.domains[place[0]]}/{sheet.classes[place[1]]}/{place[2]}"


def pairs_of(files: Iterable[Place]) -> NDArray[np.int64]:
    """Domain and class of each image, (N, 2)."""
    return np.array([place[:2] for place in files], np.int64).reshape(-1, 2)


def make_split(sheet: DataSheet, pairs: NDArray[np.int64], seed: int) -> NDArray[np.str_]:
    """Split images with these domains and classes (N, 2) as the sheet says."""
    return paper_split(
        pairs[:, 1],
        pairs[:, 0],
        num_domains=len(sheet.domains),
        num_classes=len(sheet.classes),
        validation=sheet.validation,
        seed=seed,
    )


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
    found = [(sheet.index(what, path.name), path) for path in _folders(folder)]
    return sorted((i, path) for i, path in found if i is not None)


def _domains_in(sheet: DataSheet, folder: Path) -> int:
    return len({i for i, _ in _known(folder, sheet, "domain")})


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(Path(entry) for entry in entries if entry.is_dir() and not entry.name.startswith("."))

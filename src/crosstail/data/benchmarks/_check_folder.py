"""Checking a folder against a data sheet: names, counts, broken images, duplicates."""

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from crosstail.data.benchmarks import _image_folders as folders
from crosstail.data.benchmarks._check_result import SHOWN, CheckProgress, CheckResult, plural
from crosstail.data.benchmarks._image_folders import Files, Place, place_name
from crosstail.data.benchmarks._sheet import DataSheet, FolderKind
from crosstail.data.dataset import pair_names
from crosstail.data.images import ImageFiles, check_images
from crosstail.data.images.same_content import equal_files


def check_folder(
    sheet: DataSheet,
    root: Path,
    *,
    decode: bool = True,
    duplicates: bool = True,
    seed: int = 0,
    progress: CheckProgress | None = None,
) -> CheckResult:
    """Compare the folders and images below a root with the data sheet.

    `decode` reads every image, `duplicates` compares images of equal size byte by byte; without both, only names and
    counts are checked. Duplicates are notes, not problems: the published sets have some.
    """
    result = CheckResult(sheet.name, str(root))
    if not root.is_dir():
        result.problem("missing", "there is no such folder", str(root))
        return result
    base = folders.locate(sheet, root)
    if base != root:
        result.note("folder", f"the images are in {base.relative_to(root)}")
    _check_names(sheet, base, result)
    classes = list(folders.folders_of(sheet, base))
    files = {(d, c, name): path / name for d, c, path in classes for name in folders.images_in(path)}
    files = _check_lists(sheet, (root, base), files, result)
    result.images = len(files)
    _check_counts(sheet, files, {(d, c) for d, c, _ in classes}, result)
    splits = _check_split_file(sheet, (root, base), files, result)
    if decode and files:
        _check_images(base, files, result, progress)
    if duplicates and files:
        if not splits:  # those of `load`
            made = folders.make_split(sheet, folders.pairs_of(files), seed)
            splits = dict(zip(files, map(str, made), strict=True))
        _note_duplicates(sheet, files, splits, result, progress)
    return result


def _check_names(sheet: DataSheet, base: Path, result: CheckResult) -> None:
    _check_folders(sheet, base, "domain", result)
    wrong: dict[str, list[str]] = defaultdict(list)  # one line per problem, with all its domains
    for path in sorted(base.iterdir()):
        if path.is_dir() and sheet.index("domain", path.name) is not None:
            part = CheckResult(sheet.name, "")
            _check_folders(sheet, path, "class", part)
            for finding in part.problems:
                wrong[finding.message].append(path.name)
            for finding in part.notes:
                result.note(finding.kind, f"{path.name}: {finding.message}")
    for message, domains in wrong.items():
        result.problem("folder", f"{', '.join(domains)}: {message}")


def _check_folders(sheet: DataSheet, folder: Path, what: FolderKind, result: CheckResult) -> None:
    """Compare the folders in a folder with the names of the domains, or of the classes."""
    names = sheet.names(what)
    found = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    known: dict[str, list[str]] = defaultdict(list)
    for name in found:
        i = sheet.index(what, name)
        if i is not None:
            known[names[i]].append(name)
    for name, spellings in known.items():
        if len(spellings) > 1:
            result.problem("folder", f"{' and '.join(map(repr, spellings))} both stand for the {what} {name!r}")
        elif spellings != [name]:
            result.note("folder", f"the folder {spellings[0]!r} is read as the {what} {name!r}")
    missing = [name for name in names if name not in known]
    unknown = [name for name in found if sheet.index(what, name) is None]
    for name in unknown:
        meant = probable(name, sheet, missing) if missing else None
        if meant:
            result.problem("folder", f"found {name!r}, expected {meant!r}: rename it")
            missing.remove(meant)
        elif what == "class" or any(path.is_dir() for path in (folder / name).iterdir()):
            result.note("folder", f"the folder {name!r} is not a {what} of {sheet.name} and is left out")
    if missing:
        result.problem("folder", f"no folder for the {plural(what, missing)} {_some(missing)}")


def probable(name: str, sheet: DataSheet, names: Sequence[str]) -> str | None:
    """The name that a misspelt folder probably means, if any.

    >>> from crosstail.data.benchmarks.pacs import SHEET
    >>> [probable(name, SHEET, SHEET.domains) for name in ("Art Painting", "Photos", "zebra")]
    ['art_painting', 'photo', None]
    """
    spellings = {_plain(text): name for name in names for text in (name, *sheet.aliases.get(name, ()))}
    near = difflib.get_close_matches(_plain(name), spellings, n=1, cutoff=0.7)
    return spellings[near[0]] if near else None


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def _check_lists(sheet: DataSheet, places: tuple[Path, ...], files: Files, result: CheckResult) -> Files:
    """Keep the images that the authors' lists name, if there are lists."""
    try:
        listed = folders.listed(sheet, *places)
    except ValueError as error:
        result.problem("list", str(error))
        return files
    if listed is None:
        return files
    absent = sorted(listed - files.keys())
    if absent:
        names = [place_name(sheet, place) for place in absent[:SHOWN]]
        result.problem("list", f"listed images that are not there: {len(absent):,} of {len(listed):,}", *names)
    if len(files) > len(listed) - len(absent):
        result.note("list", f"images that the lists do not name (duplicates), left out: {len(files.keys() - listed):,}")
    return {place: path for place, path in files.items() if place in listed}


def _check_counts(sheet: DataSheet, files: Files, there: set[tuple[int, int]], result: CheckResult) -> None:
    """Compare counts per pair, or per domain; a missing folder has been reported before."""
    found = np.zeros((len(sheet.domains), len(sheet.classes)), np.int64)
    np.add.at(found, tuple(folders.pairs_of(files).T), 1)
    per_domain = tuple(int(n) for n in found.sum(axis=1))
    if not sheet.domain_counts or (per_domain == sheet.domain_counts and not sheet.counts):
        return
    for release in sheet.releases:
        if per_domain == release.domain_counts:
            (result.note if release.usable else result.problem)("release", f"these are {release.what}")
            return
    if not sheet.counts:
        for d, (n, expected) in enumerate(zip(per_domain, sheet.domain_counts, strict=True)):
            if n != expected and any((d, c) in there for c in range(len(sheet.classes))):
                as_in = "".join(f", as in {r.what}" for r in sheet.releases if r.domain_counts[d] == n)
                result.problem("count", f"{sheet.domains[d]}: images {n:,}, expected {expected:,}{as_in}")
        return
    expected_table = np.array(sheet.counts)
    wrong = [(d, c) for d, c in np.argwhere(found != expected_table) if (d, c) in there]
    names = np.array(pair_names(sheet.domains, sheet.classes)).reshape(found.shape)
    for d, c in wrong[:SHOWN]:
        result.problem("count", f"{names[d, c]}: images {found[d, c]:,}, expected {expected_table[d, c]:,}")
    if len(wrong) > SHOWN:
        total, expected = int(found.sum()), int(expected_table.sum())
        more = f"{len(wrong) - SHOWN} other pairs differ as well"
        result.problem("count", f"{more}; images in all {total:,}, expected {expected:,}")


def _check_split_file(
    sheet: DataSheet, places: tuple[Path, ...], files: Files, result: CheckResult
) -> dict[Place, str]:
    path = folders.find_split_file(sheet, *places)
    if path is None:
        return {}
    try:
        splits = folders.read_split_file(sheet, path)
    except ValueError as error:
        result.problem("split", str(error))
        return {}
    absent = sorted(splits.keys() - files.keys())
    if absent:
        names = [place_name(sheet, place) for place in absent[:SHOWN]]
        result.problem("split", f"images that {path.name} names and that are not there: {len(absent):,}", *names)
    more = files.keys() - splits.keys()
    if more:
        result.note("split", f"images that {path.name} does not name, left out: {len(more):,}")
    if not absent and not more:
        result.note("split", f"{path.name} names the split of every image")
    return splits if not more else {}


def _check_images(base: Path, files: Files, result: CheckResult, progress: CheckProgress | None) -> None:
    paths = [path.relative_to(base).as_posix() for path in files.values()]
    broken = check_images(ImageFiles(base, paths), partial(progress, "reading images") if progress else None)
    if broken:
        shown = [f"{path}: {reason}" for path, reason in broken[:SHOWN]]
        result.problem("broken", f"{len(broken):,} {plural('image', broken)} cannot be read", *shown)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:SHOWN]))
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} others"


def _note_duplicates(
    sheet: DataSheet, files: Files, splits: dict[Place, str], result: CheckResult, progress: CheckProgress | None
) -> None:
    """Note images that occur in two splits, two domains or two classes, or twice in one pair."""
    groups = equal_files(files, progress)
    differs: dict[str, Callable[[Place], object]] = {
        "in two splits": splits.__getitem__,
        "in two domains": lambda place: place[0],
        "in two classes": lambda place: place[1],
    }
    hits = {what: [g for g in groups if len({key(place) for place in g}) > 1] for what, key in differs.items()}
    hits["twice in a pair"] = [g for g in groups if len({place[:2] for place in g}) < len(g)]
    for what, found in hits.items():
        if found:
            shown = [" = ".join(place_name(sheet, place) for place in group[:3]) for group in found[:SHOWN]]
            result.note("duplicate", f"{len(found):,} {plural('image', found)} {what}, byte for byte", *shown)

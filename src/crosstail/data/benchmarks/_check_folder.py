"""Checking a folder against a data sheet: names, counts, broken images, duplicates."""

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosstail.data.benchmarks import _image_folders as folders
from crosstail.data.benchmarks._check_result import SHOWN, CheckResult
from crosstail.data.benchmarks._image_folders import Files, Place, place_name
from crosstail.data.benchmarks._sheet import DataSheet, FolderKind
from crosstail.data.dataset import pair_names
from crosstail.data.examination import examine, find_broken
from crosstail.data.images.files import ImageFiles
from crosstail.data.splits.paper import paper_split
from crosstail.progress import Progress


def check_folder(
    sheet: DataSheet, root: Path, *, decode: bool = True, duplicates: bool = True, progress: Progress | None = None
) -> CheckResult:
    """Compare the folders and images below a root with the data sheet.

    `decode` reads every image, `duplicates` compares their content. Duplicates are notes: the published sets have some.
    """
    result = CheckResult(sheet.name, str(root))
    if not root.is_dir():
        result.problem("missing", "there is no such folder", str(root))
        return result
    base = folders.locate(sheet, root)
    if base != root:
        result.note("folder", f"the images are in {base.relative_to(root)}")
    _check_names(sheet, base, result)
    classes = folders.folders_of(sheet, base)
    files = _check_lists(sheet, (root, base), folders.all_images(classes), result)
    result.images = len(files)
    there = np.zeros((len(sheet.domains), len(sheet.classes)), np.bool_)
    there[*folders.pairs_of(classes).T] = True
    _check_counts(sheet, folders.pairs_of(files), there, result)
    splits = _check_split_file(sheet, (root, base), files, result)
    images = ImageFiles(base, [path.relative_to(base).as_posix() for path in files.values()])
    if decode and files and (broken := find_broken(images, progress)):
        shown = [f"{path}: {reason}" for path, reason in broken[:SHOWN]]
        result.problem("broken", f"{len(broken):,} {_plural('image', broken)} cannot be read", *shown)
    if duplicates and files:
        if not splits:  # the split that `load` makes with seed 0
            domain, y = folders.pairs_of(files).T
            assert sheet.validation is not None, "images in folders have no split of their own"
            splits = dict(zip(files, paper_split(y, domain, validation=sheet.validation).tolist(), strict=True))
        # Images that occur in two splits, two domains or two classes, or twice in one pair.
        places = list(files)
        groups = [[places[row] for row in group] for group in examine(images, progress=progress).same()]
        keys: dict[str, Callable[[Place], object]] = {
            "in two splits": splits.__getitem__,
            "in two domains": itemgetter(0),
            "in two classes": itemgetter(1),
        }
        hits = {what: [group for group in groups if len(set(map(key, group))) > 1] for what, key in keys.items()}
        hits["twice in a pair"] = [group for group in groups if len({place[:2] for place in group}) < len(group)]
        for what, found in hits.items():
            if found:
                shown = [" = ".join(place_name(sheet, place) for place in group[:3]) for group in found[:SHOWN]]
                result.note("duplicate", f"{len(found):,} {_plural('image', found)} {what}, byte for byte", *shown)
    return result


def _check_names(sheet: DataSheet, base: Path, result: CheckResult) -> None:
    for is_problem, message in _compare_folders(sheet, base, "domain"):
        (result.problem if is_problem else result.note)("folder", message)
    found: dict[tuple[bool, str], list[str]] = defaultdict(list)  # one line per finding, with all its domains
    for path in folders.subfolders(base):
        if sheet.index("domain", path.name) is not None:
            for finding in _compare_folders(sheet, path, "class"):
                found[finding].append(path.name)
    for (is_problem, message), domains in found.items():
        (result.problem if is_problem else result.note)("folder", f"{', '.join(domains)}: {message}")


def _compare_folders(sheet: DataSheet, folder: Path, what: FolderKind) -> Iterator[tuple[bool, str]]:
    """Compare a folder's folders with the names of the domains, or of the classes: (is it a problem, message)."""
    names = sheet.names(what)
    known: dict[str, list[str]] = defaultdict(list)
    unknown: list[str] = []
    for path in folders.subfolders(folder):
        i = sheet.index(what, path.name)
        (unknown if i is None else known[names[i]]).append(path.name)
    for name, spellings in known.items():
        if len(spellings) > 1:
            yield True, f"{' and '.join(map(repr, spellings))} both stand for the {what} {name!r}"
        elif spellings != [name]:
            yield False, f"the folder {spellings[0]!r} is read as the {what} {name!r}"
    missing = [name for name in names if name not in known]
    for name in unknown:
        if meant := probable(name, sheet, missing):
            yield True, f"found {name!r}, expected {meant!r}: rename it"
            missing.remove(meant)
        elif what == "class" or folders.subfolders(folder / name):
            yield False, f"the folder {name!r} is not a {what} of {sheet.name} and is left out"
    if missing:
        shown = ", ".join(map(repr, missing[:SHOWN]))
        more = f" and {len(missing) - SHOWN} others" if len(missing) > SHOWN else ""
        yield True, f"no folder for the {_plural(what, missing)} {shown}{more}"


def probable(name: str, sheet: DataSheet, names: Sequence[str]) -> str | None:
    """The name that a misspelt folder probably means, such as "photo" for "Photos", if any."""
    spellings = {_plain(text): name for name in names for text in (name, *sheet.aliases.get(name, ()))}
    near = difflib.get_close_matches(_plain(name), spellings, n=1, cutoff=0.7)
    return spellings[near[0]] if near else None


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def _plural(word: str, things: Sequence[object]) -> str:
    return word if len(things) == 1 else {"class": "classes"}.get(word, f"{word}s")


def _check_lists(sheet: DataSheet, places: tuple[Path, ...], files: Files, result: CheckResult) -> Files:
    try:
        listed = folders.listed(sheet, *places)
    except ValueError as error:
        result.problem("list", str(error))
        return files
    if listed is None:
        return files
    if absent := listed - files.keys():
        message = f"listed images that are not there: {len(absent):,} of {len(listed):,}"
        result.problem("list", message, *_first(sheet, absent))
    if extra := files.keys() - listed:
        result.note("list", f"images that the lists do not name (duplicates), left out: {len(extra):,}")
    return {place: path for place, path in files.items() if place in listed}


def _first(sheet: DataSheet, places: Collection[Place]) -> list[str]:
    return [place_name(sheet, place) for place in sorted(places)[:SHOWN]]


def _check_counts(sheet: DataSheet, pairs: NDArray[np.int64], there: NDArray[np.bool_], result: CheckResult) -> None:
    if not sheet.domain_counts:
        return
    found = np.zeros(there.shape, np.int64)
    np.add.at(found, tuple(pairs.T), 1)
    per_domain = tuple(found.sum(axis=1).tolist())
    release = next((release for release in sheet.releases if release.domain_counts == per_domain), None)
    if release:
        (result.note if release.usable else result.problem)("release", f"these are {release.what}")
        return
    if sheet.counts:
        names, counts = pair_names(sheet.domains, sheet.classes), found.ravel()
        expected, exists = np.ravel(sheet.counts), there.ravel()
    else:
        names, counts = list(sheet.domains), found.sum(axis=1)
        expected, exists = np.array(sheet.domain_counts), np.logical_or.reduce(there, axis=1)
    wrong = np.flatnonzero((counts != expected) & exists)
    for i in wrong[:SHOWN]:
        same = [] if sheet.counts else [r.what for r in sheet.releases if r.domain_counts[i] == counts[i]]
        as_in = "".join(f", as in {what}" for what in same)
        result.problem("count", f"{names[i]}: images {counts[i]:,}, expected {expected[i]:,}{as_in}")
    if len(wrong) > SHOWN:
        more = f"{len(wrong) - SHOWN} other pairs differ as well"
        result.problem("count", f"{more}; images in all {counts.sum():,}, expected {expected.sum():,}")


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
    absent, extra = splits.keys() - files.keys(), files.keys() - splits.keys()
    if absent:
        message = f"images that {path.name} names and that are not there: {len(absent):,}"
        result.problem("split", message, *_first(sheet, absent))
    if extra:
        result.note("split", f"images that {path.name} does not name, left out: {len(extra):,}")
    if not absent and not extra:
        result.note("split", f"{path.name} names the split of every image")
    return {} if extra else splits

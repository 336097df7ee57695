"""Does a folder hold what the data sheet says? Names, counts, broken images, duplicates."""

import difflib
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from crosstail.data.benchmarks import _layout
from crosstail.data.benchmarks._duplicates import note_duplicates
from crosstail.data.benchmarks._layout import Files, place_name
from crosstail.data.benchmarks._report import SHOWN, Progress, Report, plural
from crosstail.data.benchmarks._sheet import DataSheet, Kind
from crosstail.data.dataset import pair_names
from crosstail.data.images.files import ImageFiles, check_images


def check_root(
    sheet: DataSheet,
    root: Path,
    *,
    decode: bool = True,
    duplicates: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Compare the folders and images below a root with the data sheet.

    `decode` reads every image, `duplicates` compares the bytes of those of the same size; without both only
    names and counts are looked at. Duplicates are notes, not problems: the published sets have some.
    """
    report = Report(sheet.name, str(root))
    if not root.is_dir():
        report.problem("missing", "there is no such folder", str(root))
        return report
    base = _layout.locate(sheet, root)
    if base != root:
        report.note("folder", f"the images are in {base.relative_to(root)}")
    _check_names(sheet, base, report)
    folders = list(_layout.folders_of(sheet, base))
    files = {(d, c, name): path / name for d, c, path in folders for name in _layout.images_in(path)}
    files = _check_lists(sheet, (root, base), files, report)
    report.images = len(files)
    _check_counts(sheet, files, {(d, c) for d, c, _ in folders}, report)
    splits = _check_split_file(sheet, (root, base), files, report)
    if decode and files:
        _check_images(base, files, report, progress)
    if duplicates and files:
        if not splits:  # those that `load` would make
            made = _layout.make_split(sheet, _layout.pairs_of(files), seed)
            splits = dict(zip(files, map(str, made), strict=True))
        note_duplicates(sheet, files, splits, report, progress)
    return report


def _check_names(sheet: DataSheet, base: Path, report: Report) -> None:
    _check_folders(sheet, base, "domain", report)
    wrong: dict[str, list[str]] = defaultdict(list)  # one line per problem, whatever the number of domains
    for path in sorted(base.iterdir()):
        if path.is_dir() and sheet.index("domain", path.name) is not None:
            part = Report(sheet.name, "")
            _check_folders(sheet, path, "class", part)
            for finding in part.problems:
                wrong[finding.message].append(path.name)
            for finding in part.notes:
                report.note(finding.kind, f"{path.name}: {finding.message}")
    for message, domains in wrong.items():
        report.problem("folder", f"{', '.join(domains)}: {message}")


def _check_folders(sheet: DataSheet, folder: Path, what: Kind, report: Report) -> None:
    """The folders in a folder against the names of the domains, or of the classes."""
    names = sheet.names(what)
    found = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    known: dict[str, list[str]] = defaultdict(list)
    for name in found:
        i = sheet.index(what, name)
        if i is not None:
            known[names[i]].append(name)
    for name, folders in known.items():
        if len(folders) > 1:
            report.problem("folder", f"{' and '.join(map(repr, folders))} both stand for the {what} {name!r}")
        elif folders != [name]:
            report.note("folder", f"the folder {folders[0]!r} is read as the {what} {name!r}")
    missing = [name for name in names if name not in known]
    unknown = [name for name in found if sheet.index(what, name) is None]
    for name in unknown:
        meant = probable(name, sheet, missing) if missing else None
        if meant:
            report.problem("folder", f"found {name!r}, expected {meant!r}: rename it")
            missing.remove(meant)
        elif what == "class" or any(path.is_dir() for path in (folder / name).iterdir()):
            report.note("folder", f"the folder {name!r} is no {what} of {sheet.name} and is left out")
    if missing:
        report.problem("folder", f"no folder for the {plural(what, missing)} {_some(missing)}")


def probable(name: str, sheet: DataSheet, names: Sequence[str]) -> str | None:
    """Which of these names a wrong folder name probably means, if any.

    >>> from crosstail.data.benchmarks.pacs import SHEET
    >>> [probable(name, SHEET, SHEET.domains) for name in ("Art Painting", "Photos", "zebra")]
    ['art_painting', 'photo', None]
    """
    spellings = {_plain(text): name for name in names for text in (name, *sheet.aliases.get(name, ()))}
    near = difflib.get_close_matches(_plain(name), spellings, n=1, cutoff=0.7)
    return spellings[near[0]] if near else None


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def _check_lists(sheet: DataSheet, folders: tuple[Path, ...], files: Files, report: Report) -> Files:
    """Keep the images that the authors' lists name, where there are lists."""
    try:
        listed = _layout.listed(sheet, *folders)
    except ValueError as error:
        report.problem("list", str(error))
        return files
    if listed is None:
        return files
    absent = sorted(listed - files.keys())
    if absent:
        names = [place_name(sheet, place) for place in absent[:SHOWN]]
        report.problem("list", f"listed images that are not there: {len(absent):,} of {len(listed):,}", *names)
    if len(files) > len(listed) - len(absent):
        report.note("list", f"images that the lists do not name (duplicates), left out: {len(files.keys() - listed):,}")
    return {place: path for place, path in files.items() if place in listed}


def _check_counts(sheet: DataSheet, files: Files, there: set[tuple[int, int]], report: Report) -> None:
    """Counts per pair, or per domain; a pair without a folder was told of before."""
    found = np.zeros((len(sheet.domains), len(sheet.classes)), np.int64)
    np.add.at(found, tuple(_layout.pairs_of(files).T), 1)
    per_domain = tuple(int(n) for n in found.sum(axis=1))
    if not sheet.domain_counts or (per_domain == sheet.domain_counts and not sheet.counts):
        return
    for release in sheet.releases:
        if per_domain == release.domain_counts:
            (report.note if release.usable else report.problem)("release", f"these are {release.what}")
            return
    if not sheet.counts:
        for d, (n, expected) in enumerate(zip(per_domain, sheet.domain_counts, strict=True)):
            if n != expected and any((d, c) in there for c in range(len(sheet.classes))):
                as_in = "".join(f", as in {r.what}" for r in sheet.releases if r.domain_counts[d] == n)
                report.problem("count", f"{sheet.domains[d]}: images {n:,}, expected {expected:,}{as_in}")
        return
    expected_table = np.array(sheet.counts)
    wrong = [(d, c) for d, c in np.argwhere(found != expected_table) if (d, c) in there]
    names = np.array(pair_names(sheet.domains, sheet.classes)).reshape(found.shape)
    for d, c in wrong[:SHOWN]:
        report.problem("count", f"{names[d, c]}: images {found[d, c]:,}, expected {expected_table[d, c]:,}")
    if len(wrong) > SHOWN:
        total, expected = int(found.sum()), int(expected_table.sum())
        more = f"{len(wrong) - SHOWN} other pairs differ as well"
        report.problem("count", f"{more}; images in all {total:,}, expected {expected:,}")


def _check_split_file(
    sheet: DataSheet, folders: tuple[Path, ...], files: Files, report: Report
) -> dict[_layout.Place, str]:
    path = _layout.find_split_file(sheet, *folders)
    if path is None:
        return {}
    try:
        splits = _layout.read_split_file(sheet, path)
    except ValueError as error:
        report.problem("split", str(error))
        return {}
    absent = sorted(splits.keys() - files.keys())
    if absent:
        names = [place_name(sheet, place) for place in absent[:SHOWN]]
        report.problem("split", f"images that {path.name} names and that are not there: {len(absent):,}", *names)
    more = files.keys() - splits.keys()
    if more:
        report.note("split", f"images that {path.name} does not name, left out: {len(more):,}")
    if not absent and not more:
        report.note("split", f"{path.name} names the split of every image")
    return splits if not more else {}


def _check_images(base: Path, files: Files, report: Report, progress: Progress | None) -> None:
    paths = [path.relative_to(base).as_posix() for path in files.values()]
    broken = check_images(ImageFiles(base, paths), partial(progress, "reading images") if progress else None)
    if broken:
        shown = [f"{path}: {reason}" for path, reason in broken[:SHOWN]]
        report.problem("broken", f"{len(broken):,} {plural('image', broken)} cannot be read", *shown)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:SHOWN]))
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} others"

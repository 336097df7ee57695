"""Images that are there twice, byte for byte."""

import hashlib
from collections import defaultdict
from collections.abc import Callable

from crosstail.data.benchmarks._layout import Files, Place, place_name
from crosstail.data.benchmarks._report import SHOWN, Progress, Report, plural
from crosstail.data.benchmarks._sheet import DataSheet


def note_duplicates(
    sheet: DataSheet, files: Files, splits: dict[Place, str], report: Report, progress: Progress | None = None
) -> None:
    """Note the images that are in two splits, two domains or two classes, or twice in one pair."""
    groups = [group for group in _identical(files, progress) if len(group) > 1]
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
            report.note("duplicate", f"{len(found):,} {plural('image', found)} {what}, byte for byte", *shown)


def _identical(files: Files, progress: Progress | None) -> list[list[Place]]:
    """Groups of images with the same bytes; only those of the same size are read."""
    by_size: dict[int, list[Place]] = defaultdict(list)
    for place, path in files.items():
        by_size[path.stat().st_size].append(place)
    candidates = [place for group in by_size.values() if len(group) > 1 for place in group]
    by_bytes: dict[bytes, list[Place]] = defaultdict(list)
    for n, place in enumerate(candidates, 1):
        by_bytes[hashlib.sha256(files[place].read_bytes()).digest()].append(place)
        if progress and (n % 256 == 0 or n == len(candidates)):
            progress("comparing images of the same size", n, len(candidates))
    return list(by_bytes.values())

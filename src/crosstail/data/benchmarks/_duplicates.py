"""Images that are there twice, byte for byte."""

from collections.abc import Callable

from crosstail.data.benchmarks._layout import Files, Place, place_name
from crosstail.data.benchmarks._report import SHOWN, Progress, Report, plural
from crosstail.data.benchmarks._sheet import DataSheet
from crosstail.data.images.same_content import equal_files


def note_duplicates(
    sheet: DataSheet, files: Files, splits: dict[Place, str], report: Report, progress: Progress | None = None
) -> None:
    """Note the images that are in two splits, two domains or two classes, or twice in one pair."""
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
            report.note("duplicate", f"{len(found):,} {plural('image', found)} {what}, byte for byte", *shown)

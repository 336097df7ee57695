"""Terra Incognita, animals in camera traps at four locations: `terra_incognita`."""

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from crosstail.data.benchmarks._load import load_images
from crosstail.data.benchmarks._sheet import read_sheet

IMAGES = "eccv_18_all_images_sm"
# The first that exists is used; the older labels only exist if someone put them there.
LABELS = ("eccv_18_annotation_files/*.json", "caltech_images_20210113.json")

SHEET = read_sheet(__file__)

load = partial(load_images, SHEET)


def prepare(root: Path) -> int:
    """Link, or else copy, the images of the four locations and ten classes into folders, and return their number."""
    found = next((files for files in (sorted(root.glob(pattern)) for pattern in LABELS) if files), [])
    if not found:
        raise FileNotFoundError(f"{root}: has no labels, expected {' or '.join(LABELS)}")
    wanted = sorted({path for file in found for path in _placed(json.loads(file.read_text(encoding="utf-8")))})
    others = {path.relative_to(root) for place in SHEET.domains for path in root.glob(f"{place}/*/*")} - set(wanted)
    if others:
        which = f"{root / min(others)}: is not in {found[0].relative_to(root)} ({len(others):,} such images)"
        made = f"the folders {', '.join(SHEET.domains)}, which were made with other labels"
        raise ValueError(f"{which}; delete {made}, and start again")
    for path in [path for path in wanted if not (root / path).exists()]:
        image, target = root / IMAGES / path.name, root / path
        if not image.is_file():
            raise FileNotFoundError(f"{image}: is not there, but the labels name it; is {IMAGES} unpacked whole?")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(image)
        except OSError:
            shutil.copyfile(image, target)
    return len(wanted)


def _placed(labels: dict[str, list[dict[str, Any]]]) -> Iterator[Path]:
    classes = {category["id"]: category["name"] for category in labels["categories"]}
    images = {image["id"]: image for image in labels["images"]}
    for label in labels["annotations"]:
        image, kind = images.get(label["image_id"], {}), classes[label["category_id"]]
        place = f"location_{image.get('location')}"
        if place in SHEET.domains and kind in SHEET.classes:
            yield Path(place, kind, Path(image["file_name"]).name)

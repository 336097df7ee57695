"""Terra Incognita, animals in camera traps at four locations: `terra_incognita`.

What it is: photographs by motion-triggered cameras in the Southwest of the United States. The domains are four camera
locations, the classes nine animals and "empty". The cameras are fixed, so the background reveals the location, and each
location has its own animals: one camera saw 4,485 opossums and 3 birds.

Releases: the labels were corrected. With those of January 2021 (caltech_images_20210113.json) the four locations have
24,330 images, to which the paper's split file and this sheet refer. With the older labels (eccv_18_annotations.tar.gz)
they have 24,788, the number that DomainBed and the paper's text give. `crosstail data --check` says which release you
have; both load, but the paper's split file only fits the first. Four photographs show two animals and are in both
folders.

Splits: under `mdlt` each pair has 10 images for validation, 20 for test and the rest for training. Eight pairs have
fewer than 30 images and none for training. Few-shot means up to 25 here. `dg` (leave one domain out) splits anew.

How to get it: images and labels from LILA (no checksums are published). To use the older labels, put
eccv_18_annotations.tar.gz into the folder by hand. `crosstail data terra_incognita --download`, or `prepare(root)`,
links the images into folders by location and class.
"""

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from crosstail.data.benchmarks._load import load_images
from crosstail.data.benchmarks._sheet import Archive, DataSheet, Release

IMAGES = "eccv_18_all_images_sm"
# The first that exists is used; the older labels only exist if someone put them there.
LABELS = ("eccv_18_annotation_files/*.json", "caltech_images_20210113.json")

_LILA = (  # with the same file names
    "https://storage.googleapis.com/public-datasets-lila/caltechcameratraps/",
    "https://lilawildlife.blob.core.windows.net/lila-wildlife/caltechcameratraps/",
    "http://us-west-2.opendata.source.coop.s3.amazonaws.com/agentmorris/lila-wildlife/caltechcameratraps/",
)

SHEET = DataSheet(
    name="terra_incognita",
    title="Terra Incognita: animals in camera traps at four locations",
    summary="Nine animals and empty pictures from four fixed cameras in the Southwest of the US.",
    made_by="S. Beery, G. van Horn and P. Perona (Caltech Camera Traps); the subset: I. Gulrajani and D. Lopez-Paz",
    domains=("location_100", "location_38", "location_43", "location_46"),
    classes=("bird", "bobcat", "cat", "coyote", "dog", "empty", "opossum", "rabbit", "raccoon", "squirrel"),
    licence="Community Data License Agreement, permissive variant",
    citation="Beery, van Horn & Perona (2018), Recognition in Terra Incognita, ECCV",
    source="LILA (lila.science, Caltech Camera Traps, subset CCT-20), on three clouds",
    few=25,
    validation=10,
    protocols=("mdlt", "dg"),
    counts=(
        (53, 55, 219, 12, 378, 179, 959, 88, 2474, 324),
        (3, 12, 2287, 48, 359, 194, 4485, 1393, 195, 760),
        (69, 1093, 3, 824, 191, 553, 768, 72, 387, 10),
        (88, 952, 21, 841, 28, 703, 1293, 545, 1400, 12),
    ),
    paper_totals=(23269, 353, 708),
    releases=(
        Release(
            (4879, 9767, 4020, 6122),
            "the 24,788 images with the labels of 2018; the paper's figures and its split file are of the 24,330 "
            "with the labels of caltech_images_20210113.json",
        ),
    ),
    aliases={f"location_{n}": (f"L{n}", n) for n in ("100", "38", "43", "46")},
    archives=(
        Archive(
            file="eccv_18_all_images_sm.tar.gz",
            mirrors=tuple(base + "eccv_18_all_images_sm.tar.gz" for base in _LILA),
            size=6_492_615_601,
            unpacks_to="eccv_18_all_images_sm/*.jpg, about 58,000 images",
        ),
        Archive(
            file="caltech_camera_traps.json.zip",
            mirrors=tuple(base + "labels/caltech_camera_traps.json.zip" for base in _LILA),
            unpacks_to="caltech_images_20210113.json, the labels for the 24,330 images of the paper",
        ),
        Archive(
            file="eccv_18_annotations.tar.gz",
            mirrors=tuple(base + "eccv_18_annotations.tar.gz" for base in _LILA),
            size=2_997_071,
            unpacks_to="eccv_18_annotation_files/*.json, the older labels, for 24,788 images",
            optional=True,
        ),
    ),
    split_file="TerraIncognita.csv",
    clean_up="4 of the 20 locations and 10 of the classes are kept, as links in folders by location and class",
)

load = partial(load_images, SHEET)


def prepare(root: Path) -> int:
    """Link the images of the four locations and ten classes into folders, and return their number.

    Links need no space; without support for links, the images are copied. A second call changes nothing.
    """
    found = next((files for files in (sorted(root.glob(pattern)) for pattern in LABELS) if files), [])
    if not found:
        raise FileNotFoundError(f"{root}: has no labels, expected {' or '.join(LABELS)}")
    wanted = sorted({path for file in found for path in _placed(json.loads(file.read_text(encoding="utf-8")))})
    others = {path.relative_to(root) for place in SHEET.domains for path in root.glob(f"{place}/*/*")} - set(wanted)
    if others:
        raise ValueError(
            f"{root / min(others)}: is not in {found[0].relative_to(root)} ({len(others):,} such images); delete the "
            f"folders {', '.join(SHEET.domains)}, which were made with other labels, and start again"
        )
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
    """Target of each image, location / class / name, for the locations and classes of the sheet."""
    classes = {category["id"]: category["name"] for category in labels["categories"]}
    images = {image["id"]: image for image in labels["images"]}
    for label in labels["annotations"]:
        image, kind = images.get(label["image_id"], {}), classes[label["category_id"]]
        place = f"location_{image.get('location')}"
        if place in SHEET.domains and kind in SHEET.classes:
            yield Path(place, kind, Path(image["file_name"]).name)

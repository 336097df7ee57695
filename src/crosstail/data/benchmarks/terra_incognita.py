"""Animals before camera traps at four places: `terra_incognita`.

What it is: photographs that cameras in the Southwest of the United States took by themselves when something
moved. The domains are the places of four cameras, the classes nine animals and "empty". The cameras stand
still, so that the background gives the place away, and each place has its own animals: one camera saw 4,485
opossums and 3 birds.

Who made it: S. Beery, G. van Horn and P. Perona collected and labelled Caltech Camera Traps; I. Gulrajani and
D. Lopez-Paz took the four places and ten classes for DomainBed.

How many: two releases are in circulation, as the labels were corrected. With those of January 2021
(caltech_images_20210113.json) the four places have 24,330 images; the paper's split file and its figures
23,269 / 353 / 708 are of these, and so is this sheet. With the older labels (eccv_18_annotations.tar.gz) they
have 24,788: that is the number which DomainBed and the text of the paper give. `crosstail data --check` tells
which one you have; both load, and the paper's split file only fits the first. Four photographs show two kinds
of animal and stand in the folders of both.

Under the MDLT protocol each pair gives 10 images for validation and 20 for test, the rest is for training.
Eight pairs have fewer than 30 images and none for training. Few-shot here means up to 25. Under the protocol
`dg` (leave one domain out) the same images are split anew, without these sets.

How to get it: images and labels at LILA, on three clouds. The sizes are those that a public project recorded;
no checksum is published. The older labels are taken instead if eccv_18_annotations.tar.gz is put into the folder
by hand. The clean-up is applied by `crosstail data terra_incognita --download`, or `prepare(root)`: of the 20
places it takes four and of the classes ten, as links into folders by place and class.

Licence: Community Data License Agreement, permissive variant. Citation: Beery, van Horn & Perona (2018),
Recognition in Terra Incognita, ECCV.
"""

import json
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from crosstail.data.benchmarks._load import load_images
from crosstail.data.benchmarks._sheet import Archive, DataSheet, Release

IMAGES = "eccv_18_all_images_sm"
# The first that is there; the older ones are only there if somebody wanted them.
LABELS = ("eccv_18_annotation_files/*.json", "caltech_images_20210113.json")

_LILA = (  # the file names below these are the same
    "https://storage.googleapis.com/public-datasets-lila/caltechcameratraps/",
    "https://lilawildlife.blob.core.windows.net/lila-wildlife/caltechcameratraps/",
    "http://us-west-2.opendata.source.coop.s3.amazonaws.com/agentmorris/lila-wildlife/caltechcameratraps/",
)

SHEET = DataSheet(
    name="terra_incognita",
    title="Terra Incognita: animals before camera traps at four places",
    summary="Nine animals and empty pictures that four fixed cameras in the Southwest of the US took.",
    made_by="S. Beery, G. van Horn and P. Perona; the subset: I. Gulrajani and D. Lopez-Paz",
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
    aliases={
        "location_100": ("L100", "100"),
        "location_38": ("L38", "38"),
        "location_43": ("L43", "43"),
        "location_46": ("L46", "46"),
    },
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
    clean_up="of the 20 places 4 and of the classes 10 are kept, as links into folders by place and class",
)

load = partial(load_images, SHEET)


def prepare(root: Path) -> int:
    """Link the images of the four places and ten classes into folders, and say how many there are.

    Links need no space; where the disk has none, the images are copied. A second call changes nothing.
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
    for path in wanted:
        image, target = root / IMAGES / path.name, root / path
        if target.exists():
            continue
        if not image.is_file():
            raise FileNotFoundError(f"{image}: is not there, but the labels name it; is {IMAGES} unpacked whole?")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(image, target)
        except OSError:
            shutil.copyfile(image, target)
    return len(wanted)


def _placed(labels: dict[str, list[dict[str, Any]]]) -> Iterator[Path]:
    """Where each image goes: place / class / name, for the places and classes of the sheet."""
    classes = {category["id"]: category["name"] for category in labels["categories"]}
    images = {
        image["id"]: (f"location_{image['location']}", Path(image["file_name"]).name) for image in labels["images"]
    }
    for label in labels["annotations"]:
        place, name = images.get(label["image_id"], ("", ""))
        if place in SHEET.domains and classes[label["category_id"]] in SHEET.classes:
            yield Path(place, classes[label["category_id"]], name)

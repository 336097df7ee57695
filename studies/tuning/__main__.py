"""Does tuning the last stage help? docs/results/tuning.md.

Writes the page from the records; with --resume, first does the units that the records lack, in the order of their
importance. It can be stopped at any time; a unit takes up to two minutes of one core:

    python -m studies.tuning
    python -m studies.tuning --resume --data ../shared/data --out runs/tuning
"""

import json
from pathlib import Path

import numpy as np
import torch
from studies.result_options import result_options
from studies.tuning.page import page
from studies.tuning.runs import measured
from studies.tuning.sets import SPLITS, Photos, sets, split
from studies.tuning.stage import RECIPES, activations, network

HERE = Path(__file__).parent
RECORDS, PAGE = HERE / "records.jsonl", HERE.parents[1] / "docs/results/tuning.md"


def main() -> None:
    """Complete the records, if asked, and write the page."""
    parser = result_options(__doc__, "runs/tuning")
    parser.add_argument("--resume", action="store_true", help="do what the records lack")
    parser.add_argument("--recipe", choices=RECIPES, default="10 epochs")
    parser.add_argument("--splits", type=int, default=SPLITS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    units = [(number, photos) for number in range(given.splits) for photos in sets(given.data)]
    for number, photos in units if given.resume else ():
        key = {"set": photos.name, "split": number, "recipe": given.recipe}
        if not any(record.items() >= key.items() for record in records()):
            kept = given.out / f"{photos.name} {number} {given.recipe}.npz"
            found = measured(photos, number, RECIPES[given.recipe], maps(photos, given.out), kept)
            with RECORDS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(key | found) + "\n")
    PAGE.write_text(page(records()), encoding="utf-8")


def records() -> list[dict[str, object]]:
    """All units so far."""
    return [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()] if RECORDS.exists() else []


def maps(photos: Photos, out: Path) -> np.ndarray:
    """Activations in front of the last stage of all photos of a set."""
    path = out / photos.activations
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        source, _ = split(photos, 0)
        made = activations(source, network((3, *source.x.shape[1:3]), photos.spec.resolution))
        np.save(path.with_suffix(".part.npy"), made)
        path.with_suffix(".part.npy").rename(path)
    return np.load(path, mmap_mode="r")


if __name__ == "__main__":
    main()

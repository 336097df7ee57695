"""Which view of a photo should a pretrained network get? docs/decisions/frozen-features.md.

Interpolation and the part of the photo that is shown are varied; the default classifier and a linear probe are fitted
on the features of each view. The first six minutes of each set embed its photos:

    python -m studies.tuning.view --data ../shared/data --out runs/view
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from studies.result_options import result_options
from studies.tuning.judged import blended, figures, probed
from studies.tuning.sets import SPLITS, sets, split

from crosstail import backbones
from crosstail.backbones._frozen import FrozenNetwork
from crosstail.data import DomainDataset, load_source

MODES = ("bilinear", "bicubic")
PARTS = {"7/8": 7 / 8, "square": 1.0, "squeezed": None}  # central square, as a share of the shorter side; or all of it
BEFORE = "7/8 bilinear"  # of photos; "square bilinear" of images in memory
JUDGED = ("Office-Caltech10", "ham10000 by lesion", "digits", "digits-mlt")


def view(pixels: Any, size: int, mode: str, share: float | None) -> torch.Tensor:
    """A part of an image (H, W, 3), resized to (3, size, size)."""
    if share:
        side = max(1, round(min(pixels.shape[:2]) * share))
        top, left = ((length - side) // 2 for length in pixels.shape[:2])
        pixels = pixels[top : top + side, left : left + side]
    x = torch.from_numpy(np.array(pixels, order="C"))[None].permute(0, 3, 1, 2)
    return F.interpolate(x, size=(size, size), mode=mode, antialias=True)[0] / 255


def embedded(dataset: DomainDataset, out: Path) -> dict[str, Any]:
    """Features of every view."""
    if not out.exists():
        network = FrozenNetwork(backbones.build("efficientnet_lite0", (3, *dataset.x.shape[1:3])), len(dataset))
        views = {f"{part} {mode}": (mode, share) for part, share in PARTS.items() for mode in MODES}
        made: dict[str, list[Any]] = {name: [] for name in views}
        for rows in np.array_split(np.arange(len(dataset)), len(dataset) // 32):
            bases = [dataset.kind.pixels(dataset.x, i) for i in rows]  # type: ignore[misc]
            for name, how in views.items():
                made[name].append(network(torch.stack([view(base, network.backbone.size, *how) for base in bases])))
        np.savez(out, **{name: np.concatenate(parts) for name, parts in made.items()})
    return dict(np.load(out))


def main() -> None:
    """Print a table of every set: means over the splits, and differences from the view before, with standard errors."""
    given = result_options(__doc__, "runs/view").parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    rows = []
    for photos in (of for of in sets(given.data) if of.name in JUDGED):
        features = embedded(load_source(photos.spec), given.out / f"{photos.name}.npz")
        for number in range(SPLITS):
            _, dataset = split(photos, number)
            bare = replace(dataset, x=np.zeros((len(dataset), 1), np.float32))
            for name, z in features.items():
                for kind, fit in (("blend", blended), ("probe", probed)):
                    found = figures(fit(bare, z[dataset.origin])["val"])
                    rows.append({"set": photos.name, "kind": kind, "view": name, "split": number, **found})
    table = pd.DataFrame(rows).set_index(["set", "kind", "view", "split"])[["pairs", "loss"]]
    gains = table - table.xs(BEFORE, level="view").reindex(table.index.droplevel("view")).to_numpy()
    by = ["set", "kind", "view"]
    print(table.groupby(by, sort=False).mean().join([gains.groupby(by).mean(), gains.groupby(by).sem()], rsuffix="_"))


if __name__ == "__main__":
    main()

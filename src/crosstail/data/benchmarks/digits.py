"""Synthetic digits in three domains, generated on the fly without a download: `digits`.

What it is: 3,450 RGB images of 32 × 32 pixels, ten classes ("0" to "9") in three domains:
- `handwritten`: scikit-learn's 8 × 8 handwritten digits, enlarged, pale on a dark ground;
- `textured`: other handwritten digits, blended with colourful textures in the manner of MNIST-M;
- `signs`: printed digits as a camera sees them on house numbers and street signs, in the manner of SVHN.

How it is made: scikit-learn's 1,797 originals are shuffled per class. The first 40 are for test, the next 18 for
validation, the next 57 for training in `handwritten`, and another 57 for training in `textured`; the two share the
originals for test and validation, each drawn in its own style. Every image of `signs` is a new drawing in Pillow's
scalable font. Each pair thus has 57 / 18 / 40 images, and no original is in two splits.

What it is for: a first look, examples and tests. By default the labels have opposite tails and a third domain with a
step and two classes without training images. As the set is small, a pair is many-shot above 30 training images and
few-shot up to 8. The images depend on the seed alone, except for a few pixels that differ between releases of Pillow
and SciPy.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from crosstail.data.benchmarks import _draw_digits as draw
from crosstail.data.benchmarks._sheet import DataSheet
from crosstail.data.dataset import DomainDataset

SHEET = DataSheet(
    name="digits",
    title="Synthetic digits in three domains",
    summary="Handwritten digits, others on colourful textures, and printed digits on signs; 32 × 32 RGB.",
    domains=("handwritten", "textured", "signs"),
    classes=tuple("0123456789"),
    made_by="E. Alpaydin and C. Kaynak (the handwriting); redrawn by Crosstail",
    licence="CC BY 4.0 (UCI digits), CC0 (Aileron font)",
    citation="Alpaydin & Kaynak (1998), Optical Recognition of Handwritten Digits, doi:10.24432/C50P49",
    source="generated from scikit-learn's load_digits and Pillow's font; nothing to download",
    labels=("forward:57", "backward:57", "step:10!2,7"),
    in_memory=True,
    steps=1000,
    many=30,
    few=8,
)

POOL = {"train": 57, "val": 18, "test": 40}  # images per pair


def originals(seed: int = 0) -> dict[tuple[str, str], NDArray[np.int64]]:
    """Rows of scikit-learn's digits used for each (domain, split), (10, count), one line per class."""
    target = load_digits().target
    rng = np.random.default_rng([seed, 0])
    ends = np.cumsum([POOL["test"], POOL["val"], POOL["train"], POOL["train"]])
    shuffled = np.stack([rng.permutation(np.flatnonzero(target == c))[: ends[-1]] for c in range(10)])
    test, val, train, other_train = np.split(shuffled, ends[:-1], axis=1)
    parts = {"handwritten": (train, val, test), "textured": (other_train, val, test)}
    return {(domain, split): rows for domain, found in parts.items() for split, rows in zip(POOL, found, strict=True)}


def load(seed: int = 0) -> DomainDataset:
    """The balanced set: 57 images for training, 18 for validation and 40 for test in every pair."""
    ink = (load_digits().images / 16).astype(np.float32)
    rows = originals(seed)
    y = np.concatenate([np.repeat(np.arange(10), count) for count in POOL.values()])  # of one domain
    split = np.repeat(list(POOL), [10 * count for count in POOL.values()])
    streams = [np.random.default_rng([seed, d]) for d in (1, 2, 3)]
    plain, textured = (ink[np.concatenate([rows[name, s].ravel() for s in POOL])] for name in SHEET.domains[:2])
    drawn = draw.handwritten(plain, streams[0]), draw.textured(textured, streams[1]), draw.signs(y, streams[2])
    domain = np.repeat(np.arange(3), len(y))
    x, y = np.concatenate(drawn), np.tile(y, 3)
    return DomainDataset(SHEET.name, x, y, domain, np.tile(split, 3), SHEET.classes, SHEET.domains)

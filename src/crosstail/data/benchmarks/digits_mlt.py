"""Digits-MLT, the paper's digits with configurable long tails: `digits_mlt`.

What it is: the ten digits in two domains, RGB images of 32 × 32 pixels: MNIST-M (handwritten digits blended with
patches of photographs, 28 × 28 ones enlarged) and SVHN (house numbers cropped from street views). Each pair has 1,000
images for training, 800 for validation and 800 for test, or as many as there are; test images come from the original
test sets, the others from the original training sets.

What it is for: any label distribution. The default is long-tailed in opposite directions, `forward:100` for MNIST-M and
`backward:100` for SVHN (4,956 training images, the smallest of the paper's configurations, which start at `uniform`).

How to get it: SVHN from Stanford (SHA-256 from TensorFlow Datasets), MNIST-M as .pt files from GitHub (MD5 as in many
public loaders). The folder mnist_m with mnist_m_train_labels.txt and mnist_m_test_labels.txt works as well, and so does
a single .npz file with x, y, domain and split.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.data.benchmarks._check_result import CheckResult
from crosstail.data.benchmarks._image_folders import existing_root
from crosstail.data.benchmarks._mnist_m_svhn import DigitPool, mnist_m, svhn
from crosstail.data.benchmarks._sheet import Archive, DataSheet
from crosstail.data.dataset import DomainDataset
from crosstail.data.sources.arrays import load_arrays


def _svhn(file: str, size: int, sha256: str, images: int) -> Archive:
    mirrors = (f"http://ufldl.stanford.edu/housenumbers/{file}",)
    inside = f"used as it is: {images:,} images of SVHN"
    return Archive(file=file, mirrors=mirrors, size=size, sha256=sha256, unpacks_to=inside)


def _mnist_m(file: str, md5: str, images: int) -> Archive:
    mirrors = (f"https://github.com/liyxi/mnist-m/releases/download/data/{file}.tar.gz",)
    return Archive(file=f"{file}.tar.gz", mirrors=mirrors, md5=md5, unpacks_to=f"{file}: {images:,} images of MNIST-M")


SHEET = DataSheet(
    name="digits_mlt",
    title="Digits-MLT: MNIST-M and SVHN with configurable long tails",
    summary="Handwritten digits on colourful backgrounds, and house numbers; 32 × 32 RGB.",
    made_by="Y. Ganin and V. Lempitsky (MNIST-M, from MNIST and BSDS500), Y. Netzer, T. Wang, A. Coates, A. Bissacco, "
    "B. Wu and A. Ng (SVHN); combined by Y. Yang, H. Wang and D. Katabi",
    domains=("mnist_m", "svhn"),
    classes=tuple("0123456789"),
    licence="SVHN non-commercial use; MNIST-M none stated",
    citation="Ganin et al. (2016), Domain-Adversarial Training of Neural Networks, JMLR; Netzer et al. (2011), "
    "Reading Digits in Natural Images, NIPS workshop",
    source="SVHN from Stanford, MNIST-M from a release on GitHub; or one .npz file with x, y, domain and split",
    labels=("forward:100", "backward:100"),
    in_memory=True,
    batch_size=64,
    paper_totals=(4956, 16000, 16000),
    archives=(
        _svhn(
            "train_32x32.mat", 182_040_794, "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8", 73_257
        ),
        _svhn("test_32x32.mat", 64_275_384, "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b", 26_032),
        _mnist_m("mnist_m_train.pt", "191ed53db9933bd85cc9700558847391", 60_000),
        _mnist_m("mnist_m_test.pt", "e11cb4d7fff76d7ec588b1134907db59", 10_000),
    ),
)

TRAIN, VALIDATION, TEST = 1000, 800, 800  # images per pair


def load(root: Path | str | None = None, seed: int = 0) -> DomainDataset:
    """The balanced set, drawn from the files below `root` or read from an .npz file."""
    folder = existing_root(SHEET, root)
    arrays = next(
        (path for path in (folder, folder / "digits-mlt.npz", folder / "digits_mlt.npz") if path.is_file()), None
    )
    if arrays:
        return replace(load_arrays(arrays, seed=seed), name=SHEET.name)
    # Differs from the paper: its text takes validation and test from the original test sets, where MNIST-M has fewer
    # than 1,600 images per class, so that the two would overlap. The reference code validates on training images, too.
    parts = [
        _draw(pool, d, c, split, seed)
        for d, (train, test) in enumerate((mnist_m(folder), svhn(folder)))
        for split, pool in (("train", train), ("val", train), ("test", test))
        for c in range(10)
    ]
    x, domain, y, split = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return DomainDataset(SHEET.name, x, y, domain, split, SHEET.classes, SHEET.domains)


def _draw(pool: DigitPool, d: int, c: int, split: str, seed: int) -> tuple[NDArray[Any], ...]:
    """Images, domain, class and split of one pair; training and validation are disjoint parts of one shuffle."""
    rows = np.flatnonzero(pool.labels == c)
    shuffled = np.random.default_rng([seed, d, c]).permutation(rows)
    # A class with too few images for both is divided in proportion; MNIST-M and SVHN have none.
    train = min(TRAIN, len(rows) * TRAIN // (TRAIN + VALIDATION))
    first, last = {"train": (0, train), "val": (train, train + VALIDATION), "test": (0, TEST)}[split]
    x = pool.images(np.sort(shuffled[first:last]))
    return x, np.full(len(x), d), np.full(len(x), c), np.full(len(x), split, "<U5")


def check(root: Path) -> CheckResult:
    """Load everything and note pairs with fewer images than in the paper."""
    result = CheckResult(SHEET.name, str(root))
    try:
        dataset = load(root)
    except (ValueError, FileNotFoundError) as error:
        result.problem("missing", str(error))
        return result
    result.images = len(dataset)
    for split, expected in (("train", TRAIN), ("val", VALIDATION), ("test", TEST)):
        counts = dataset.counts(split)
        if counts.min() < expected:
            d, c = np.unravel_index(counts.argmin(), counts.shape)
            pair = f"{dataset.domains[d]} / {dataset.classes[c]}"
            result.note("count", f"{pair} has {counts.min()} images for {split}, the paper has {expected} of each pair")
    return result

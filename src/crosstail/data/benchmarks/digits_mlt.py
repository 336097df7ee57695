"""Digits-MLT, the paper's digits with long tails at will: `digits_mlt`.

What it is: the ten digits in two domains, RGB images of 32 × 32 pixels: MNIST-M (handwritten digits blended with
patches of photographs) and SVHN (house numbers cropped from street views). Each pair has 1,000 images for training, 800
for validation and 800 for test, or as many as there are. Training and validation images come from the original training
sets, test images from the original test sets. 28 × 28 images, as in the .pt files of MNIST-M, are enlarged.

What it is for: any label distribution. By default it is long-tailed in opposite directions, `forward:100` for MNIST-M
and `backward:100` for SVHN (4,956 training images, the smallest of the paper's configurations); the paper varies both,
from `uniform` to a factor of 100.

How to get it: SVHN from Stanford (sizes and SHA-256 as published by TensorFlow Datasets), MNIST-M as .pt files from
GitHub (MD5 as in many public loaders). The folder mnist_m with mnist_m_train_labels.txt and mnist_m_test_labels.txt
works as well, and so does a single .npz file with x, y, domain and split.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosstail.data.benchmarks._check_result import CheckResult
from crosstail.data.benchmarks._image_folders import existing_root
from crosstail.data.benchmarks._mnist_m_svhn import DigitPool, mnist_m, svhn
from crosstail.data.benchmarks._sheet import Archive, DataSheet
from crosstail.data.dataset import DomainDataset
from crosstail.data.sources.arrays import load_arrays

_STANFORD = "http://ufldl.stanford.edu/housenumbers/"
_MNIST_M = "https://github.com/liyxi/mnist-m/releases/download/data/"

SHEET = DataSheet(
    name="digits_mlt",
    title="Digits-MLT: MNIST-M and SVHN with long tails at will",
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
        Archive(
            file="train_32x32.mat",
            mirrors=(_STANFORD + "train_32x32.mat",),
            size=182_040_794,
            sha256="435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            unpacks_to="used as it is: 73,257 images of SVHN",
        ),
        Archive(
            file="test_32x32.mat",
            mirrors=(_STANFORD + "test_32x32.mat",),
            size=64_275_384,
            sha256="cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
            unpacks_to="used as it is: 26,032 images of SVHN",
        ),
        Archive(
            file="mnist_m_train.pt.tar.gz",
            mirrors=(_MNIST_M + "mnist_m_train.pt.tar.gz",),
            md5="191ed53db9933bd85cc9700558847391",
            unpacks_to="mnist_m_train.pt: 60,000 images of MNIST-M",
        ),
        Archive(
            file="mnist_m_test.pt.tar.gz",
            mirrors=(_MNIST_M + "mnist_m_test.pt.tar.gz",),
            md5="e11cb4d7fff76d7ec588b1134907db59",
            unpacks_to="mnist_m_test.pt: 10,000 images of MNIST-M",
        ),
    ),
)

TRAIN, VALIDATION, TEST = 1000, 800, 800  # images per pair
ARRAYS = ("digits-mlt.npz", "digits_mlt.npz")


def load(root: Path | str | None = None, seed: int = 0) -> DomainDataset:
    """The balanced set, drawn from the files below `root` or read from an .npz file."""
    folder = existing_root(SHEET, root)
    arrays = next((path for path in (folder, *(folder / name for name in ARRAYS)) if path.is_file()), None)
    if arrays:
        return replace(load_arrays(arrays, seed=seed), name=SHEET.name)
    # Differs from the paper: its text takes validation and test from the original test sets, where MNIST-M has fewer
    # than 1,600 images per class, so that the two would overlap. The reference code validates on training images, too.
    parts = [
        _draw(pool, d, c, split, seed)
        for d, pools in enumerate((mnist_m(folder), svhn(folder)))
        for split, pool in (("train", pools[0]), ("val", pools[0]), ("test", pools[1]))
        for c in range(10)
    ]
    return DomainDataset(
        name=SHEET.name,
        x=np.concatenate([x for x, *_ in parts]),
        y=np.concatenate([np.full(len(x), c) for x, _, c, _ in parts]),
        domain=np.concatenate([np.full(len(x), d) for x, d, _, _ in parts]),
        split=np.concatenate([np.full(len(x), split, "<U5") for x, _, _, split in parts]),
        classes=SHEET.classes,
        domains=SHEET.domains,
    )


def _draw(pool: DigitPool, d: int, c: int, split: str, seed: int) -> tuple[NDArray[np.uint8], int, int, str]:
    """The images of one pair for one split; training and validation are disjoint parts of one shuffle."""
    rows = np.flatnonzero(pool.labels == c)
    shuffled = np.random.default_rng(np.random.SeedSequence([seed, d, c])).permutation(rows)
    # A class with too few images for both is divided in proportion; MNIST-M and SVHN have none.
    train = min(TRAIN, len(rows) * TRAIN // (TRAIN + VALIDATION))
    first, last = {"train": (0, train), "val": (train, train + VALIDATION), "test": (0, TEST)}[split]
    return pool.images(np.sort(shuffled[first:last])), d, c, split


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

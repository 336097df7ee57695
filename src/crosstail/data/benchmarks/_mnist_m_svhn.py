"""Readers for MNIST-M and SVHN in their common file formats."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 32
SVHN_FOLDERS = (".", "SVHN", "svhn")
MNIST_M_FOLDERS = (".", "mnist_m", "MNIST-M", "MNIST-M/processed", "MNISTM/processed")


@dataclass(frozen=True)
class DigitPool:
    """The labels (N,) of an original set, and a reader of the images of some rows, (n, 32, 32, 3) in uint8."""

    labels: NDArray[np.int64]
    images: Callable[[NDArray[np.int64]], NDArray[np.uint8]]


def svhn(root: Path) -> tuple[DigitPool, DigitPool]:
    """SVHN's training and test set, from .mat files read by torchvision."""
    from torchvision.datasets import SVHN

    folder = _folder_with(root, SVHN_FOLDERS, "train_32x32.mat", "test_32x32.mat")
    if not folder:
        raise FileNotFoundError(f"{root}: has no SVHN, expected train_32x32.mat and test_32x32.mat")

    def read(split: str) -> DigitPool:
        try:
            data = SVHN(str(folder), split=split)
        except RuntimeError:  # torchvision checks the MD5
            file = f"{folder}/{split}_32x32.mat"
            raise ValueError(f"{file}: is damaged: its MD5 is wrong; download it again") from None
        return _pool_of_arrays(np.transpose(data.data, (0, 2, 3, 1)), data.labels)

    return read("train"), read("test")


def mnist_m(root: Path) -> tuple[DigitPool, DigitPool]:
    """MNIST-M's training and test set: .pt files, or folders of images with a list of labels each."""
    for suffix, read in ((".pt", _from_tensors), ("_labels.txt", _from_list)):
        train, test = (f"mnist_m_{part}{suffix}" for part in ("train", "test"))
        if folder := _folder_with(root, MNIST_M_FOLDERS, train, test):
            return read(folder / train), read(folder / test)
    raise FileNotFoundError(
        f"{root}: has no MNIST-M, expected mnist_m_train.pt and mnist_m_test.pt, or mnist_m_train_labels.txt and "
        "mnist_m_test_labels.txt with the folders mnist_m_train and mnist_m_test"
    )


def _folder_with(root: Path, folders: tuple[str, ...], *files: str) -> Path | None:
    return next((root / name for name in folders if all((root / name / file).is_file() for file in files)), None)


def _from_tensors(path: Path) -> DigitPool:
    import torch

    try:
        images, labels = (value.numpy() for value in torch.load(path, weights_only=True))
    except Exception as error:  # unpickling bad bytes can raise anything
        raise ValueError(f"{path}: cannot be read as a pair of tensors, images and labels ({error})") from error
    if images.ndim != 4 or images.shape[3] != 3 or images.dtype != np.uint8 or labels.shape != images.shape[:1]:
        found = f"images {images.dtype} {images.shape} and labels {labels.shape}"
        raise ValueError(f"{path}: has {found}, expected uint8 (N, H, W, 3) and (N,)")
    return _pool_of_arrays(images, labels)


def _from_list(path: Path) -> DigitPool:
    folder = path.with_name(path.name.removesuffix("_labels.txt"))
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    for number, line in enumerate(lines, 1):
        if len(line) != 2 or not line[1].isdecimal() or int(line[1]) > 9:
            raise ValueError(f"{path}, line {number}: is {' '.join(line)!r}, expected an image and a digit")
    labels = np.array([int(line[1]) for line in lines])
    return DigitPool(labels, lambda rows: _stack([_read(folder / lines[row][0]) for row in rows]))


def _read(path: Path) -> NDArray[np.uint8]:
    try:
        with Image.open(path) as image:
            return _square(image.convert("RGB"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error})") from error


def _pool_of_arrays(images: NDArray[np.uint8], labels: NDArray[Any]) -> DigitPool:
    def read(rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        if images.shape[1:3] == (SIDE, SIDE):
            return images[rows]
        return _stack([_square(Image.fromarray(images[row])) for row in rows])

    return DigitPool(labels.astype(np.int64), read)


def _stack(images: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    return np.array(images, np.uint8).reshape(-1, SIDE, SIDE, 3)  # also for an empty list


def _square(image: Image.Image) -> NDArray[np.uint8]:
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR), np.uint8)

"""Digits-MLT from the file formats in which MNIST-M and SVHN are distributed, with small synthetic files."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat
from torchvision.datasets import SVHN

from crosstail.data import apply_labels, load_arrays
from crosstail.data.benchmarks import digits_mlt

COUNT = {"train": 9, "test": 5}  # images per class of the made sets


def pixels(labels, side, marks):
    """Images that show what they are: red is the class, green the domain and part, blue the number."""
    x = np.zeros((len(labels), side, side, 3), np.uint8)
    x[..., 0] = 20 * np.asarray(labels)[:, None, None]
    x[..., 1] = marks
    x[..., 2] = np.arange(len(labels))[:, None, None]
    return x


def make_svhn(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in COUNT.items():
        labels = np.tile(np.arange(10), count)
        x = pixels(labels, 32, {"train": 10, "test": 20}[part])
        # The files of SVHN have the digit 0 as the class 10, and the images last.
        y = np.where(labels, labels, 10)[:, None]
        savemat(folder / f"{part}_32x32.mat", {"X": x.transpose(1, 2, 3, 0), "y": y})


def make_mnist_m_tensors(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in COUNT.items():
        labels = np.tile(np.arange(10), count)
        x = torch.from_numpy(pixels(labels, 28, {"train": 30, "test": 40}[part]))
        torch.save((x, torch.from_numpy(labels)), folder / f"mnist_m_{part}.pt")


def make_mnist_m_images(folder):
    for part, count in COUNT.items():
        labels = np.tile(np.arange(10), count)
        (folder / f"mnist_m_{part}").mkdir(parents=True)
        for i, x in enumerate(pixels(labels, 32, {"train": 30, "test": 40}[part])):
            Image.fromarray(x).save(folder / f"mnist_m_{part}" / f"{i:08}.png")
        lines = [f"{i:08}.png {label}\n" for i, label in enumerate(labels)]
        (folder / f"mnist_m_{part}_labels.txt").write_text("".join(lines))


@pytest.fixture
def any_md5(monkeypatch):
    """torchvision would refuse a made-up SVHN."""
    monkeypatch.setattr(SVHN, "_check_integrity", lambda self: True)


FORMS = {
    "tensors in the root": (make_mnist_m_tensors, ".", "."),
    "as the reference has it": (make_mnist_m_tensors, "MNISTM/processed", "SVHN"),
    "images": (make_mnist_m_images, "mnist_m", "svhn"),
    "images in the root": (make_mnist_m_images, ".", "."),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(tmp_path, any_md5, form):
    make, mnist_m, svhn = FORMS[form]
    make(tmp_path / mnist_m)
    make_svhn(tmp_path / svhn)
    dataset = digits_mlt.load(tmp_path)
    assert (dataset.name, dataset.domains, dataset.classes) == ("digits_mlt", ("mnist_m", "svhn"), tuple("0123456789"))
    assert dataset.x.shape == (2 * 10 * 14, 32, 32, 3) and dataset.x.dtype == np.uint8
    for split, count in (("train", 5), ("val", 4), ("test", 5)):  # 9 shared out as 1,000 to 800
        assert (dataset.counts(split) == count).all()
    shown = dataset.x[:, 16, 16]
    assert (shown[:, 0] == 20 * dataset.y).all()
    marks = {(0, "train"): 30, (0, "val"): 30, (0, "test"): 40, (1, "train"): 10, (1, "val"): 10, (1, "test"): 20}
    assert [marks[d, s] for d, s in zip(dataset.domain, dataset.split, strict=True)] == shown[:, 1].tolist()


def test_no_image_is_in_two_splits_and_the_seed_decides(tmp_path, any_md5):
    make_mnist_m_tensors(tmp_path)
    make_svhn(tmp_path)
    dataset = digits_mlt.load(tmp_path)
    images = {tuple(v) for v in dataset.x[:, 16, 16].tolist()}
    assert len(images) == len(dataset)
    assert digits_mlt.load(tmp_path).x.tobytes() == dataset.x.tobytes()
    assert digits_mlt.load(tmp_path, seed=1).x.tobytes() != dataset.x.tobytes()


def test_numbers_per_pair_of_the_paper(monkeypatch, tmp_path, any_md5):
    """With enough images, each pair has exactly the numbers asked for."""
    monkeypatch.setattr(digits_mlt, "TRAIN", 3)
    monkeypatch.setattr(digits_mlt, "VALIDATION", 2)
    monkeypatch.setattr(digits_mlt, "TEST", 4)
    make_mnist_m_tensors(tmp_path)
    make_svhn(tmp_path)
    dataset = digits_mlt.load(tmp_path)
    for split, count in (("train", 3), ("val", 2), ("test", 4)):
        assert (dataset.counts(split) == count).all()
    assert digits_mlt.check(tmp_path).ok and digits_mlt.check(tmp_path).notes == []


def test_default_labels_give_the_papers_smallest_set():
    assert digits_mlt.SHEET.labels == ("forward:100", "backward:100")
    y = np.tile(np.repeat(np.arange(10), 1000), 2)
    domain = np.repeat([0, 1], 10_000)
    pool = digits_mlt.DomainDataset(
        "pool", np.zeros((20_000, 1), np.float32), y, domain, np.full(20_000, "train"),
        digits_mlt.SHEET.classes, digits_mlt.SHEET.domains,
    )  # fmt: skip
    assert apply_labels(pool, digits_mlt.SHEET.labels, 0).counts("train").sum() == digits_mlt.SHEET.paper_totals[0]


def test_arrays(tmp_path):
    n = 40
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8),
        "y": np.arange(n) % 10,
        "domain": np.arange(n) // 20,
        "split": np.array(["train", "val"] * 20),
        "domains": np.array(["mnist_m", "svhn"]),
    }
    np.savez(tmp_path / "digits-mlt.npz", **arrays)
    for root in (tmp_path, tmp_path / "digits-mlt.npz", str(tmp_path)):
        dataset = digits_mlt.load(root)
        assert dataset.name == "digits_mlt" and (dataset.x == arrays["x"]).all()
    report = digits_mlt.check(tmp_path)
    assert report.ok and report.images == n
    assert "images for train, the paper has 1000 of each pair" in report.notes[0].message


def test_real_arrays(shared_data):
    path = shared_data / "digits-mlt.npz"
    if not path.is_file():
        pytest.skip("digits-mlt.npz (real MNIST-M and SVHN) is not beside the project")
    dataset = digits_mlt.load(path)
    assert (dataset.counts("train") == 1000).all() and dataset.domains == digits_mlt.SHEET.domains
    assert (dataset.x[:100] == load_arrays(path).x[:100]).all()


def test_missing_files(tmp_path, any_md5):
    with pytest.raises(FileNotFoundError, match=r"has no MNIST-M, expected mnist_m_train\.pt and mnist_m_test\.pt, or"):
        digits_mlt.load(tmp_path)
    make_mnist_m_tensors(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"has no SVHN, expected train_32x32\.mat and test_32x32\.mat"):
        digits_mlt.load(tmp_path)
    report = digits_mlt.check(tmp_path)
    assert not report.ok and "has no SVHN" in report.problems[0].message
    with pytest.raises(FileNotFoundError, match="there is no such folder; `crosstail data digits_mlt --root"):
        digits_mlt.load(tmp_path / "nowhere")


def test_damaged_files(tmp_path):
    make_mnist_m_tensors(tmp_path)
    make_svhn(tmp_path)
    with pytest.raises(ValueError, match=r"train_32x32\.mat: is damaged.*MD5"):
        digits_mlt.load(tmp_path)
    (tmp_path / "mnist_m_train.pt").write_bytes(b"no tensors")
    with pytest.raises(ValueError, match=r"mnist_m_train\.pt: cannot be read as a pair of tensors"):
        digits_mlt.load(tmp_path)
    torch.save((torch.zeros(3, 28, 28), torch.zeros(3)), tmp_path / "mnist_m_train.pt")
    with pytest.raises(ValueError, match=r"has images float32 \(3, 28, 28\) and labels \(3,\), expected uint8"):
        digits_mlt.load(tmp_path)


def test_damaged_list(tmp_path, any_md5):
    make_mnist_m_images(tmp_path)
    make_svhn(tmp_path)
    (tmp_path / "mnist_m_train/00000000.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"00000000\.png: cannot be read"):
        digits_mlt.load(tmp_path)
    (tmp_path / "mnist_m_train_labels.txt").write_text("00000001.png 1\n00000002.png x\n")
    with pytest.raises(ValueError, match=r"labels\.txt, line 2: is '00000002.png x', expected an image and a digit"):
        digits_mlt.load(tmp_path)

from pathlib import Path

import numpy as np
import pytest

from crosstail.data import DomainBatches, load
from crosstail.data.benchmarks import digits

SHARED = Path(__file__).parents[3].parent / "shared/data/digits-mlt.npz"


def arrays(n=40, **changes):
    rng = np.random.default_rng(0)
    made = {
        "x": rng.normal(size=(n, 5)).astype(np.float32),
        "y": np.arange(n) % 2,
        "domain": np.arange(n) // (n // 2),
        "split": np.array(["train", "val", "test", "train"] * (n // 4)),
        "domains": np.array(["site a", "site b"]),
        "classes": np.array(["cat", "dog"]),
    }
    return {key: value for key, value in (made | changes).items() if value is not None}


@pytest.fixture
def save(tmp_path):
    def write(**changes):
        path = tmp_path / "mine.npz"
        np.savez(path, **arrays(**changes))
        return path

    return write


def test_benchmark_with_the_labels_of_its_sheet():
    dataset = load("digits")
    counts = dataset.counts("train")
    assert counts[0].tolist() == [57, 36, 23, 14, 9, 6, 3, 2, 1, 1]
    assert counts[1].tolist() == counts[0, ::-1].tolist()
    assert counts[2].tolist() == [57, 57, 0, 57, 57, 5, 5, 0, 5, 5]
    assert (dataset.counts("val") == 18).all() and (dataset.counts("test") == 40).all()
    sheet = digits.SHEET
    shots = [counts > sheet.many, (counts <= sheet.few) & (counts > 0), counts == 0]
    assert [int(group.sum()) for group in shots] == [8, 14, 2]  # many, few, zero: none of them is empty


@pytest.mark.parametrize("labels", [["uniform"], []])
def test_benchmark_as_the_balanced_pool(labels):
    dataset = load("digits", labels=labels)
    assert (dataset.counts("train") == 57).all()
    assert dataset.x.tobytes() == digits.load(0).x.tobytes()


def test_benchmark_with_other_labels_and_seed():
    dataset = load("digits", labels=["step:3", "uniform!0,1,2", "forward:10"], seed=2)
    assert dataset.counts("train")[1].tolist() == [0, 0, 0] + [57] * 7
    again = load("digits", labels=["step:3", "uniform!0,1,2", "forward:10"], seed=2)
    assert dataset.x.tobytes() == again.x.tobytes()


def test_file(save):
    path = save()
    for source in (path, str(path)):
        dataset = load(source)
        assert (dataset.name, dataset.domains, dataset.classes) == ("mine", ("site a", "site b"), ("cat", "dog"))
        made = arrays()
        assert (dataset.x == made["x"]).all() and dataset.x.dtype == np.float32
        assert (dataset.y == made["y"]).all() and dataset.y.dtype == dataset.domain.dtype == np.int64
        assert (dataset.split == made["split"]).all()


def test_file_with_labels_by_name(save):
    dataset = load(save(), labels=["uniform", "step:5!cat"])
    assert dataset.counts("train").tolist() == [[5, 5], [0, 1]]


def test_file_of_images_in_small_integers(save):
    x = np.random.default_rng(0).integers(0, 256, (40, 8, 6, 3), dtype=np.uint8)
    y, domain = (arrays()[key].astype(np.uint8) for key in ("y", "domain"))
    dataset = load(save(x=x, y=y, domain=domain))
    assert dataset.kind.picture and dataset.x.dtype == np.uint8 and dataset.y.dtype == np.int64
    assert DomainBatches(dataset, batch_size=3).at(0).x.shape == (6, 3, 8, 6)


def test_file_without_names_and_split(save):
    path = save(n=400, split=None, domains=None, classes=None)
    dataset = load(path)
    assert (dataset.domains, dataset.classes) == (("0", "1"), ("0", "1"))
    assert [dataset.counts(split).tolist() for split in ("train", "val", "test")] == [
        [[70, 70], [70, 70]], [[10, 10], [10, 10]], [[20, 20], [20, 20]],
    ]  # fmt: skip
    assert (load(path).split == dataset.split).all()
    assert (load(path, seed=1).split != dataset.split).any()


def test_numbers_that_do_not_occur_are_no_classes(save):
    made = arrays()
    path = save(y=made["y"] + 1, domain=made["domain"] * 10**9, domains=None, classes=None)
    dataset = load(path)
    assert (dataset.domains, dataset.classes) == (("0", "1000000000"), ("1", "2"))
    assert (dataset.y == made["y"]).all() and (dataset.domain == made["domain"]).all()
    about_classes, about_domains, *_ = dataset.notes
    assert "y 0" in about_classes and "2 numbers" in about_classes and "domain 1:" in about_domains
    assert load(save(y=made["y"] * 0 + 1)).classes == ("cat", "dog")  # names are kept


def test_other_floats_become_float32(save):
    for dtype in (np.float16, np.float64):
        assert load(save(x=np.ones((40, 3), dtype))).x.dtype == np.float32


def with_value(key, row, value):
    changed = arrays()[key].copy()
    changed[row] = value
    return {key: changed}


WRONG = {
    "no x": ({"x": None}, "has no array 'x' but y, domain, split, domains, classes; expected x, y, domain and opt"),
    "no domain": ({"domain": None}, "has no array 'domain' but x, y, split"),
    "NaN": (with_value("x", 7, np.nan), "row 7 of x has a value that is NaN or infinite (1 such rows)"),
    "infinite": (with_value("x", 3, np.inf), "row 3 of x has a value that is NaN or infinite"),
    "too large": ({"x": np.full((40, 2), 1e300)}, "row 0 of x has a value that is NaN or infinite (40 such rows)"),
    "channels": (
        {"x": np.zeros((40, 8, 8, 1), np.uint8)},
        "x is uint8 (40, 8, 8, 1), expected uint8 images (N, H, W, 3) or float embeddings (N, F)",
    ),
    "float images": ({"x": np.zeros((40, 8, 8, 3))}, "x is float64 (40, 8, 8, 3), expected uint8 images"),
    "whole numbers": ({"x": np.zeros((40, 8), np.int64)}, "x is int64 (40, 8), expected uint8 images"),
    "a scalar": ({"x": np.float32(3)}, "x is float32 (), expected uint8 images"),
    "no rows": ({"x": np.zeros((0, 8), np.float32)}, "x has no rows"),
    "short y": ({"y": np.zeros(39, np.int64)}, "y has the shape (39,), expected (40,) as x has 40 rows"),
    "y in columns": ({"y": np.zeros((40, 2), np.int64)}, "y has the shape (40, 2), expected (40,)"),
    "float y": ({"y": np.zeros(40)}, "y is float64, expected integers or strings"),
    "no such class": ({"y": np.array(["cat", "cow"] * 20)}, "y of row 1 is 'cow', which is not among the classes"),
    "empty name": ({"domain": np.array(["a", ""] * 20), "domains": None}, "domain of row 1 is empty"),
    "y above": (with_value("y", 12, 2), "y of row 12 is 2, expected 0 to 1"),
    "domain below": (with_value("domain", 5, -1), "domain of row 5 is -1, expected 0 to 1"),
    "negative without names": (with_value("y", 5, -1) | {"classes": None}, "y of row 5 is -1, expected 0 or more"),
    "split": (with_value("split", 9, "dev"), "split of row 9 is 'dev', expected one of train, val, test"),
    "short split": ({"split": np.array(["train"])}, "split has the shape (1,), expected (40,) as x has 40 rows"),
    "names twice": ({"classes": np.array(["cat", "cat"])}, "classes has the name 'cat' twice"),
    "objects": ({"y": np.array([None] * 40, object)}, "cannot be read as an .npz file of plain arrays"),
    "text as objects": ({"y": np.array(["cat"] * 40, object)}, "astype(str)"),
}


def test_text_for_classes_and_domains(save):
    y, domain = np.array(["site10", "site2"] * 20), np.array(["b"] * 20 + ["a"] * 20)
    dataset = load(save(y=y, domain=domain, classes=None, domains=None))
    assert (dataset.classes, dataset.domains) == (("site2", "site10"), ("a", "b"))
    assert [dataset.classes[i] for i in dataset.y] == y.tolist()
    assert [dataset.domains[i] for i in dataset.domain] == domain.tolist()
    assert [note.split(" is text")[0] for note in dataset.notes[:2]] == ["y", "domain"]
    named = load(save(y=np.array(["dog", "cat"] * 20)))  # in the order of the file's classes
    assert named.y.tolist() == [1, 0] * 20 and named.classes == ("cat", "dog")


@pytest.mark.parametrize("what", WRONG)
def test_wrong_file(save, what):
    changes, message = WRONG[what]
    path = save(**changes)
    with pytest.raises(ValueError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 broken", b"\x93NUMPY"])
def test_file_that_is_no_archive(tmp_path, content):
    path = tmp_path / "mine.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"mine\.npz: cannot be read as an \.npz file of plain arrays"):
        load(path)


def test_single_array_under_the_name_npz(tmp_path):
    with (tmp_path / "mine.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match=r"mine\.npz: cannot be read as an \.npz file of plain arrays"):
        load(tmp_path / "mine.npz")


def test_missing_file():
    with pytest.raises(FileNotFoundError, match=r"^nowhere\.npz: there is no such file$"):
        load("nowhere.npz")


def test_unknown_source():
    with pytest.raises(ValueError) as error:
        load("digit")
    message = str(error.value)
    assert message.startswith("unknown data set 'digit': did you mean 'digits'?")
    assert all(kind in message for kind in ("folder", ".csv", ".parquet", ".npz", "hf:NAME"))


def test_machinery_is_no_data_set():
    with pytest.raises(ValueError, match="unknown data set '_sheet'"):
        load("_sheet")


@pytest.mark.skipif(not SHARED.is_file(), reason="digits-mlt.npz (real MNIST-M and SVHN) is not beside the project")
def test_real_digits_mlt():
    dataset = load(SHARED, labels=["forward:100", "backward:100"])
    assert (dataset.name, dataset.domains) == ("digits-mlt", ("mnist_m", "svhn"))
    counts = dataset.counts("train")
    assert counts.sum() == 4956 and counts.max() == 1000 and counts.min() == 10  # as in the paper
    assert (dataset.counts("val") == 200).all() and (dataset.counts("test") == 400).all()
    assert DomainBatches(dataset, batch_size=64).at(0).x.shape == (128, 3, 32, 32)

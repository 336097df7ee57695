"""The embedded data set: counts, determinism, no original in two splits, and digits that can be read."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier

from crosstail.data.benchmarks import digits
from crosstail.data.benchmarks._sheet import DataSheet
from crosstail.data.dataset import DomainDataset


@pytest.fixture(scope="module")
def dataset() -> DomainDataset:
    return digits.load(0)


def test_pools_are_balanced(dataset):
    assert dataset.x.shape == (3450, 32, 32, 3) and dataset.x.dtype == np.uint8
    assert dataset.domains == ("handwritten", "textured", "signs")
    for split, count in (("train", 57), ("val", 18), ("test", 40)):
        assert (dataset.counts(split) == count).all()


def test_same_seed_same_bytes_whatever_the_global_random_state(dataset):
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    again = digits.load(0)
    assert again.x.tobytes() == dataset.x.tobytes()
    assert again.y.tobytes() == dataset.y.tobytes() and (again.split == dataset.split).all()
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_another_seed_gives_other_images_in_every_domain(dataset):
    other = digits.load(1)
    for d in range(3):
        assert (other.x[other.domain == d] != dataset.x[dataset.domain == d]).any(axis=(1, 2, 3)).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_original_is_in_two_splits(seed):
    rows = digits.originals(seed)
    target = load_digits().target
    for block in rows.values():
        assert len(np.unique(block)) == block.size
        assert (target[block] == np.arange(10)[:, None]).all()
    used = {key: set(block.ravel().tolist()) for key, block in rows.items()}
    for a, b in (("train", "val"), ("train", "test"), ("val", "test")):
        in_a = used["handwritten", a] | used["textured", a]
        in_b = used["handwritten", b] | used["textured", b]
        assert not in_a & in_b
    assert not used["handwritten", "train"] & used["textured", "train"]


def test_images_follow_their_originals(dataset):
    """Row i of a domain is drawn from the i-th original, so `originals` says the truth about them."""
    rows, ink = digits.originals(0), load_digits().images / 16
    behind = ink[np.concatenate([rows["handwritten", split].ravel() for split in ("train", "val", "test")])]
    grey = dataset.x[dataset.domain == 0].mean(axis=3)
    small = grey.reshape(-1, 8, 4, 8, 4).mean(axis=(2, 4))

    def likeness(a, b):
        a, b = (v.reshape(len(v), -1) - v.reshape(len(v), -1).mean(axis=1, keepdims=True) for v in (a, b))
        return (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))

    own, next_one = likeness(small, behind), likeness(small, np.roll(behind, 1, axis=0))
    assert own.mean() > next_one.mean() + 0.05
    assert (own > next_one).mean() > 0.75


def test_no_two_images_are_the_same(dataset):
    assert len(np.unique(dataset.x.reshape(len(dataset), -1), axis=0)) == len(dataset)


def contrast(x):
    """Distance (N, 256) from the brightness of the edge, so that light on dark is like dark on light."""
    grey = x.mean(axis=3) / 255
    edge = np.median(np.concatenate([grey[:, 0], grey[:, -1]], axis=1), axis=1)
    return np.abs(grey - edge[:, None, None]).reshape(-1, 16, 2, 16, 2).mean(axis=(2, 4)).reshape(len(x), -1)


@pytest.mark.parametrize("d", [0, 1, 2])
def test_classes_can_be_learned_within_a_domain(dataset, d):
    train, test = ((dataset.domain == d) & (dataset.split == split) for split in ("train", "test"))
    model = RidgeClassifier(alpha=3.0).fit(contrast(dataset.x[train]), dataset.y[train])
    assert model.score(contrast(dataset.x[test]), dataset.y[test]) > 0.6  # chance is 0.1


@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 0), (1, 2), (2, 0), (0, 2), (2, 1)])
def test_something_transfers_between_domains(dataset, source, target):
    train = (dataset.domain == source) & (dataset.split == "train")
    test = (dataset.domain == target) & (dataset.split == "test")
    model = RidgeClassifier(alpha=3.0).fit(contrast(dataset.x[train]), dataset.y[train])
    assert model.score(contrast(dataset.x[test]), dataset.y[test]) > 0.2  # chance is 0.1


def test_domains_can_be_told_apart(dataset):
    colour = dataset.x.reshape(len(dataset), -1, 3).astype(np.float64)
    look = np.concatenate(
        [colour.mean(axis=1), colour.std(axis=1), np.ptp(colour, axis=2).mean(axis=1, keepdims=True)], axis=1
    )
    train, test = (dataset.split == split for split in ("train", "test"))
    assert RidgeClassifier().fit(look[train], dataset.domain[train]).score(look[test], dataset.domain[test]) > 0.8


def test_handwritten_is_grey_and_the_others_are_not(dataset):
    spread = np.ptp(dataset.x.astype(int), axis=3).mean(axis=(1, 2))
    assert spread[dataset.domain == 0].max() == 0
    assert spread[dataset.domain != 0].min() > 1


def test_sheet_agrees_with_the_data(dataset):
    sheet = digits.SHEET
    assert (sheet.name, sheet.domains, sheet.classes) == (dataset.name, dataset.domains, dataset.classes)
    assert (sheet.many, sheet.few, sheet.batch_size) == (30, 8, 24)
    assert all((sheet.title, sheet.summary, sheet.licence, sheet.citation, sheet.source, sheet.about))


def test_a_sheet_with_a_wrong_number_of_labels_is_refused():
    words = dict.fromkeys(("name", "title", "summary", "licence", "citation", "source"), "w")
    with pytest.raises(ValueError, match="1 label profiles for 2 domains"):
        DataSheet(**words, domains=("a", "b"), classes=("c",), labels=("uniform",))

"""Batches: pure in the step, every row once per epoch, classes once per round, any size of domain."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crosstail.data.batches.batch import to_input
from crosstail.data.batches.domain_batches import DomainBatch, DomainBatches
from crosstail.data.dataset import DomainDataset


def make(counts, split="train"):
    """A shuffled data set of embeddings with these counts (D, C); x is (row, class, domain)."""
    counts = np.asarray(counts)
    domain, y = (np.repeat(a.ravel(), counts.ravel()) for a in np.indices(counts.shape))
    order = np.random.default_rng(0).permutation(len(y))
    y, domain = y[order], domain[order]
    x = np.stack([np.arange(len(y)), y, domain], axis=1).astype(np.float32)
    classes, domains = (tuple(str(i) for i in range(n)) for n in counts.shape[::-1])
    return DomainDataset("made", x, y, domain, np.full(len(y), split), classes, domains)


def stream(batches, domain_position, draws):
    """The first draws of one domain, batch by batch."""
    size = batches.batch_size
    part = slice(domain_position * size, (domain_position + 1) * size)
    return np.concatenate([batches.batch_rows(step)[part] for step in range(-(-draws // size))])[:draws]


tables = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=3).filter(
    lambda table: any(map(any, table))
)


@given(tables, st.integers(1, 12), st.booleans(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_the_same_number_from_each_domain_that_has_any(table, batch_size, class_balanced, seed):
    dataset = make(table)
    batches = DomainBatches(dataset, batch_size=batch_size, class_balanced=class_balanced, seed=seed)
    present = [d for d, row in enumerate(table) if any(row)]
    for step in (0, 1, 17):
        rows = batches.batch_rows(step)
        assert dataset.domain[rows].tolist() == np.repeat(present, batch_size).tolist()


@given(tables, st.integers(1, 12), st.booleans(), st.permutations(range(12)))
@settings(max_examples=60, deadline=None)
def test_a_batch_depends_on_the_step_only(table, batch_size, class_balanced, order):
    def new():
        return DomainBatches(make(table), batch_size=batch_size, class_balanced=class_balanced, seed=5)

    one_by_one = new()
    expected = {step: one_by_one.batch_rows(step).copy() for step in range(12)}
    jumping = new()
    for step in order:
        assert (jumping.batch_rows(step) == expected[step]).all()
    for step in order[:3]:  # resumed there: a new object that has seen nothing
        assert (new().batch_rows(step) == expected[step]).all()


def test_far_steps_of_class_balanced_batches_are_pure_too():
    """Past the first blocks of rounds and of pairs."""
    dataset = make([[300, 2, 70], [1, 0, 5]])
    one_by_one = DomainBatches(dataset, batch_size=24, class_balanced=True)
    expected = [one_by_one.batch_rows(step) for step in range(400)]
    resumed = DomainBatches(dataset, batch_size=24, class_balanced=True)
    for step in (399, 43, 42, 128, 0, 271):
        assert (resumed.batch_rows(step) == expected[step]).all()


@given(tables, st.integers(1, 12), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_every_row_once_per_epoch(table, batch_size, seed):
    dataset = make(table)
    batches = DomainBatches(dataset, batch_size=batch_size, seed=seed)
    for position, d in enumerate(np.unique(dataset.domain)):
        own = np.flatnonzero(dataset.domain == d)
        epochs = stream(batches, position, 4 * len(own)).reshape(4, -1)
        assert (np.sort(epochs, axis=1) == own).all()


def test_epochs_are_the_documented_permutations():
    dataset = make([[5, 6], [0, 0], [30, 10]])
    batches = DomainBatches(dataset, batch_size=8, seed=11)
    for position, d in enumerate((0, 2)):
        own = np.flatnonzero(dataset.domain == d)
        expected = [np.random.default_rng(np.random.SeedSequence([11, d, e])).permutation(own) for e in range(3)]
        assert (stream(batches, position, 3 * len(own)) == np.concatenate(expected)).all()


def test_orders_differ_between_epochs_domains_and_seeds():
    dataset = make([[50], [50]])
    draws = [stream(DomainBatches(dataset, batch_size=10, seed=seed), p, 100) for seed in (0, 1) for p in (0, 1)]
    ranks = [np.argsort(np.argsort(half)) for draw in draws for half in (draw[:50], draw[50:])]
    assert len({tuple(rank.tolist()) for rank in ranks}) == 8


@given(tables, st.integers(1, 12), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_class_balanced_is_exact_in_every_round(table, batch_size, seed):
    dataset = make(table)
    batches = DomainBatches(dataset, batch_size=batch_size, class_balanced=True, seed=seed)
    for position, d in enumerate(np.unique(dataset.domain)):
        classes = np.unique(dataset.y[dataset.domain == d])
        rows = stream(batches, position, 20 * len(classes))
        rounds = dataset.y[rows].reshape(20, -1)
        assert (np.sort(rounds, axis=1) == classes).all()
        for c in classes:  # and each class passes through its rows
            own = np.flatnonzero((dataset.domain == d) & (dataset.y == c))
            drawn = rows[dataset.y[rows] == c]
            whole = len(drawn) // len(own) * len(own)
            assert (np.sort(drawn[:whole].reshape(-1, len(own)), axis=1) == own).all()
            assert len(np.unique(drawn[whole:])) == len(drawn) - whole


def test_class_balanced_stays_exact_across_blocks():
    dataset = make([[400, 3, 1, 0, 90, 7, 2]])
    batches = DomainBatches(dataset, batch_size=50, class_balanced=True)
    rows = stream(batches, 0, 6 * 1500)
    assert (np.sort(dataset.y[rows].reshape(1500, 6), axis=1) == [0, 1, 2, 4, 5, 6]).all()
    for c, n in ((0, 400), (1, 3), (2, 1), (4, 90), (5, 7), (6, 2)):
        drawn = rows[dataset.y[rows] == c]
        epochs = drawn[: len(drawn) // n * n].reshape(-1, n)
        assert (np.sort(epochs, axis=1) == np.flatnonzero(dataset.y == c)).all()
        if n > 1:
            assert len(np.unique(epochs, axis=0)) > 1
    orders = dataset.y[rows].reshape(1500, 6)
    assert len(np.unique(orders, axis=0)) > 600  # of the 720 orders of six classes


def test_a_domain_smaller_than_the_batch():
    dataset = make([[2, 1], [40, 40]])
    rows = DomainBatches(dataset, batch_size=24).batch_rows(0)
    assert np.bincount(rows[:24], minlength=len(dataset))[dataset.domain == 0].tolist() == [8, 8, 8]
    one = make([[1]])
    assert DomainBatches(one, batch_size=5, class_balanced=True).batch_rows(3).tolist() == [0] * 5


def test_only_rows_of_the_split():
    dataset = make([[6, 6]])
    split = np.where(np.arange(12) < 8, "train", "val")
    dataset = DomainDataset("made", dataset.x, dataset.y, dataset.domain, split, ("0", "1"), ("0",))
    assert sorted(DomainBatches(dataset, batch_size=8).batch_rows(0).tolist()) == list(range(8))
    assert sorted(DomainBatches(dataset, split="val", batch_size=4).batch_rows(5).tolist()) == [8, 9, 10, 11]


def test_at_gives_the_samples_of_the_rows():
    dataset = make([[5, 6], [0, 0], [30, 10]])
    batches = DomainBatches(dataset, batch_size=8)
    batch = batches.at(3)
    rows = batches.batch_rows(3)
    assert isinstance(batch, DomainBatch) and len(batch) == 16
    assert batch.x.dtype == torch.float32 and batch.y.dtype == batch.domain.dtype == torch.int64
    assert batch.x.tolist() == np.stack([rows, dataset.y[rows], dataset.domain[rows]], axis=1).tolist()
    assert batch.y.tolist() == dataset.y[rows].tolist()
    assert batch.domain.tolist() == [0] * 8 + [2] * 8
    moved = batch.to("meta")
    assert moved.x.device.type == moved.y.device.type == moved.domain.device.type == "meta"


def test_writing_to_a_batch_leaves_the_data_set_and_the_next_batch_alone():
    dataset = make([[4, 4]])
    before = dataset.x.copy()
    batches = DomainBatches(dataset, batch_size=8)
    rows = batches.batch_rows(0)
    batches.at(0).x.zero_()
    batches.batch_rows(0)[:] = 0
    assert (dataset.x == before).all() and (batches.batch_rows(0) == rows).all()


def test_batches_can_be_pickled():
    for class_balanced in (False, True):
        batches = DomainBatches(make([[4, 4]]), batch_size=3, class_balanced=class_balanced)
        batches.batch_rows(0)
        copy = pickle.loads(pickle.dumps(batches))
        assert (copy.batch_rows(9) == batches.batch_rows(9)).all()


def test_images_to_input():
    x = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3), dtype=np.uint8)
    out = to_input(x)
    assert out.dtype == torch.float32 and out.shape == (4, 3, 6, 5)
    expected = torch.from_numpy(x).permute(0, 3, 1, 2).float().div_(255)
    assert torch.equal(out, expected)
    assert out.is_contiguous(memory_format=torch.channels_last)
    x.flags.writeable = False  # a memory map; torch would warn
    assert torch.equal(to_input(x), expected)


def test_embeddings_to_input_are_copies_in_float32():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = to_input(x)
    out.zero_()
    assert x.sum() == 15 and to_input(x.astype(np.float64)).dtype == torch.float32


def views_of(n=30, num_views=4):
    """Embeddings (N, V, F) whose first number is the row and whose second is the view."""
    x = np.stack(np.broadcast_arrays(np.arange(n)[:, None], np.arange(num_views)), axis=-1).astype(np.float32)
    zeros = np.zeros(n, np.int64)
    return DomainDataset("made", x, zeros, np.arange(n) % 2, np.full(n, "train"), ("a",), ("p", "q"))


def test_of_several_views_the_plain_one_is_evaluated():
    np.testing.assert_array_equal(to_input(views_of().x)[:, 1], np.zeros(30))


def test_a_batch_shows_a_view_of_each_sample_at_random():
    dataset = views_of()
    batches = DomainBatches(dataset, batch_size=12, seed=3)
    shown = np.concatenate([batches.at(step).x.numpy() for step in range(50)])
    rows = np.concatenate([batches.batch_rows(step) for step in range(50)])
    np.testing.assert_array_equal(shown[:, 0], rows)  # the same samples as without views
    share = np.bincount(shown[:, 1].astype(int), minlength=4) / len(shown)
    assert abs(share - 0.25).max() < 0.05
    again = DomainBatches(dataset, batch_size=12, seed=3).at(7).x
    assert torch.equal(again, batches.at(7).x) and not torch.equal(
        again, DomainBatches(dataset, batch_size=12, seed=4).at(7).x
    )
    np.testing.assert_array_equal(dataset.counts("train"), [[15], [15]])  # views are not samples


@pytest.mark.parametrize("x", [np.zeros((2, 4, 4, 3), np.float32), np.zeros(3), np.zeros((2, 4, 4), np.uint8)])
def test_other_inputs_are_refused(x):
    with pytest.raises(ValueError, match=r"x is .*, expected uint8 images \(N, H, W, 3\) or float embeddings \(N, F\)"):
        to_input(x)


def test_nothing_to_train_on():
    with pytest.raises(ValueError, match="made: the split 'train' has no samples in any domain"):
        DomainBatches(make([[3, 3]], split="test"), batch_size=2)


def test_wrong_numbers():
    with pytest.raises(ValueError, match="batch_size is 0, expected 1 or more samples per domain"):
        DomainBatches(make([[3]]), batch_size=0)
    with pytest.raises(ValueError, match="step is -1, expected 0 or more"):
        DomainBatches(make([[3]]), batch_size=1).batch_rows(-1)

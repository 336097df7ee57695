"""Cross-validation as a split: every sample is tested once, and groups stay whole."""

from dataclasses import replace

import numpy as np
import pytest

from crosstail.data import DataSpec, DomainDataset, protocols
from crosstail.training import RunSpec

SIZES = [[40, 11, 3], [1, 23, 5]]
FOLDS = 4


def samples(sizes=SIZES) -> DomainDataset:
    """Vectors of two domains and three classes in mixed order, with a split of their own."""
    table = np.array(sizes)
    domain, y = (np.repeat(index.ravel(), table.ravel()) for index in np.indices(table.shape))
    order = np.random.default_rng(0).permutation(len(y))
    x, split = np.arange(len(y), dtype=np.float32)[:, None], np.resize(["train", "test", "val"], len(y))
    return DomainDataset("v", x, y[order], domain[order], split, ("a", "b", "c"), ("p", "q"))


def split_of(dataset: DomainDataset, fold: int | None, **other) -> DomainDataset:
    return protocols.split(dataset, DataSpec(dataset="v.npz", folds=FOLDS, fold=fold, **other))


def test_every_sample_is_tested_once_and_trained_or_selected_on_in_the_other_folds():
    dataset = samples()
    parts = np.stack([split_of(dataset, fold).split for fold in range(1, FOLDS + 1)])
    assert ((parts == "test").sum(axis=0) == 1).all() and set(parts.ravel()) == {"train", "val", "test"}


def test_pairs_are_spread_over_the_folds_and_a_tenth_of_the_rest_is_for_validation():
    table = np.array(SIZES)
    for fold in range(1, FOLDS + 1):
        found = split_of(samples(), fold)
        test, val = found.counts("test"), found.counts("val")
        assert (np.abs(test - table / FOLDS) < 1).all()
        for (d, c), rest in np.ndenumerate(table - test):
            assert val[d, c] == (max(1, round(rest / 10)) if rest >= 4 else 0)


def test_folds_depend_on_the_data_seed_alone():
    dataset = samples()
    first = split_of(dataset, 1)
    assert (split_of(dataset, 1, seed=5).split == first.split).all()
    assert (split_of(replace(dataset, split=dataset.split[::-1]), 1).split == first.split).all()
    assert (split_of(dataset, 1, data_seed=1).split != first.split).any()


def test_groups_stay_whole():
    dataset = samples([[40, 40, 40], [40, 40, 40]])
    dataset = replace(dataset, group=np.random.default_rng(1).integers(0, 50, len(dataset)))
    for fold in range(1, FOLDS + 1):
        found = split_of(dataset, fold)
        assert found.counts("val").sum() and found.counts("test").sum()
        for group in np.unique(found.group):
            assert len(set(found.split[found.group == group])) == 1


def test_duplicates_are_in_one_fold_although_the_data_came_with_a_split():
    dataset = samples([[30, 30, 30], [30, 30, 30]])
    dataset = dataset.with_x(dataset.x // 2)  # every vector is there twice
    for fold in range(1, FOLDS + 1):
        found = split_of(dataset, fold)
        assert not set(found.x[found.rows("test"), 0]) & set(found.x[found.split != "test", 0])


def test_pairs_that_some_folds_do_not_test_are_counted():
    (note,) = split_of(samples(), 2).notes
    assert "2 of 6 pairs" in note and "samples" in note and "4 folds" in note  # those with 3 and 1
    even = samples([[8, 8, 8], [8, 8, 8]])
    assert split_of(even, 2).notes == ()


def test_label_profiles_thin_the_training_part_only():
    plain, thinned = (split_of(samples(), 1, labels=labels) for labels in (None, ("forward:20",)))
    for split in ("val", "test"):
        assert (plain.counts(split) == thinned.counts(split)).all()
    assert thinned.counts("train").sum() < plain.counts("train").sum()


def test_too_many_folds_and_a_missing_one_are_named():
    with pytest.raises(ValueError, match="--folds is 4, but there are only 3"):
        split_of(samples([[1, 1, 0], [0, 1, 0]]), 1)
    few = replace(samples(), group=np.arange(len(samples())) % 2)
    with pytest.raises(ValueError, match="--folds is 4, but there are only 2 groups"):
        split_of(few, 1)
    with pytest.raises(ValueError, match="--fold"):
        split_of(samples(), None)


def test_every_sample_is_for_training_where_nothing_is_held_out():
    final = RunSpec(dataset="v.npz", folds=FOLDS, stop_at=(3,))
    assert set(protocols.split(samples(), final).split) == {"train"}

"""Splits and folds of user data: whole groups, training data for every pair, test samples wherever possible."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps
from sklearn.model_selection import StratifiedGroupKFold

from crosstail.data import DomainDataset, load
from crosstail.data.splits.default import default_split
from crosstail.data.splits.domains import leave_one_domain_out
from crosstail.data.splits.duplicates import with_duplicates
from crosstail.data.splits.groups import deal, fold_of, in_several, joined, leaked
from crosstail.data.splits.label_profiles import apply_labels

SAMPLES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=1, max_size=60)  # pair, group


def counts(split, pair, part, pairs=4):
    return np.bincount(pair[split == part], minlength=pairs)


@given(pairs=st.lists(st.integers(0, 3), min_size=1, max_size=80), seed=st.integers(0, 3))
def test_half_of_every_pair_is_trained_on_and_one_of_two_samples_is_tested(pairs, seed):
    pair = np.array(pairs)
    split = default_split(pair % 2, pair // 2, seed=seed)
    n = np.bincount(pair, minlength=4)
    assert (2 * counts(split, pair, "train") >= n).all()
    assert ((counts(split, pair, "test") >= 1) == (n >= 2)).all()
    assert ((counts(split, pair, "val") >= 1) == (n >= 4)).all()


@pytest.mark.parametrize(
    ("n", "train", "val", "test"),
    [(1, 1, 0, 0), (2, 1, 0, 1), (3, 2, 0, 1), (4, 2, 1, 1), (8, 5, 1, 2), (20, 14, 2, 4), (157, 110, 16, 31)],
)
def test_sizes_of_a_pair(n, train, val, test):
    split = default_split(np.zeros(n, int), np.zeros(n, int))
    assert [int((split == part).sum()) for part in ("train", "val", "test")] == [train, val, test]


@settings(max_examples=200)
@given(samples=SAMPLES, seed=st.integers(0, 3))
def test_no_group_is_in_two_splits_and_half_is_trained_on(samples, seed):
    pair, group = np.array(samples).T
    split = default_split(pair % 2, pair // 2, group, seed=seed)
    assert all(len(set(split[group == g])) == 1 for g in group)
    assert (2 * counts(split, pair, "train") >= np.bincount(pair, minlength=4)).all()


@given(samples=SAMPLES, seed=st.integers(0, 3))
def test_pairs_of_two_groups_have_test_samples_if_groups_keep_to_a_pair(samples, seed):
    pair, group = np.array(samples).T
    group = group * 4 + pair  # no group is in two pairs
    split = default_split(pair % 2, pair // 2, group, seed=seed)
    for p in set(pair.tolist()):
        assert (counts(split, pair, "test")[p] > 0) == (len(set(group[pair == p])) > 1)


def test_a_group_larger_than_half_of_its_pair_is_trained_on():
    group = np.array([0] * 6 + [1, 2, 3])
    split = default_split(np.zeros(9, int), np.zeros(9, int), group)
    assert set(split[:6]) == {"train"} and sorted(split[6:]) == ["test", "test", "val"]


def test_another_seed_is_another_split():
    y, domain = np.repeat([0, 1], 50), np.tile([0, 1], 50)
    assert (default_split(y, domain, seed=1) == default_split(y, domain, seed=1)).all()
    assert (default_split(y, domain, seed=1) != default_split(y, domain, seed=2)).any()


def test_what_is_wanted_is_dealt_exactly_where_groups_are_single_samples():
    pair = np.repeat([0, 1, 2], [10, 20, 40])
    wanted = np.array([[3, 5, 7], [1, 2, 3]])
    part = deal(pair, None, wanted, least=np.zeros(3, int), seed=0)
    assert [np.bincount(pair[part == k]).tolist() for k in (0, 1)] == wanted.tolist()


@given(samples=SAMPLES, folds=st.integers(2, 5), seed=st.integers(0, 3))
def test_every_group_is_in_one_fold(samples, folds, seed):
    pair, group = np.array(samples).T
    if len(set(group)) < folds:
        with pytest.raises(ValueError, match=str(folds)):
            fold_of(pair, group, folds, seed)
        return
    fold = fold_of(pair, group, folds, seed)
    assert set(fold) <= set(range(folds)) and all(len(set(fold[group == g])) == 1 for g in group)


@given(pairs=st.lists(st.integers(0, 3), min_size=5, max_size=80), folds=st.integers(2, 5))
def test_folds_of_single_samples_are_even_within_pairs_and_in_all(pairs, folds):
    pair = np.array(pairs)
    fold = fold_of(pair, None, folds, seed=0)
    per_pair = np.array([np.bincount(pair[fold == k], minlength=4) for k in range(folds)])
    assert (np.ptp(per_pair, axis=0) <= 1).all() and np.ptp(np.bincount(fold, minlength=folds)) <= 1


def test_folds_are_as_even_as_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    group = rng.integers(800, size=4000)
    home = rng.zipf(1.3, size=800) % 40
    pair = np.where(rng.random(4000) < 0.03, rng.integers(40, size=4000), home[group])
    theirs = np.zeros(4000, int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about pairs with fewer samples than folds
        for k, (_, test) in enumerate(StratifiedGroupKFold(5, shuffle=True, random_state=0).split(pair, pair, group)):
            theirs[test] = k

    def unevenness(fold):
        """By which share of a pair its largest and smallest fold differ, mean over pairs."""
        table = np.array([np.bincount(pair[fold == k], minlength=40) for k in range(5)])
        return (np.ptp(table, axis=0) / table.sum(axis=0)).mean()

    assert unevenness(fold_of(pair, group, 5, seed=0)) <= unevenness(theirs)


def test_joined_groups_keep_what_either_keeps():
    rng = np.random.default_rng(0)
    one, other = rng.integers(30, size=(2, 60))
    both = joined(one, other)
    reached = np.eye(60, dtype=bool)
    for _ in range(60):  # the closure of "in one group by either"
        linked = (one[:, None] == one) | (other[:, None] == other)
        reached = reached @ linked
    assert (reached == (both[:, None] == both)).all()


def dataset_of(group, domain, y=None):
    n = len(group)
    y = np.arange(n) % 2 if y is None else y
    x = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    split = np.full(n, "train")
    return DomainDataset("made", x, y, np.array(domain), split, ("a", "b"), ("p", "q"), group=np.array(group))


def test_a_left_out_domain_shares_no_group_with_training():
    rng = np.random.default_rng(0)
    dataset = dataset_of(rng.integers(60, size=200), np.repeat([0, 1], 100))
    split = leave_one_domain_out(dataset, "q", (0, 0)).split
    tested, trained = (set(dataset.group[np.isin(split, parts)]) for parts in (["test"], ["train", "val"]))
    assert tested and trained and not tested & trained
    assert not set(dataset.group[split == "train"]) & set(dataset.group[split == "val"])


def test_label_profiles_leave_out_whole_groups():
    dataset = dataset_of(np.repeat(np.arange(20), 5), np.zeros(100, int), y=np.repeat([0, 1], 50))
    kept = apply_labels(dataset, ["step:5"], seed=0)
    sizes = np.bincount(kept.group[kept.y == 1], minlength=20)
    assert kept.counts("train")[0].tolist() == [50, 10] and sorted(sizes[sizes > 0]) == [5, 5]


def test_copies_and_look_alikes_stay_together(photos, tmp_path):
    root = photos(n=6)
    pictures = sorted(root.rglob("*.jpg"))
    (root / "photo/cat/copy.jpg").write_bytes(pictures[0].read_bytes())
    ImageOps.mirror(Image.open(pictures[20]).resize((80, 64))).save(root / "sketch/cat/larger.jpg")
    dataset = load(root)
    names, group = dataset.x.paths(), dataset.group
    for one, other in ((pictures[0], "photo/cat/copy.jpg"), (pictures[20], "sketch/cat/larger.jpg")):
        i, j = names.index(str(one.relative_to(root))), names.index(other)
        assert group[i] == group[j] and dataset.split[i] == dataset.split[j]
    assert len(set(group)) == len(dataset) - 2 and "2 groups" in dataset.notes[0]


def test_one_sample_per_pair_is_trained_on_and_said_so(photos):
    dataset = load(photos(n=1))
    assert dataset.counts("train").sum() == len(dataset) == 6 and "hold one out" in dataset.notes[0]


def test_data_without_duplicates_have_no_groups():
    assert with_duplicates(np.arange(6.0)[:, None], None) is None
    assert with_duplicates(np.arange(6.0)[:, None], np.array([0, 0, 1, 1, 2, 3])).tolist() == [0, 0, 1, 1, 2, 3]


def test_groups_in_several_domains_are_those_that_a_loop_finds():
    rng = np.random.default_rng(0)
    group, domain = rng.integers(0, 40, 100), rng.integers(0, 3, 100)
    expected = [g for g in range(40) if len(set(domain[group == g])) > 1]
    assert 0 < len(expected) < len(set(group))
    assert in_several(group, domain).tolist() == expected


def test_leaked_rows_are_test_samples_of_a_group_with_training_samples():
    rng = np.random.default_rng(1)
    group, split = rng.integers(0, 60, 100), rng.choice(["train", "val", "test"], 100)
    trained = set(group[split == "train"])
    expected = [row for row in range(100) if split[row] == "test" and group[row] in trained]
    assert 0 < len(expected) < (split == "test").sum()
    assert leaked(group, split).tolist() == expected

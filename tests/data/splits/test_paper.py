"""The paper's split, against the counts of the reference's own split files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosstail.data.splits.paper import paper_split


def split_counts(sizes, **options):
    sizes = np.asarray(sizes)
    domain, y = (np.repeat(a.ravel(), sizes.ravel()) for a in np.indices(sizes.shape))
    order = np.random.default_rng(0).permutation(len(y))
    y, domain = y[order], domain[order]
    split = paper_split(y, domain, **options)
    return [
        [
            [int(((split == part) & (domain == d) & (y == c)).sum()) for part in ("train", "val", "test")]
            for c in range(sizes.shape[1])
        ]
        for d in range(sizes.shape[0])
    ]


# (samples of the pair, validation) → train, val, test in VLCS, PACS, OfficeHome and TerraIncognita
REFERENCE = [
    (20, 15, (0, 6, 14)), (30, 15, (0, 10, 20)), (42, 15, (0, 14, 28)), (67, 15, (22, 15, 30)),
    (80, 25, (5, 25, 50)), (15, 5, (0, 5, 10)), (16, 5, (1, 5, 10)),
    (3, 10, (0, 1, 2)), (10, 10, (0, 3, 7)), (12, 10, (0, 4, 8)), (21, 10, (0, 7, 14)), (28, 10, (0, 9, 19)),
    (48, 10, (18, 10, 20)),
]  # fmt: skip


@pytest.mark.parametrize(("size", "validation", "expected"), REFERENCE)
def test_counts_of_the_reference(size, validation, expected):
    assert split_counts([[size]], validation=validation) == [[list(expected)]]


@given(st.integers(0, 200), st.integers(1, 30))
def test_every_sample_is_used_once_in_proportion(size, validation):
    ((train, val, test),) = split_counts([[size]], validation=validation)[0]
    assert train + val + test == size
    assert 2 * val <= test <= 2 * val + 2
    assert train == max(0, size - 3 * validation)


def test_each_pair_for_itself_and_absent_pairs():
    table = split_counts([[100, 0, 7], [40, 1, 30]], validation=10)
    assert table == [[[70, 10, 20], [0, 0, 0], [0, 2, 5]], [[10, 10, 20], [0, 0, 1], [0, 10, 20]]]


def test_deterministic_and_different_by_seed():
    y, domain = np.repeat([0, 1], 50), np.zeros(100, np.int64)
    first, again, other = (paper_split(y, domain, seed=seed, validation=5) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()


def test_a_pair_does_not_depend_on_the_others():
    """Adding a domain leaves the split of the first one alone."""
    y = np.repeat([0, 1], 50)
    alone = paper_split(y, np.zeros(100, np.int64), validation=5, seed=4)
    both = paper_split(np.tile(y, 2), np.repeat([0, 1], 100), validation=5, seed=4)
    assert (both[:100] == alone).all()


def test_no_samples():
    assert len(paper_split(np.zeros(0, np.int64), np.zeros(0, np.int64), validation=1)) == 0


def test_validation_of_nothing_is_refused():
    with pytest.raises(ValueError, match="validation is 0 samples per pair, expected 1 or more"):
        split_counts([[10]], validation=0)

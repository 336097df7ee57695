"""Groups that lie on both sides of a split, or in several domains."""

import numpy as np

from crosstail.data.splits.leaks import in_several, leaked


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

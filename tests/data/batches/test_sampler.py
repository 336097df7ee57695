"""The sampler for DataLoaders: every pair equally often, every sample of a pair equally often."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from crosstail.data import PairBalancedSampler

Y = np.repeat([0, 1, 0, 1], [40, 3, 1, 12])
DOMAIN = np.repeat(["p", "p", "q", "q"], [40, 3, 1, 12])


def test_pairs_and_samples_are_equally_frequent():
    rows = list(PairBalancedSampler(Y, DOMAIN, num_samples=4 * 120))
    seen = Counter()
    for i, row in enumerate(rows):
        seen[Y[row], DOMAIN[row]] += 1
        if i % 4 == 3:  # every four rows hold each pair once
            assert set(seen.values()) == {i // 4 + 1} and len(seen) == 4
    times = np.bincount(rows, minlength=len(Y))
    assert times.tolist() == [3] * 40 + [40] * 3 + [120] + [10] * 12


def test_epochs_follow_each_other_and_depend_on_the_seed():
    sampler = PairBalancedSampler(Y, DOMAIN, num_samples=50)
    epochs = [list(sampler) for _ in range(3)]
    assert [*epochs[0], *epochs[1], *epochs[2]] == list(PairBalancedSampler(Y, DOMAIN, num_samples=150))
    sampler.set_epoch(1)
    assert list(sampler) == epochs[1]
    assert list(PairBalancedSampler(Y, DOMAIN, num_samples=50, seed=1)) != epochs[0]


def test_feeds_a_data_loader():
    data = TensorDataset(torch.arange(len(Y)), torch.from_numpy(Y))
    sampler = PairBalancedSampler(torch.from_numpy(Y), list(DOMAIN))
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    first, second = (torch.cat([x for x, _ in loader]).tolist() for _ in range(2))
    assert len(sampler) == len(first) == len(second) == 56 == 8 * len(loader) and first != second
    assert set(Counter(zip(Y[first].tolist(), DOMAIN[first].tolist(), strict=True)).values()) == {14}


@pytest.mark.parametrize(
    ("y", "domain", "words", "sentence"),
    [
        ([0, 1], [0], {}, "y has 2 labels and domain 1"),
        ([], [], {}, "y has 0 labels"),
        ([0], [0], {"num_samples": 0}, "num_samples is 0"),
    ],
)
def test_mistakes_get_a_sentence(y, domain, words, sentence):
    with pytest.raises(ValueError, match=sentence):
        PairBalancedSampler(y, domain, **words)

"""Dropout on the features: every algorithm has it, and it is searched when a pretrained network is finetuned."""

import pytest
import torch

from crosstail import algorithms, discovery

NAMES = discovery.names("crosstail.algorithms")


def features_of(algorithm, batch, seed=3):
    torch.manual_seed(seed)
    z, _ = algorithm.features(batch)
    return z


def test_features_are_dropped_and_the_others_scaled_in_training_only(tiny, samples):
    algorithm, batch = tiny("erm", dropout=0.3), samples(0)
    plain = algorithm.backbone(batch.x).detach()
    torch.manual_seed(3)
    pairs = zip(plain.flatten().tolist(), torch.rand(plain.shape).flatten().tolist(), strict=True)
    expected = torch.tensor([value / 0.7 if drawn >= 0.3 else 0.0 for value, drawn in pairs]).to(plain)
    torch.testing.assert_close(features_of(algorithm, batch).detach().flatten(), expected)
    assert torch.equal(features_of(algorithm.eval(), batch), plain)


def test_without_it_no_random_number_is_drawn(tiny, samples):
    algorithm, batch = tiny("erm"), samples(0)
    assert algorithm.hparams.dropout == 0
    before = torch.get_rng_state()
    assert torch.equal(algorithm.features(batch)[0], algorithm.backbone(batch.x))
    assert torch.equal(torch.get_rng_state(), before)


def test_chunks_drop_the_same_features(tiny, samples):
    algorithm, batch = tiny("erm", dropout=0.5), samples(0)
    whole = features_of(algorithm, batch)
    algorithm.chunks = 3
    torch.testing.assert_close(features_of(algorithm, batch), whole)


def test_a_step_is_that_of_the_dropped_features(tiny, samples, train, hand, hand_adam):
    algorithm, batch = tiny("erm", lr=0.02, dropout=0.5), samples(0)
    by_hand, adam = hand(algorithm), hand_adam(0.02)
    train(algorithm, [batch], seed=5)
    torch.manual_seed(5)
    z = by_hand.features(batch.x)
    z = 2 * z * (torch.rand(z.shape) >= 0.5)
    loss = by_hand.cross_entropy(by_hand.linear("head", z), batch.y)
    by_hand.p = adam.step(by_hand.p, by_hand.gradients(loss, "backbone", "head"))
    by_hand.assert_equal(algorithm)


@pytest.mark.parametrize("name", [*NAMES, "boda+coral", "boda@reference"])
def test_every_algorithm_trains_on_dropped_features(name, tiny, samples, train):
    found = []
    for dropout in (0.0, 0.5):
        algorithm = tiny(name, dropout=dropout)
        algorithm.step, algorithm.steps = 600, 1000  # after pre-training and warm-ups
        train(algorithm, [samples(0)])
        found.append(torch.cat([p.detach().flatten() for p in algorithm.parameters()]))
    assert not torch.equal(*found)


def test_it_is_searched_in_the_papers_values_where_a_pretrained_network_is_finetuned():
    for name in NAMES:
        declared = algorithms.find(name).Hparams
        plain, finetuned = ([algorithms.draw(declared, t, finetune=f) for t in range(40)] for f in (False, True))
        assert all("dropout" not in drawn for drawn in plain)
        assert finetuned[0]["dropout"] == 0 and {drawn["dropout"] for drawn in finetuned} == {0.0, 0.1, 0.5}


@pytest.mark.parametrize("value", [1.0, -0.1])
def test_a_share_that_is_none_is_refused(value, tiny):
    with pytest.raises(ValueError, match=f"dropout is {value}"):
        tiny("erm", dropout=value)

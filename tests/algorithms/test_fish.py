"""Fish against its formula."""

import pytest
import torch


def update_by_hand(by_hand, adam, batch, meta_lr):
    """The paper's algorithm 1, with Adam for the steps within a round."""
    domains, found = batch.domain.unique().tolist(), []
    before = by_hand.p
    for k in torch.randperm(len(domains)).tolist():
        rows = batch.domain == domains[k]
        found.append(by_hand.cross_entropy(by_hand.linear("head", by_hand.features(batch.x[rows])), batch.y[rows]))
        by_hand.p = adam.step(by_hand.p, by_hand.gradients(found[-1], ""))
    by_hand.p = {name: (p + meta_lr * (by_hand.p[name] - p)).detach().requires_grad_() for name, p in before.items()}
    return sum(found) / len(found)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("domains", [(0, 1, 2), (0, 2), tuple(range(12))])
def test_updates_are_those_of_the_formula(steps, domains, tiny, samples, train, hand, hand_adam):
    batches = [samples(seed, domains) for seed in range(steps)]
    algorithm = tiny("fish", [[9, 9, 9]] * 12, lr=0.02, weight_decay=0.1, meta_lr=0.3)
    by_hand, adam = hand(algorithm), hand_adam(0.02, weight_decay=0.1)
    terms = train(algorithm, batches, seed=5)
    torch.manual_seed(5)
    for batch, found in zip(batches, terms, strict=True):
        assert list(found) == ["cross_entropy"]
        expected = update_by_hand(by_hand, adam, batch, 0.3)
        assert found["cross_entropy"].item() == pytest.approx(expected.item(), rel=1e-9)
    by_hand.assert_equal(algorithm)


def test_a_meta_learning_rate_of_0_stays(tiny, samples, train):
    algorithm, start = tiny("fish", meta_lr=0.0), tiny("fish")
    train(algorithm, [samples(0)])
    assert all(torch.equal(a, b) for a, b in zip(algorithm.parameters(), start.parameters(), strict=True))

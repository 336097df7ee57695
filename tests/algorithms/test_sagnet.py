"""SagNet against its formulas, with loops over samples."""

import pytest
import torch


def style(z):
    mean = z.sum() / len(z)
    return mean, (((z - mean) ** 2).sum() / len(z) + 1e-5) ** 0.5


def content(z):
    mean, deviation = style(z)
    return (z - mean) / deviation


def style_randomised(z):
    other, alpha = torch.randperm(len(z)).tolist(), torch.rand(len(z), 1)
    rows = []
    for n, a in enumerate(alpha[:, 0].double()):
        (mean, deviation), (mean_2, deviation_2) = style(z[n]), style(z[other[n]])
        rows.append(content(z[n]) * (a * deviation + (1 - a) * deviation_2) + a * mean + (1 - a) * mean_2)
    return torch.stack(rows)


def content_randomised(z):
    other, rows = torch.randperm(len(z)).tolist(), []
    for n in range(len(z)):
        mean, deviation = style(z[n])
        rows.append(content(z[other[n]]).detach() * deviation + mean)
    return torch.stack(rows)


def update_by_hand(by_hand, adam, batch, weight):
    """The three steps of the paper's algorithm 1; the moments of one Adam per parameter."""
    z = style_randomised(by_hand.features(batch.x))
    cross_entropy = by_hand.cross_entropy(by_hand.linear("head", z), batch.y)
    by_hand.p = adam.step(by_hand.p, by_hand.gradients(cross_entropy, "backbone", "head"))
    z = content_randomised(by_hand.features(batch.x))
    told = by_hand.cross_entropy(by_hand.linear("style", z), batch.y)
    by_hand.p = adam.step(by_hand.p, by_hand.gradients(told, "style"))
    scores = by_hand.linear("style", z)
    uniform = sum(torch.logsumexp(s, 0) - s[k] for s in scores for k in range(3)) / (3 * len(scores))
    by_hand.p = adam.step(by_hand.p, by_hand.gradients(weight * uniform, "backbone"))
    return {"cross_entropy": cross_entropy, "style": told, "adversary": weight * uniform}


@pytest.mark.parametrize("steps", [1, 3])
def test_updates_are_those_of_the_formulas(steps, tiny, samples, train, hand, hand_adam):
    batches = [samples(seed) for seed in range(steps)]
    algorithm = tiny("sagnet", lr=0.02, weight_decay=0.1, adversary=0.7)
    by_hand, adam = hand(algorithm), hand_adam(0.02, weight_decay=0.1)
    terms = train(algorithm, batches, seed=5)
    torch.manual_seed(5)
    for batch, found in zip(batches, terms, strict=True):
        expected = update_by_hand(by_hand, adam, batch, 0.7)
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert found[key].item() == pytest.approx(value.item(), rel=1e-9), key
    by_hand.assert_equal(algorithm)


def test_the_backbone_runs_twice(tiny, samples, train):
    algorithm, calls = tiny("sagnet"), []
    algorithm.backbone.register_forward_hook(lambda *args: calls.append(1))
    train(algorithm, [samples(0)])
    assert len(calls) == 2 == algorithm.passes


def test_boda_aligns_the_features_as_they_are(tiny, samples):
    """Only the classifier sees mixed styles: the alignment term is that of boda alone."""
    algorithm, alone, batch = tiny("boda+sagnet"), tiny("boda"), samples(0)
    z = algorithm.backbone(batch.x)
    found, expected = algorithm.losses(z, batch), alone.losses(z, batch)
    assert found["alignment"] == expected["alignment"] != 0
    assert found["cross_entropy"] != expected["cross_entropy"]

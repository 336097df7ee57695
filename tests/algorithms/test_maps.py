"""Algorithms that change feature maps in the middle of the backbone, and ARM's contexts at prediction."""

import pytest
import torch

from crosstail import algorithms, backbones, testing
from crosstail.algorithms import Task
from crosstail.data import DomainBatch

COUNTS = Task(torch.full((2, 3), 9))


def batch_of(x):
    return DomainBatch(x, torch.arange(len(x)) % 3, torch.arange(2).repeat_interleave(len(x) // 2))


def test_mixstyle_gives_a_channel_the_statistics_between_those_of_two_samples():
    algorithm = algorithms.build("mixstyle", backbones.build("mlp", (4,), 8), COUNTS, {"probability": 1.0})
    maps = torch.randn(6, 3, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.manual_seed(1)
    found = algorithm.change(maps)
    torch.manual_seed(1)
    torch.rand(())
    others = torch.randperm(6).tolist()
    shares = torch.distributions.Beta(0.1, 0.1).sample((6, 1, 1, 1)).double()[:, 0, 0, 0].tolist()
    for i, (other, share) in enumerate(zip(others, shares, strict=True)):
        for k in range(3):
            own, its = maps[i, k].flatten().tolist(), maps[other, k].flatten().tolist()
            means = [sum(values) / 20 for values in (own, its)]
            spreads = [
                (sum((v - m) ** 2 for v in values) / 20 + 1e-6) ** 0.5
                for values, m in zip((own, its), means, strict=True)
            ]
            spread = share * spreads[0] + (1 - share) * spreads[1]
            middle = share * means[0] + (1 - share) * means[1]
            expected = torch.tensor([(v - means[0]) / spreads[0] * spread + middle for v in own])
            torch.testing.assert_close(found[i, k].flatten(), expected, check_dtype=False, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["small_cnn", "timm:resnet10t", "timm:convnext_atto"])
def test_maps_change_after_two_layers_in_training_and_never_in_prediction(name):
    shape, seen = (3, 32, 32), []
    options = {"weights": "random", "resolution": 32} if name.startswith("timm") else {"width": 8}
    algorithm = algorithms.build("mixstyle", backbones.build(name, shape, **options), COUNTS).train()
    algorithm.change = lambda maps: seen.append(maps.shape) or 0 * maps
    x = torch.rand(4, *shape)
    z, _ = algorithm.features(batch_of(x))
    sides = [32, 16] if name == "small_cnn" else [8, 4]
    assert [size[2:] for size in seen] == [(side, side) for side in sides]
    torch.testing.assert_close(z, z[:1].expand_as(z))  # nothing of the images is left
    algorithm.eval()
    plain, _ = algorithm.features(batch_of(x))
    assert len(seen) == 2 and not torch.allclose(plain, plain[:1].expand_as(plain))
    torch.testing.assert_close(plain, algorithm.backbone(x))


def test_chunks_change_maps_again_when_they_are_recomputed():
    algorithm = algorithms.build("mixstyle", backbones.build("mlp", (4,), 8), COUNTS, {"probability": 1.0}).train()
    algorithm.chunks = 2
    torch.manual_seed(0)
    (terms,) = [algorithm.update(batch_of(torch.randn(6, 4)), algorithm.optimizers(), torch.Tensor.backward)]
    assert terms["cross_entropy"].isfinite()


@pytest.mark.parametrize(("name", "shape"), [("identity", (4,)), ("timm:vit_tiny_patch16_224", (3, 224, 224))])
def test_a_backbone_without_maps_is_refused(name, shape):
    backbone = backbones.build(name, shape, weights="random" if name.startswith("timm") else None)
    with pytest.raises(ValueError, match=r"mixstyle changes feature maps .* small_cnn"):
        algorithms.build("mixstyle", backbone, COUNTS)


def test_arm_predicts_with_the_mean_context_of_training_or_that_of_the_domain():
    algorithm = algorithms.build("arm", backbones.build("mlp", (4,), 5), Task(torch.tensor([[5, 5], [5, 5], [0, 0]])))
    contexts = {}
    for step in range(3):
        batch = DomainBatch(torch.randn(4, 4), torch.tensor([0, 1, 1, 0]), torch.tensor([0, 0, 1, 1]))
        z = algorithm.backbone(batch.x)
        algorithm.losses(z, batch)
        for d in (0, 1):
            now = torch.stack([algorithm.context(row) for row in z[batch.domain == d]]).mean(0)
            contexts[d] = 0.9 * contexts[d] + 0.1 * now if step else now
    row, unknown = z[0], (contexts[0] + contexts[1]) / 2
    found = algorithm.scores(z[[0, 0, 0]], torch.tensor([0, 1, 2]))
    for scores, context in zip(found, (contexts[0], contexts[1], unknown), strict=True):
        torch.testing.assert_close(scores, algorithm.head(torch.cat([row, context])))
    torch.testing.assert_close(algorithm.scores(z)[0], found[2])


def test_arm_is_exported_with_its_contexts():
    testing.check_stored("arm")

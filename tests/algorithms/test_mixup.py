import pytest
import torch

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch


def build(domains, size=2, name="mixup", **hparams):
    """A model whose data have one more domain, which is unseen."""
    torch.manual_seed(0)
    counts = torch.tensor([[9, 4, 2] if d in domains else [0, 0, 0] for d in range(max(domains) + 2)])
    backbone = backbones.build("mlp", (len(domains) * size,), 5)
    return algorithms.build(name, backbone, Task(counts), hparams).double().train()


def make_batch(domains, size=2):
    """Sample i is the i-th unit vector, so that a mixture shows what it is made of."""
    domain = torch.tensor(domains).repeat_interleave(size)
    return DomainBatch(torch.eye(len(domain), dtype=torch.float64), torch.arange(len(domain)) % 3, domain)


@pytest.mark.parametrize("domains", [(0, 1), (0, 2, 3), tuple(range(12))])
def test_samples_in_the_same_place_of_two_domains_are_mixed(domains):
    k, algorithm, batch, partners = len(domains), build(domains, alpha=3.0), make_batch(domains), set()
    for seed in range(60):
        torch.manual_seed(seed)
        x, y = algorithm.mix(batch)
        assert x.shape == batch.x.shape and y.shape == (2 * k, 3)
        by_place = x.view(k, 2, k, 2)  # mixtures and their places, then domains and their places
        assert not by_place[:, 0, :, 1].any() and not by_place[:, 1, :, 0].any()
        table = by_place[:, 0, :, 0]
        assert torch.equal(by_place[:, 1, :, 1], table)  # one share for all samples of two domains
        assert ((table > 0).sum(0) == 2).all() and ((table > 0).sum(1) == 2).all()
        assert len(table[table > 0].unique()) == 2 * k  # and no share twice
        torch.testing.assert_close(table.sum(1), torch.ones(k, dtype=torch.float64))
        partners |= {tuple(row.nonzero().flatten().tolist()) for row in table}
        for row, label in zip(x, y, strict=True):
            expected = torch.zeros(3, dtype=torch.float64)
            for i in range(2 * k):
                expected[batch.y[i]] += row[i]
            torch.testing.assert_close(label, expected)
    assert len(partners) == k * (k - 1) // 2  # every two domains meet


@pytest.mark.parametrize("alpha", [0.2, 2.0])
def test_the_shares_are_beta_distributed(alpha):
    algorithm, batch = build((0, 1, 2), alpha=alpha), make_batch((0, 1, 2))
    shares = torch.stack([algorithm.mix(batch)[0].view(3, 2, 3, 2)[:, 0, :, 0].amax(1) for _ in range(500)])
    assert (shares - 0.5).square().mean().item() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.1)


def test_images_are_mixed_too():
    torch.manual_seed(0)
    algorithm = algorithms.build("mixup", backbones.build("small_cnn", (3, 32, 32), 8), Task(torch.ones(2, 3)))
    batch = DomainBatch(torch.zeros(4, 3, 32, 32), torch.tensor([0, 1, 2, 0]), torch.tensor([0, 0, 1, 1]))
    batch.x[2:] = 1
    x, y = algorithm.mix(batch)
    share = x[:, 0, 0, 0]
    assert torch.equal(x, share[:, None, None, None].expand_as(x)) and share[0] == share[1] and share[2] == share[3]
    torch.testing.assert_close(y[0, 2], share[0])  # classes 0 and 2
    assert algorithm.update(batch, algorithm.optimizers(), torch.Tensor.backward)["cross_entropy"].isfinite()


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="mixup compares domains and needs 2 that have training data; the data have 1"):
        build((0,))
    with pytest.raises(ValueError, match=r"boda\+mixup: Mixup"):
        build((0, 1), name="boda+mixup")

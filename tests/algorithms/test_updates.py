from copy import deepcopy

import pytest
import torch

from crosstail.algorithms._base import slopes
from crosstail.algorithms._processes import backward_of
from crosstail.data import DomainBatch
from crosstail.losses.host import in_full_precision

NAMES = ["dann", "cdann", "sagnet", "mldg", "fish", "sand_mask", "sam", "sagm", "urm", "lff"]


@pytest.mark.parametrize("name", [*NAMES, "boda+dann"])
def test_weights_optimizers_and_random_state_are_all_that_a_run_needs_to_go_on(name, tiny, samples):
    whole = tiny(name, lr=0.01)
    optimizers = whole.optimizers()
    torch.manual_seed(5)
    for step in range(2):
        whole.update(samples(step), optimizers, torch.Tensor.backward)
    continued = tiny(name, seed=1, lr=0.01)
    continued.load_state_dict(whole.state_dict())
    restored = continued.optimizers()
    for optimizer, other in zip(restored, optimizers, strict=True):
        optimizer.load_state_dict(deepcopy(other.state_dict()))
    random = torch.get_rng_state()
    for algorithm, its in ((whole, optimizers), (continued, restored)):
        torch.set_rng_state(random)
        for step in (2, 3):
            algorithm.update(samples(step), its, torch.Tensor.backward)
    assert all(torch.equal(value, continued.state_dict()[key]) for key, value in whole.state_dict().items())


class Scaled:
    """An optimizer behind a loss scale, as in mixed precision: it takes the factor out of the gradients."""

    def __init__(self, optimizer):
        self.optimizer, self.zero_grad = optimizer, optimizer.zero_grad

    def step(self):
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad /= 1024
        self.optimizer.step()


@pytest.mark.parametrize("name", NAMES)
def test_a_loss_scale_changes_nothing(name, tiny, samples, train):
    plain, scaled, batches = tiny(name, lr=0.01), tiny(name, lr=0.01), [samples(0), samples(1)]
    train(plain, batches, seed=5)
    optimizers = [Scaled(optimizer) for optimizer in scaled.optimizers()]
    torch.manual_seed(5)
    for batch in batches:
        scaled.update(batch, optimizers, lambda loss: (1024 * loss).backward())
    for value, expected in zip(scaled.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(value, expected)


@pytest.mark.parametrize("name", [*NAMES, "boda+fish"])
def test_in_mixed_precision_every_pass_sees_the_weights_of_its_moment(name, tiny, samples, train):
    """Autocast keeps its casts of the weights until it ends, and an update changes weights before that."""
    found = []
    for kept in (True, False):
        algorithm, batch = tiny(name, lr=0.1).float(), samples(0)
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=kept):
            train(algorithm, [DomainBatch(batch.x.float(), batch.y, batch.domain)])
        found.append(algorithm.state_dict())
    assert all(torch.equal(value, found[1][key]) for key, value in found[0].items())


@pytest.mark.parametrize(
    "by", [backward_of(torch.nn.Module(), torch.Tensor.backward), None], ids=["backward", "slopes"]
)
def test_gradients_of_a_term_in_full_precision_are_in_full_precision(by):
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.rand(20, 8, generator=generator) for _ in range(2))
    expected = 2 * (x @ y.T) @ y
    with torch.autocast("cpu", torch.bfloat16):
        z = x.clone().requires_grad_()
        with in_full_precision(z):
            loss = (z @ y.T).square().sum()
        if by:
            by(loss)
        found = z.grad if by else slopes(loss, [z])[0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_terms_of_boda_come_on_top(name, tiny, samples, train):
    """Without weight they change nothing; with it, every step is another one."""
    batch = samples(0)
    plain, zero, with_boda = tiny(name), tiny(f"boda+{name}", weight=0.0), tiny(f"boda+{name}")
    terms, _, found = (train(algorithm, [batch])[0] for algorithm in (plain, zero, with_boda))
    assert set(found) == {*terms, "alignment"} and found["alignment"] != 0
    weights = [torch.cat([p.flatten() for p in a.backbone.parameters()]) for a in (plain, zero, with_boda)]
    torch.testing.assert_close(weights[0], weights[1])
    assert not torch.allclose(weights[0], weights[2], atol=1e-5)


@pytest.mark.parametrize("name", ["dann", "cdann", "mldg", "fish"])
def test_one_domain_is_refused(name, tiny):
    with pytest.raises(ValueError, match=f"{name} compares domains and needs 2 that have training data"):
        tiny(name, [[3, 4, 5], [0, 0, 0]])


def test_sagnet_takes_one_domain(tiny, samples, train):
    (terms,) = train(tiny("sagnet", [[3, 4, 5]]), [samples(0, (0,))])
    assert all(torch.isfinite(value) for value in terms.values())

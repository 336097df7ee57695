"""What the methods that compare domains have in common; test_parity.py has their update rules."""

from copy import deepcopy

import pytest
import torch

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch
from crosstail.training.devices import Devices, fabric_of

HPARAMS = {
    "coral": {"gamma": 0.7},
    "mmd": {"gamma": 0.7},
    "irm": {"penalty": 20.0, "anneal": 3},
    "group_dro": {"eta": 0.3},
    "mtl": {"ema": 0.8},
    "vrex": {"anneal": 3},
    "eqrm": {"anneal": 3},
    "fishr": {"anneal": 3},
    "rdm": {"anneal": 3},
    "ib_erm": {"anneal": 3},
    "ib_irm": {"anneal": 3},
    "cad": {},
    "cond_cad": {},
    "transfer": {},
    "ridg": {},
}


def build(name, num_domains=3, trained_on=(0, 1, 2), seed=0, **hparams):
    torch.manual_seed(seed)
    counts = torch.tensor([[9, 4, 2] if d in trained_on else [0, 0, 0] for d in range(num_domains)])
    hparams = {"lr": 0.05, **HPARAMS.get(name.split("+")[-1], {}), **hparams}
    return algorithms.build(name, backbones.build("mlp", (4,), 5), Task(counts), hparams).double().train()


def make_batch(seed, domains=(0, 1, 2), size=5):
    generator = torch.Generator().manual_seed(seed)
    domain = torch.tensor(domains).repeat_interleave(size)
    x = torch.randn(len(domain), 4, generator=generator, dtype=torch.float64) + domain[:, None] / 3
    return DomainBatch(x, torch.randint(3, domain.shape, generator=generator), domain)


def update(algorithm, step, batch, optimizers):
    algorithm.step = step
    return algorithm.update(batch, optimizers, torch.Tensor.backward)


@pytest.mark.parametrize("name", HPARAMS)
def test_a_step_is_one_forward_pass(name):
    algorithm, calls = build(name), []
    algorithm.backbone.register_forward_hook(lambda *args: calls.append(1))
    update(algorithm, 0, make_batch(0), algorithm.optimizers())
    assert calls == [1]


@pytest.mark.parametrize("name", HPARAMS)
def test_one_sample_per_domain_gives_finite_gradients(name):
    algorithm = build(name)
    optimizers = algorithm.optimizers()
    for step in range(5):
        terms = update(algorithm, step, make_batch(step, size=1), optimizers)
        assert all(term.isfinite() for term in terms.values())
        assert all(p.grad.isfinite().all() for p in algorithm.parameters())


@pytest.mark.parametrize("name", ["coral", "mmd", "irm", "group_dro"])
def test_one_domain_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} compares domains and needs 2 that have training data; the data have"):
        build(name, trained_on=(1,))


@pytest.mark.parametrize("name", ["erm", "coral"])
def test_data_without_training_samples_are_named_as_such(name):
    with pytest.raises(ValueError, match="no training samples") as error:
        algorithms.build(name, backbones.build("mlp", (4,)), Task(torch.zeros(2, 3)))
    assert "erm" not in str(error.value)


@pytest.mark.parametrize("name", HPARAMS)
def test_bodas_term_can_be_added(name):
    both, own, boda = build(f"boda+{name}", weight=0.4), build(name), build("boda", weight=0.4)
    for step in range(2):
        batch = make_batch(step)
        found, terms, added = (a.losses(a.backbone(batch.x), batch) for a in (both, own, boda))
        assert found == terms | {"alignment": added["alignment"]} and added["alignment"] > 0
    update(both, 0, make_batch(0), both.optimizers())
    assert both(make_batch(1).x).shape == (15, 3)


@pytest.mark.parametrize("name", HPARAMS)
def test_a_restored_run_goes_on_identically(name):
    algorithm, restored = build(name), build(name, seed=1)
    optimizers, others = algorithm.optimizers(), restored.optimizers()
    for step in range(6):
        if step == 2:
            restored.load_state_dict(algorithm.state_dict())
            others[0].load_state_dict(deepcopy(optimizers[0].state_dict()))
        terms = update(algorithm, step, make_batch(step), optimizers)
        if step >= 2:
            assert update(restored, step, make_batch(step), others) == terms
    pairs = zip(algorithm.state_dict().values(), restored.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_irm_restarts_adam_behind_the_wrapper_of_the_loop_also_after_a_resume():
    algorithm = build("irm", anneal=3)
    (adam,) = algorithm.optimizers()
    wrapped = fabric_of(Devices("cpu"), "32").setup_optimizers(adam)
    taken = []
    for step in range(5):
        adam.load_state_dict(adam.state_dict())
        update(algorithm, step, make_batch(step), [wrapped])
        taken.append({int(state["step"]) for state in adam.state.values()})
    assert taken == [{1}, {2}, {3}, {1}, {2}]


def test_group_dro_gives_all_weight_to_the_worst_domain_without_overflow():
    algorithm = build("group_dro", 4, (0, 2, 3), eta=10.0)
    with torch.no_grad():
        algorithm.head.weight *= 1e4
    batch = make_batch(0, (0, 2, 3))
    z = algorithm.backbone(batch.x)
    losses = torch.nn.functional.cross_entropy(algorithm.head(z), batch.y, reduction="none").view(3, 5).mean(1)
    assert losses.max() > 1e3
    torch.testing.assert_close(algorithm.losses(z, batch)["group_dro"], losses.max())
    q = algorithm.log_q.exp()
    assert q.argmax() == (0, 2, 3)[losses.argmax()] and q.sum() == 1 and q[1] == 0


def test_mtl_predicts_with_the_mean_embedding_of_the_domains_it_has_met():
    algorithm, x = build("mtl", 4, (0, 2, 3)), make_batch(9).x
    z = algorithm.backbone(x)
    torch.testing.assert_close(algorithm(x), algorithm.head(torch.cat([z, torch.zeros_like(z)], 1)))
    optimizers = algorithm.optimizers()
    for step in range(3):
        update(algorithm, step, make_batch(step, (0, 2, 3)), optimizers)
    embedding = algorithm.domain_embedding[[0, 2, 3]].mean(0)
    before = {key: value.clone() for key, value in algorithm.state_dict().items()}
    for row, scores in zip(x, algorithm(x), strict=True):
        torch.testing.assert_close(algorithm.head(torch.cat([algorithm.backbone(row), embedding])), scores)
    assert all(torch.equal(value, before[key]) for key, value in algorithm.state_dict().items())


@pytest.mark.parametrize("name", ["mtl", "boda+mtl"])
def test_mtl_predicts_with_the_embedding_of_the_domain_where_it_is_known(name):
    algorithm, x = build(name, 4, (0, 2, 3)), make_batch(9).x
    optimizers = algorithm.optimizers()
    for step in range(3):
        update(algorithm, step, make_batch(step, (0, 2, 3)), optimizers)
    assert algorithm.uses_domain
    domain = torch.arange(len(x)) % 4
    for row, d, scores in zip(x, domain, algorithm(x, domain), strict=True):
        embedding = algorithm.domain_embedding[d] if d != 1 else algorithm.domain_embedding[[0, 2, 3]].mean(0)
        torch.testing.assert_close(algorithm.head(torch.cat([algorithm.backbone(row), embedding])), scores)

"""CORAL, MMD, IRM, GroupDRO and MTL against loops over domains, pairs of domains and samples, in float64."""

import math
from copy import deepcopy
from itertools import combinations

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
}
CASES = {  # how many domains there are, which of them are trained on, samples of each in a batch, steps
    "all seen": (3, (0, 1, 2), 5, 5),
    "one unseen": (4, (0, 2, 3), 4, 5),
    "two of twelve unseen": (12, (0, 1, 2, 3, 4, 5, 7, 8, 9, 11), 2, 2),
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


def groups(values, batch):
    """{domain: its samples' values}, one by one."""
    found = {}
    for value, d in zip(values, batch.domain.tolist(), strict=True):
        found.setdefault(d, []).append(value)
    return found


def mean(values):
    return sum(values) / len(values)


def mean_cross_entropy(scores, labels):
    return mean([s.exp().sum().log() - s[c] for s, c in zip(scores, labels, strict=True)])


def coral(model, z, batch, step, memory):
    def covariance(rows):
        return sum(torch.outer(row - mean(rows), row - mean(rows)) for row in rows) / (len(rows) - 1)

    penalties = [
        (mean(a) - mean(b)).square().mean() + (covariance(a) - covariance(b)).square().mean()
        for a, b in combinations(groups(z, batch).values(), 2)
    ]
    return mean_cross_entropy(model.head(z), batch.y) + 0.7 * mean(penalties)


def mmd(model, z, batch, step, memory):
    def kernel(a, b):
        return mean([sum((-(10.0**k) * (u - v).square().sum()).exp() for k in range(-3, 4)) for u in a for v in b])

    penalties = [kernel(a, a) + kernel(b, b) - 2 * kernel(a, b) for a, b in combinations(groups(z, batch).values(), 2)]
    return mean_cross_entropy(model.head(z), batch.y) + 0.7 * mean(penalties)


def irm(model, z, batch, step, memory):
    penalties, labels = [], groups(batch.y, batch)
    for d, rows in groups(z, batch).items():
        scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        halves = [
            mean_cross_entropy([scale * model.head(row) for row in rows[half::2]], labels[d][half::2])
            for half in (0, 1)
        ]
        first, second = (torch.autograd.grad(risk, scale, create_graph=True)[0] for risk in halves)
        penalties.append(first * second)
    return mean_cross_entropy(model.head(z), batch.y) + (20.0 if step >= 2.5 else 1.0) * mean(penalties)


def group_dro(model, z, batch, step, memory):
    labels = groups(batch.y, batch)
    losses = {d: mean_cross_entropy(map(model.head, rows), labels[d]) for d, rows in groups(z, batch).items()}
    q = {d: memory.get(d, 1.0) * math.exp(0.3 * loss.item()) for d, loss in losses.items()}
    memory.update({d: value / sum(q.values()) for d, value in q.items()})
    return sum(memory[d] * loss for d, loss in losses.items())


def mtl(model, z, batch, step, memory):
    losses, labels = [], groups(batch.y, batch)
    for d, rows in groups(z, batch).items():
        embedding = 0.8 * mean(rows) + 0.2 * memory[d] if d in memory else mean(rows)
        memory[d] = embedding.detach()
        losses.append(mean_cross_entropy([model.head(torch.cat([row, embedding])) for row in rows], labels[d]))
    return mean(losses)


ORACLES = {oracle.__name__: oracle for oracle in (coral, mmd, irm, group_dro, mtl)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ORACLES)
def test_losses_gradients_and_steps_are_those_of_the_loops(name, case):
    num_domains, trained_on, size, steps = CASES[case]
    algorithm, slow = build(name, num_domains, trained_on), build(name, num_domains, trained_on)
    optimizers, memory = algorithm.optimizers(), {}
    for step in range(steps):
        batch = make_batch(step, trained_on, size)
        terms = update(algorithm, step, batch, optimizers)
        if step == 0 or (name == "irm" and step == 3):  # the first step after 2.5
            adam = torch.optim.Adam(slow.parameters(), lr=0.05)
        adam.zero_grad()
        expected = ORACLES[name](slow, slow.backbone(batch.x), batch, step, memory)
        expected.backward()
        torch.testing.assert_close(sum(terms.values()), expected, rtol=1e-9, atol=1e-12)
        for found, wanted in zip(algorithm.parameters(), slow.parameters(), strict=True):
            assert wanted.grad.abs().max() > 1e-6
            torch.testing.assert_close(found.grad, wanted.grad, rtol=1e-7, atol=1e-10)
        adam.step()
        for found, wanted in zip(algorithm.parameters(), slow.parameters(), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", ORACLES)
def test_a_step_is_one_forward_pass(name):
    algorithm, calls = build(name), []
    algorithm.backbone.register_forward_hook(lambda *args: calls.append(1))
    update(algorithm, 0, make_batch(0), algorithm.optimizers())
    assert calls == [1]


@pytest.mark.parametrize("name", ORACLES)
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


@pytest.mark.parametrize("name", ORACLES)
def test_bodas_term_can_be_added(name):
    both, own, boda = build(f"boda+{name}", weight=0.4), build(name), build("boda", weight=0.4)
    for step in range(2):
        batch = make_batch(step)
        found, terms, added = (a.losses(a.backbone(batch.x), batch) for a in (both, own, boda))
        assert found == terms | {"alignment": added["alignment"]} and added["alignment"] > 0
    update(both, 0, make_batch(0), both.optimizers())
    assert both(make_batch(1).x).shape == (15, 3)


@pytest.mark.parametrize("name", ORACLES)
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
    embedding = mean([algorithm.domain_embedding[d] for d in (0, 2, 3)])
    before = {key: value.clone() for key, value in algorithm.state_dict().items()}
    for row, scores in zip(x, algorithm(x), strict=True):
        torch.testing.assert_close(algorithm.head(torch.cat([algorithm.backbone(row), embedding])), scores)
    assert all(torch.equal(value, before[key]) for key, value in algorithm.state_dict().items())

"""What a run costs is estimated from a few samples before it starts, and more memory than there is is refused."""

import numpy as np
import pytest
import torch

from crosstail import machine
from crosstail.training import RunSpec, cost
from crosstail.training.cost import cost_of
from crosstail.training.devices import Devices
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    y, domain = np.tile([0, 1], 30), np.repeat([0, 1], 30)
    np.savez(tmp_path / "p.npz", x=rng.integers(0, 256, (60, 16, 16, 3), dtype=np.uint8), y=y, domain=domain)
    return str(tmp_path / "p.npz")


def estimated(dataset, devices=Devices(), **fields):  # noqa: B008 - immutable
    spec = resolve(RunSpec(dataset=dataset, backbone="efficientnet_lite0", resolution=64, steps=50, **fields))
    inputs = load_inputs(spec)
    return cost_of(spec, inputs, devices), inputs


@pytest.fixture
def seconds(monkeypatch):
    """Each measured pass takes a second for each sample, the backward pass two more."""

    def one(function, x):
        found = function(x)
        return len(x) * (3.0 if found is None else 1.0)

    monkeypatch.setattr(cost, "_seconds", one)


def test_time_is_that_of_all_steps_and_evaluations(pictures, seconds):
    found, inputs = estimated(pictures, tune="all", algorithm="erm", batch_size=3, evaluations=4)
    held_out = sum(len(inputs.samples.rows(split)) for split in ("val", "test"))
    assert found.seconds == pytest.approx(50 * (2 * 3) * 3 + 5 * held_out) and found.disk == 0
    two, _ = estimated(pictures, Devices("cpu", 2), tune="all", algorithm="erm", batch_size=4, evaluations=4)
    assert two.seconds == pytest.approx(50 * (2 * 2) * 3 + 5 * held_out)


def test_activations_are_counted_until_they_are_kept(pictures, seconds):
    first, inputs = estimated(pictures, tune="last", second_stage="blend", batch_size=3, evaluations=4)
    assert first.disk == 60 * 2 * 192 * 2 * 2 + 60 * 4 * 1280
    inputs.embedded()
    second, _ = estimated(pictures, tune="last", second_stage="blend", batch_size=3, evaluations=4)
    held_out = sum(len(inputs.samples.rows(split)) for split in ("val", "test"))
    assert second.disk == 0 and second.seconds == pytest.approx(50 * 6 * 3 + 5 * held_out + 4 * 60)
    assert first.seconds > second.seconds


def test_memory_is_what_the_forward_pass_keeps(pictures):
    """Of a linear layer behind a ReLU: its input, for each sample."""
    from crosstail.algorithms import Task, build
    from crosstail.backbones import Backbone

    layers = torch.nn.Sequential(torch.nn.Linear(10, 1000), torch.nn.Tanh(), torch.nn.Linear(1000, 3))
    algorithm = build("erm", Backbone(layers, 3), Task(torch.ones(1, 2)), {})
    _, _, kept = cost._passes(algorithm, torch.rand(8, 10))
    assert 4 * (1000 + 3) <= kept <= 4 * (10 + 1000 + 3 + 3)


def test_more_memory_than_the_machine_has_is_refused_with_what_fits(pictures, monkeypatch):
    monkeypatch.setattr(machine, "memory_used", lambda: 0)
    need = estimated(pictures, tune="all", algorithm="erm", batch_size=64)[0].memory
    monkeypatch.setattr(machine, "memory", lambda: int(0.6 * need))
    words = r"batches of 128 images needs about .* GB of memory.*add --accumulate 2, or use --tune last"
    with pytest.raises(ValueError, match=words):
        estimated(pictures, tune="all", algorithm="erm", batch_size=64)
    assert estimated(pictures, Devices("cpu", chunks=2), tune="all", algorithm="erm", batch_size=64)[0].memory < need
    monkeypatch.setattr(machine, "memory", lambda: 1000)
    with pytest.raises(ValueError, match="choose a smaller --resolution or --backbone, or use --tune last"):
        estimated(pictures, tune="all", algorithm="erm", batch_size=64)

"""The moving average of the weights: its formula by a loop, its place in a run, and resuming."""

from dataclasses import replace

import msgspec
import pytest
import torch
from torch import nn

from crosstail import testing
from crosstail.training import RunSpec
from crosstail.training.average import WeightAverage
from crosstail.training.fit import fit
from crosstail.training.folder import RunFolder


def test_the_average_is_that_of_polynomial_decay():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).double()
    average = WeightAverage(module)
    expected = {}
    for t in range(1, 40):
        for name, value in module.state_dict().items():
            value.copy_(torch.randn_like(value)) if value.is_floating_point() else value.fill_(t)
            new = value.clone()
            if name in expected and value.is_floating_point():
                new = (1 - 10 / (t + 9)) * expected[name] + 10 / (t + 9) * new
            expected[name] = new
        average.update(t)
    for name, value in expected.items():
        torch.testing.assert_close(average.state[name], value)


def test_the_average_is_applied_and_taken_back():
    module = nn.Linear(2, 2)
    average = WeightAverage(module)
    before = module.weight.detach().clone()
    average.state["weight"] = before + 1
    with average.applied():
        assert torch.equal(module.weight, before + 1)
    assert torch.equal(module.weight, before)
    with pytest.raises(KeyError), average.applied():
        raise KeyError
    assert torch.equal(module.weight, before)


@pytest.fixture
def spec(tmp_path):
    testing.save_separable(tmp_path / "easy.npz", [[20, 3, 9], [2, 14, 0]])
    return RunSpec(
        dataset=str(tmp_path / "easy.npz"),
        algorithm="boda",
        backbone="mlp",
        width=8,
        hparams={"lr": 0.05},
        average=True,
        steps=30,
        batch_size=4,
        evaluations=6,
    )


@pytest.mark.parametrize("stage", [None, "retrain"])
def test_a_run_keeps_the_average_and_shows_the_raw_weights_beside_it(spec, tmp_path, stage):
    averaged = replace(spec, second_stage=stage)
    plain = replace(averaged, average=False)
    found, raw = fit(averaged, tmp_path / "averaged").result, fit(plain, tmp_path / "plain").result
    records, raws = RunFolder(tmp_path / "averaged").records(), RunFolder(tmp_path / "plain").records()
    if stage is None:  # a second stage starts from what the first selected
        assert found.raw.test == raw.test and found.raw.selected_step == raw.selected_step
        assert [r.validation for r in records] == [r.validation for r in raws]
    last = [r for r in records if r.stage == 1 + (stage is not None)]
    chosen = next(r for r in last if r.step == found.selected_step)
    assert chosen.averaged.test.hits == found.test.hits
    mean, own = (RunFolder(tmp_path / name).load("model.pt")["head.weight"] for name in ("averaged", "plain"))
    assert not torch.equal(mean, own)


def test_it_resumes_identically(spec, tmp_path):
    class Stop(Exception):
        pass

    def stop(what, done, total):
        if done == 17:
            raise Stop

    expected = fit(spec, tmp_path / "whole").result
    with pytest.raises(Stop):
        fit(spec, tmp_path / "run", progress=stop)
    torch.rand(5)
    found = fit(spec, tmp_path / "run").result
    assert msgspec.structs.replace(found, seconds=0.0) == msgspec.structs.replace(expected, seconds=0.0)
    whole, resumed = (RunFolder(tmp_path / name).load("model.pt") for name in ("whole", "run"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)

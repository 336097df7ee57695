"""The moving average of the weights: its formula by a loop, its place in a run, and resuming."""

from dataclasses import replace

import msgspec
import pytest
import torch
from torch import nn

from crosstail import testing
from crosstail.training import RunSpec
from crosstail.training.average import averaged_copy
from crosstail.training.fit import fit
from crosstail.training.folder import RunFolder


def test_the_average_is_that_of_polynomial_decay():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).double()
    averaged = averaged_copy(module)
    expected = {}
    for t in range(1, 40):
        for name, value in module.state_dict().items():
            value.copy_(torch.randn_like(value)) if value.is_floating_point() else value.fill_(t)
            new = value.clone()
            if name in expected and value.is_floating_point():
                new = (1 - 10 / (t + 9)) * expected[name] + 10 / (t + 9) * new
            expected[name] = new
        averaged.update_parameters(module)
    for name, value in expected.items():
        torch.testing.assert_close(averaged.module.state_dict()[name], value)


@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")
def test_the_average_stays_on_the_device_of_the_module_also_after_a_resume():
    state = averaged_copy(nn.BatchNorm1d(2)).state_dict()  # checkpoints are read to the CPU
    module = nn.BatchNorm1d(2).to("meta")
    averaged = averaged_copy(module)
    averaged.load_state_dict(state)
    for _ in range(3):
        averaged.update_parameters(module)
    assert {value.device.type for value in averaged.module.state_dict().values()} == {"meta"}
    assert int(averaged.n_averaged) == 3  # counted on the host: reading it does not wait for the device


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


@pytest.mark.parametrize("second_stage", [None, "retrain"])
def test_a_run_keeps_the_average_and_shows_the_raw_weights_beside_it(spec, tmp_path, second_stage):
    averaged = replace(spec, second_stage=second_stage)
    found = fit(averaged, tmp_path / "averaged").result
    raw = fit(replace(averaged, average=False), tmp_path / "plain").result
    records, raws = RunFolder(tmp_path / "averaged").records(), RunFolder(tmp_path / "plain").records()
    if not second_stage:  # a second stage starts from what the first selected
        assert found.raw.test == raw.test and found.raw.selected_step == raw.selected_step
        assert [r.validation for r in records] == [r.validation for r in raws]
    last = [r for r in records if r.stage == len(found.selected_steps)]
    chosen = next(r for r in last if r.step == found.selected_step)
    assert chosen.averaged.test.hits == found.test.hits
    mean, own = (RunFolder(tmp_path / name).weights()["head.weight"] for name in ("averaged", "plain"))
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
    assert msgspec.structs.replace(found, seconds=0) == msgspec.structs.replace(expected, seconds=0)
    whole, resumed = (RunFolder(tmp_path / name).weights() for name in ("whole", "run"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)

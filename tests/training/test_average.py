"""Averages of the weights: their formulas by loops, their place in a run, and resuming."""

from dataclasses import replace

import msgspec
import pytest
import torch
from torch import nn

from crosstail.training.average import Swad, WeightAverage, window
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder


def walk(module, steps):
    """New weights at every step, from 1; yields a copy of each."""
    torch.manual_seed(0)
    for t in range(1, steps + 1):
        for value in module.state_dict().values():
            value.copy_(torch.randn_like(value)) if value.is_floating_point() else value.fill_(t)
        yield {name: value.clone() for name, value in module.state_dict().items()}


def small():
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).double()


def mean_of(weights):
    """Of floats; of others the last."""
    return {
        name: sum(one[name] for one in weights) / len(weights) if value.is_floating_point() else value
        for name, value in weights[-1].items()
    }


def assert_equal(module, expected):
    for name, value in expected.items():
        torch.testing.assert_close(module.state_dict()[name], value)


def test_the_moving_average_is_that_of_polynomial_decay():
    module = small()
    averaged, expected = WeightAverage(module, "moving", 40), {}
    for t, weights in enumerate(walk(module, 40), 1):
        for name, new in weights.items():
            if name in expected and new.is_floating_point():
                new = (1 - 10 / (t + 9)) * expected[name] + 10 / (t + 9) * new
            expected[name] = new
        averaged.add(module)
    assert_equal(averaged.module, expected)


def test_the_uniform_average_is_of_all_weights_after_a_tenth_of_the_steps():
    module, seen = small(), []
    averaged = WeightAverage(module, "uniform", 40)
    for weights in walk(module, 30):
        averaged.add(module)
        seen.append(weights)
    assert_equal(averaged.module, mean_of(seen[4:]))


def published_window(losses):
    """Algorithm 1 of Cha et al. (2021), with evaluations from 1 in place of iterations."""
    patience, overfit_patience, rate = 3, 6, 1.3
    start, end, limit = None, len(losses), None
    for i in range(1, len(losses) + 1):
        if limit is None:
            if i >= patience and losses[i - patience] == min(losses[i - 1 - k] for k in range(patience)):
                start = i - patience + 1
                limit = rate / patience * sum(losses[i - 1 - k] for k in range(patience))
        elif i >= overfit_patience and limit < min(losses[i - 1 - k] for k in range(overfit_patience)):
            end = i - overfit_patience
            break
    return start, end


def random_losses(seed):
    """They fall, and later rise."""
    generator = torch.Generator().manual_seed(seed)
    number = int(torch.randint(3, 30, (), generator=generator))
    noise = 0.3 * torch.rand(number, generator=generator)
    return [((k - number / 2) / number) ** 2 * 4 + 0.3 + noise[k].item() for k in range(number)]


def test_the_window_is_that_of_the_published_algorithm():
    ended = 0
    for seed in range(300):
        losses = random_losses(seed)
        start, end = published_window(losses)
        expected = (start - 1, end - 1) if start else (len(losses) - 1,) * 2  # before it starts, the last one
        assert window(losses) == expected, losses
        ended += expected[1] < len(losses) - 1
    assert 50 < ended < 250


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_swad_averages_all_weights_of_the_window_also_after_a_resume(seed):
    losses, seen = random_losses(seed), []
    module = small()
    averaged = Swad(module, "swad", 100)
    averaged.at_evaluation(0, 9.0)
    ends = [0]
    for k, loss in enumerate(losses):
        for weights in walk(module, 2 + k % 2):
            averaged.add(module)
            seen.append(weights)
        ends.append(len(seen))
        found = averaged.at_evaluation(len(seen), loss)
        start, end = window(losses[: k + 1])
        assert found == (ends[start] + 1, ends[end + 1])
        assert_equal(averaged.module, mean_of(seen[ends[start] : ends[end + 1]]))
        state, averaged = averaged.state_dict(), Swad(module, "swad", 100)
        averaged.load_state_dict(state)
        assert len(averaged.recent) <= 6


def test_swad_needs_validation_samples(spec):
    with pytest.raises(ValueError, match="swad needs validation samples"):
        Swad(small(), "swad", 9).at_evaluation(0, None)
    with pytest.raises(ValueError, match="swad"):
        replace(spec, average="swad", stop_at=(3,))
    with pytest.raises(ValueError, match="average is 'swat': did you mean 'swad'"):
        replace(spec, average="swat")


@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")
def test_the_average_stays_on_the_device_of_the_module_also_after_a_resume():
    state = WeightAverage(nn.BatchNorm1d(2), "moving", 9).state_dict()  # checkpoints are read to the CPU
    module = nn.BatchNorm1d(2).to("meta")
    averaged = WeightAverage(module, "moving", 9)
    averaged.load_state_dict(state)
    for _ in range(3):
        averaged.add(module)
    assert {value.device.type for value in averaged.module.state_dict().values()} == {"meta"}
    assert int(averaged.copy.n_averaged) == 3  # counted on the host: reading it does not wait for the device


@pytest.fixture
def spec(tiny):
    return tiny([[20, 3, 9], [2, 14, 0]], hparams={"lr": 0.05}, average="moving", steps=30, evaluations=6)


@pytest.mark.parametrize("second_stage", [None, "retrain"])
def test_a_run_keeps_the_average_and_shows_the_raw_weights_beside_it(spec, tmp_path, second_stage):
    averaged = replace(spec, second_stage=second_stage)
    found = train_run(averaged, tmp_path / "averaged").result
    raw = train_run(replace(averaged, average=None), tmp_path / "plain").result
    records, raws = RunFolder(tmp_path / "averaged").records(), RunFolder(tmp_path / "plain").records()
    if not second_stage:  # a second stage starts from what the first selected
        assert found.raw.test == raw.test and found.raw.selected_step == raw.selected_step
        assert [r.validation for r in records] == [r.validation for r in raws]
    last = [r for r in records if r.stage == len(found.selected_steps)]
    chosen = next(r for r in last if r.step == found.selected_step)
    assert chosen.averaged.test.hits == found.test.hits
    mean, own = (RunFolder(tmp_path / name).weights()["head.weight"] for name in ("averaged", "plain"))
    assert not torch.equal(mean, own)


@pytest.mark.parametrize("average", ["moving", "uniform", "swad"])
def test_it_resumes_identically(spec, tmp_path, average):
    spec = replace(spec, average=average, steps=60, evaluations=20)

    class Stop(Exception):
        pass

    def stop(what, done, total):
        if done == 47:
            raise Stop

    expected = train_run(spec, tmp_path / "whole").result
    with pytest.raises(Stop):
        train_run(spec, tmp_path / "run", progress=stop)
    torch.rand(5)
    found = train_run(spec, tmp_path / "run").result
    assert msgspec.structs.replace(found, seconds=0) == msgspec.structs.replace(expected, seconds=0)
    whole, resumed = (RunFolder(tmp_path / name).weights() for name in ("whole", "run"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    if average == "swad":  # what is reported is the average at the end, whose window is recorded
        last = RunFolder(tmp_path / "run").records()[-1]
        assert found.selected_step == last.step == 60 and found.test.hits == last.averaged.test.hits
        assert 1 <= last.averaged.steps[0] <= last.averaged.steps[1] <= 60

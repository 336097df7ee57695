"""Optimizers and schedules are torch's own; without options, nothing changes, and no key moves."""

from dataclasses import replace

import pytest
import torch
from torch.optim import SGD, AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from crosstail.sweeps import plan
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.loop import _Loop
from crosstail.training.optimizers import factors_of, optimizers_of
from crosstail.training.resolve import resolve


class Ended(Exception):
    """A run is interrupted."""


def weights(run):
    return {name: value.tolist() for name, value in run.folder.weights().items()}


def test_the_defaults_by_name_are_the_same_run(tiny):
    spec = resolve(tiny())
    named = resolve(tiny(optimizer="adam", schedule="constant", warm_up=0))
    assert named == spec and named.key == spec.key and factors_of(spec) == []


@pytest.mark.filterwarnings("ignore:The epoch parameter:UserWarning")
@pytest.mark.parametrize(
    ("schedule", "warm_up"), [("cosine", 4), ("linear", 4), (None, 4), ("cosine", 0), ("linear", 0)]
)
def test_rates_are_those_of_the_schedulers_of_torch(tiny, schedule, warm_up):
    of = SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    falling = {"cosine": CosineAnnealingLR(of, T_max=12 - warm_up), "linear": LinearLR(of, 1, 1e-9, 12 - warm_up)}
    for group in of.param_groups:
        group["lr"] = group["initial_lr"] = 1.0
    parts = [falling.get(schedule, LinearLR(of, 1))]
    if warm_up:
        parts = [LinearLR(of, 1 / (warm_up + 1), total_iters=warm_up), *parts]
    expected, scheduler = [], SequentialLR(of, parts, milestones=[warm_up][: len(parts) - 1])
    for _ in range(12):
        expected.append(of.param_groups[0]["lr"])
        of.step()
        scheduler.step()
    assert factors_of(resolve(tiny(schedule=schedule, warm_up=warm_up))) == pytest.approx(expected, abs=1e-6)


def test_an_optimizer_keeps_rates_decay_and_groups(tiny):
    from crosstail import algorithms, backbones
    from crosstail.algorithms import Task

    task = Task(torch.ones(2, 3, dtype=torch.int64))
    dann = algorithms.build("cdann", backbones.build("mlp", (6,), 8), task, {"lr": 0.02, "weight_decay": 0.1})
    before = dann.optimizers()
    after = optimizers_of(dann, tiny(optimizer="adamw"))
    assert [type(one) for one in after] == [AdamW, AdamW]
    for one, other in zip(before, after, strict=True):
        for a, b in zip(one.param_groups, other.param_groups, strict=True):
            assert [a[k] for k in ("lr", "weight_decay", "betas")] == [b[k] for k in ("lr", "weight_decay", "betas")]
            assert all(x is y for x, y in zip(a["params"], b["params"], strict=True))
    (sgd,) = optimizers_of(algorithms.build("erm", backbones.build("mlp", (6,), 8), task), tiny(optimizer="sgd"))
    assert sgd.param_groups[0]["momentum"] == 0.9


@pytest.mark.parametrize("algorithm", ["erm", "dann"])
def test_a_resumed_run_has_the_rates_of_one_that_was_not_stopped(tiny, tmp_path, algorithm):
    spec = tiny(algorithm=algorithm, optimizer="sgd", schedule="cosine", warm_up=3, second_stage="retrain")
    whole = train_run(spec, tmp_path / "whole")

    def stop(what, done, total):
        if (what, done) == ("stage 1", 8):
            raise Ended

    with pytest.raises(Ended):
        train_run(spec, tmp_path / "stopped", progress=stop)
    assert weights(train_run(spec, tmp_path / "stopped")) == weights(whole)
    assert weights(train_run(replace(spec, schedule=None), tmp_path / "constant")) != weights(whole)


def test_each_stage_may_have_its_rate(tiny, tmp_path, monkeypatch):
    seen, init = [], _Loop.__init__

    def spy(loop, *args, **kwargs):
        init(loop, *args, **kwargs)
        seen.append(loop.optimizers[0].param_groups[0]["lr"])

    monkeypatch.setattr(_Loop, "__init__", spy)
    for stage in ("retrain", "lws"):  # the second has a rate of its own
        train_run(tiny(hparams={"lr": 0.01}, second_stage=stage, second_lr=0.5), tmp_path / stage)
    assert seen == [0.01, 0.5, 0.01, 0.5]
    assert RunFolder(tmp_path / "lws").spec().second_lr == 0.5


def test_in_a_sweep_the_second_rate_is_for_methods_with_a_second_stage(tiny):
    made = plan.make(tiny(second_lr=0.5), ["erm", "erm:retrain"], trials=1, seeds=1)
    assert [made.runs(method, {})[0].second_lr for method in made.methods] == [None, 0.5]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"warm_up": 12}, r"--warm-up is 12, expected fewer than the 12 steps"),
        ({"second_lr": 0.1}, r"--second-lr is for a second stage that is trained.*not for boda"),
        ({"second_lr": 0.1, "second_stage": "ncm"}, r"--second-lr .* not for boda:ncm"),
    ],
)
def test_what_cannot_be_is_refused(tiny, fields, message):
    with pytest.raises(ValueError, match=message):
        resolve(tiny(**fields))

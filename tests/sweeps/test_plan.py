"""A plan is a value: the runs it expands to, on every machine, and the messages for mistakes."""

import subprocess
import sys
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from crosstail import algorithms
from crosstail.data import load_source
from crosstail.storage import read_json, write_json
from crosstail.sweeps import plan as planning
from crosstail.sweeps.plan import Plan, by_method, make
from crosstail.training import RunSpec
from crosstail.training.resolve import resolve

FIXED = '''
import torch.nn.functional as F
from crosstail.algorithms._algorithm import Algorithm
from crosstail.algorithms._hparams import Choice, LogUniform, Uniform, hp

class Fixed(Algorithm):
    """Fixed (Nobody, 2024)."""

    class Hparams:
        a: float = hp(1.0, LogUniform(1e-4, 1e2), "")
        b: float = hp(0.5, Uniform(0.0, 1.0), "")
        c: str = hp("x", Choice("x", "y", "z"), "")
        d: int = hp(3, None, "")

    def losses(self, z, batch):
        return {}
'''


def test_trial_0_is_the_defaults_and_the_others_are_those_of_the_random_search(shared):
    plan = make(shared, ["erm", "boda:retrain"], trials=4, seeds=2)
    assert plan.methods == ("erm", "boda:retrain")
    for method, name in (("erm", "erm"), ("boda:retrain", "boda")):
        defaults = resolve(replace(shared, algorithm=name, hparams={})).hparams
        assert plan.drawn[method][0] == defaults
        for trial in (1, 2, 3):
            exact = algorithms.draw(algorithms.find(name).Hparams, trial)
            assert plan.drawn[method][trial] == defaults | {k: pytest.approx(v, rel=1e-5) for k, v in exact.items()}


def test_a_run_is_the_shared_spec_with_its_method_and_hyperparameters(shared):
    plan = make(shared, ["boda:retrain"], trials=2, seeds=3)
    hparams = plan.drawn["boda:retrain"][1]
    own = {"algorithm": "boda", "second_stage": "retrain", "hparams": hparams}
    assert plan.runs("boda:retrain", hparams) == [replace(shared, **own)]
    assert plan.finals("boda:retrain", hparams) == [[replace(shared, **own, seed=seed)] for seed in (0, 1, 2)]
    assert plan.runs_per_method == 4  # two trials, and two more seeds of one of them


def test_dg_leaves_out_each_domain_in_turn(shared, data):
    plan = make(replace(shared, protocol="dg"), ["erm"], trials=2, seeds=2)
    domains = load_source(shared).domains
    assert plan.unseen == domains and len(domains) == 2
    assert [spec.unseen for spec in plan.runs("erm", {})] == list(domains)
    one = make(replace(shared, protocol="dg", unseen=domains[1]), ["erm"])
    assert one.unseen == (domains[1],)


def test_dg_searches_for_every_unseen_domain_and_seed(shared):
    """As DomainBed: each seed draws its trials anew, the same for all unseen domains; the first has the defaults."""
    plan = make(replace(shared, protocol="dg", seed=7), ["erm", "boda"], trials=3, seeds=2)
    assert plan.runs_per_method == 3 * 2 * 2  # trials, seeds, unseen domains
    expected, found = set(), set()
    for method in ("erm", "boda"):
        for unseen in ("0", "1"):
            for seed in (0, 1):
                for hparams in planning.draw(method, range(3), shared, seed):
                    own = {"protocol": "dg", "unseen": unseen, "seed": seed, "hparams": hparams}
                    expected.add(replace(shared, algorithm=method, **own).key)
    for part in plan.searches:
        assert part.searches == (part,) and part.seeds == 1
        for method in plan.methods:
            for hparams in part.drawn[method]:
                assert part.finals(method, hparams) == [part.runs(method, hparams)]
                found |= {spec.key for spec in part.runs(method, hparams)}
    assert found == expected and len(found) == 2 * 12
    first, second = plan.drawn["erm"], plan.redrawn[0]["erm"]
    assert first[0] == second[0] and not {h["lr"] for h in first[1:]} & {h["lr"] for h in second[1:]}
    mdlt = make(shared, ["erm"], trials=3)
    assert mdlt.searches == (mdlt,) and mdlt.redrawn == () and mdlt.drawn["erm"] == first


def test_several_dg_plans_have_the_most_trials_of_each_seed(shared):
    dg = replace(shared, protocol="dg")
    first, second = make(dg, ["erm"], trials=2, seeds=3), make(dg, ["erm"], trials=4, seeds=1)
    for plans in ([first, second], [second, first]):
        plan = by_method(plans)["erm"]
        assert (plan.trials, plan.seeds, plan.runs_per_method) == (4, 3, 24)
        assert [len(part.drawn["erm"]) for part in plan.searches] == [4, 2, 2] * 2


def test_the_same_plan_gives_the_same_runs_in_another_process(shared, tmp_path):
    (tmp_path / "fixed.py").write_text(FIXED)
    method = str(tmp_path / "fixed.py")
    plan = make(shared, [method, "erm"], trials=3)
    program = (
        "import msgspec, sys; from crosstail.sweeps.plan import make; from crosstail.training import RunSpec\n"
        f"plan = make(msgspec.json.decode(sys.argv[1], type=RunSpec), [{method!r}, 'erm'], trials=3)\n"
        "print(plan.key, [s.key for m in plan.methods for h in plan.drawn[m] for s in plan.runs(m, h)])"
    )
    command = [sys.executable, "-c", program, msgspec.json.encode(shared).decode()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    keys = [spec.key for m in plan.methods for h in plan.drawn[m] for spec in plan.runs(m, h)]
    assert done.stdout == f"{plan.key} {keys}\n" and len(set(keys)) == 6


def test_finetuning_a_pretrained_network_has_the_papers_learning_rates_and_weight_decay():
    finetuned = RunSpec(dataset="digits", backbone="resnet50", tune="all")
    usual = replace(finetuned, backbone="small_cnn")
    trials = planning.draw("cdann", range(200), finetuned)
    assert (trials[0]["lr"], trials[0]["discriminator_lr"]) == (5e-5, 5e-5)
    assert planning.draw("erm", [0], finetuned)[0]["lr"] == 5e-5
    for name in ("lr", "discriminator_lr"):
        exponents = np.log10([hparams[name] for hparams in trials[1:]])
        assert -5 <= exponents.min() < -4.9 and -3.6 < exponents.max() <= -3.5
    for name in ("erm", "cdann"):  # the other hyperparameters are the same
        (one,), (other,) = planning.draw(name, [3], usual), planning.draw(name, [3], finetuned)
        assert {k for k in one if one[k] != other[k]} <= {"lr", "discriminator_lr", "weight_decay", "dropout"}
        assert one["weight_decay"] == 0 < other["weight_decay"]
    for changes in ({"tune": "none"}, {"weights": "random"}):
        assert planning.draw("erm", [0], replace(finetuned, **changes)) == planning.draw("erm", [0], usual)


def test_the_drawn_numbers_are_these(shared, tmp_path):
    """Changing them makes every sweep start over."""
    (tmp_path / "fixed.py").write_text(FIXED)
    assert planning.draw(str(tmp_path / "fixed.py"), range(3), shared) == [
        {"a": 1.0, "b": 0.5, "c": "x", "d": 3},
        {"a": 21.7988, "b": 0.557138, "c": "x", "d": 3},
        {"a": 0.000305453, "b": 0.402438, "c": "x", "d": 3},
    ]


def test_fixed_hyperparameters_are_those_of_every_trial(shared):
    usual, plan = (make(shared, ["boda"], trials=3, hparams=fixed) for fixed in ({}, {"nu": 0.25}))
    assert [own["nu"] for own in plan.drawn["boda"]] == 3 * [0.25] and usual.key != plan.key
    assert [own["lr"] for own in plan.drawn["boda"]] == [own["lr"] for own in usual.drawn["boda"]]


def test_a_plan_survives_its_file(small, shared, tmp_path):
    dg = make(replace(shared, protocol="dg", labels=("uniform",)), ["erm"], trials=2)
    for plan in (small, dg):
        write_json(tmp_path / "plan.json", plan)
        again = read_json(tmp_path / "plan.json", Plan)
        assert again == plan and again.key == plan.key and again.searches == plan.searches
    assert small.key != dg.key


def test_names_that_mean_the_same_count_once(shared):
    assert make(shared, ["erm", "boda", "erm"], trials=1).methods == ("erm", "boda")
    assert make(shared, ["crt", "erm:retrain", "crt:retrain"], trials=1).methods == ("erm:retrain",)


def test_several_plans_are_one_sweep_of_the_largest(shared):
    first, second = make(shared, ["erm", "boda"], trials=2, seeds=3), make(shared, ["boda", "coral"], trials=4, seeds=1)
    for plans in ([first, second], [second, first]):
        found = by_method(plans)
        assert {m: (p.trials, p.seeds, len(p.drawn[m])) for m, p in found.items()} == {
            "erm": (2, 3, 2),
            "boda": (4, 3, 4),
            "coral": (4, 1, 4),
        }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["bodda"]}, "'bodda'.*'boda'"),
        ({"methods": ["boda:retrian"]}, "'retrian'.*'retrain'"),
        ({"methods": ["bodda:retrain"]}, "'bodda'.*'boda'"),
        ({"methods": []}, "--algorithm"),
        ({"trials": 0}, "trials is 0, expected 1 or more"),
        ({"seeds": 0}, "seeds is 0, expected 1 or more"),
    ],
)
def test_a_mistake_is_reported_before_anything_runs(shared, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(shared, **{"methods": ["erm"]} | arguments)

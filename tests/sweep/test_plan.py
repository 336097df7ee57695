"""A plan is a value: what it expands to, on every machine, and what a mistake is told."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from crosstail import algorithms, protocols
from crosstail.sweep import plan as planning
from crosstail.sweep.plan import Plan, by_algorithm, make
from crosstail.training import RunSpec

FIXED = '''
import torch.nn.functional as F
from dataclasses import dataclass
from crosstail.algorithms._algorithm import Algorithm
from crosstail.algorithms._hparams import Choice, LogUniform, Uniform, hp

class Fixed(Algorithm):
    """Fixed (Nobody, 2024)."""

    @dataclass(frozen=True, kw_only=True)
    class Hparams:
        a: float = hp(1.0, LogUniform(1e-4, 1e2), "")
        b: float = hp(0.5, Uniform(0.0, 1.0), "")
        c: str = hp("x", Choice("x", "y", "z"), "")
        d: int = hp(3, None, "")
'''


def test_trial_0_is_the_defaults_and_the_others_are_those_of_the_random_search(shared):
    plan = make(shared, ["erm", "boda:retrain"], trials=4, seeds=2)
    assert plan.algorithms == ("erm", "boda:retrain")
    for entry, name in (("erm", "erm"), ("boda:retrain", "boda")):
        assert plan.drawn[entry][0] == {}
        for trial in (1, 2, 3):
            exact = algorithms.draw(algorithms.find(name).Hparams, trial)
            assert plan.drawn[entry][trial] == pytest.approx(exact, rel=1e-5)


def test_a_run_has_the_words_of_the_plan_and_its_own(shared):
    plan = make(shared, ["boda:retrain"], trials=2, seeds=3)
    words = plan.drawn["boda:retrain"][1]
    own = {"algorithm": "boda", "decouple": True, "hparams": words}
    assert plan.runs("boda:retrain", words) == [replace(shared, **own)]
    assert plan.finals("boda:retrain", words) == [[replace(shared, **own, seed=seed)] for seed in (0, 1, 2)]
    assert plan.runs_per_algorithm == 4  # two trials, and two more seeds of one of them


def test_dg_leaves_out_each_domain_in_turn(shared, data):
    plan = make(replace(shared, protocol="dg"), ["erm"], trials=2, seeds=2)
    domains = protocols.prepare(shared).domains
    assert plan.unseen == domains and len(domains) == 2
    assert [spec.unseen for spec in plan.runs("erm", {})] == list(domains)
    assert plan.runs_per_algorithm == 6
    one = make(replace(shared, protocol="dg", unseen=domains[1]), ["erm"])
    assert one.unseen == (domains[1],)


def test_the_same_plan_gives_the_same_runs_in_another_process(shared, tmp_path):
    (tmp_path / "fixed.py").write_text(FIXED)
    entry = str(tmp_path / "fixed.py")
    plan = make(shared, [entry, "erm"], trials=3)
    program = (
        "import json, sys; from crosstail.sweep.plan import make; from crosstail.training import RunSpec\n"
        f"plan = make(RunSpec.from_json(json.loads(sys.argv[1])), [{entry!r}, 'erm'], trials=3)\n"
        "print(plan.key, [s.key for e in plan.algorithms for h in plan.drawn[e] for s in plan.runs(e, h)])"
    )
    words = [sys.executable, "-c", program, json.dumps(shared.to_json())]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    keys = [spec.key for e in plan.algorithms for h in plan.drawn[e] for spec in plan.runs(e, h)]
    assert done.stdout == f"{plan.key} {keys}\n" and len(set(keys)) == 6


def test_a_pretrained_network_that_is_trained_whole_has_the_papers_rates():
    shared = RunSpec(dataset="office_home", backbone="resnet50")
    plan = Plan(shared=shared, algorithms=("erm", "cdann"), drawn={})
    assert shared.finetunes and not replace(shared, freeze=True).finetunes
    assert not replace(shared, weights="random").finetunes and not replace(shared, backbone="small_cnn").finetunes
    trials = planning.draw("cdann", range(200), finetune=True)
    assert trials[0] == {"lr": 5e-5, "discriminator_lr": 5e-5} and planning.draw("erm", [0], finetune=True) == [
        {"lr": 5e-5}
    ]
    for name in ("lr", "discriminator_lr"):
        exponents = np.log10([words[name] for words in trials[1:]])
        assert -5 <= exponents.min() < -4.9 and -3.6 < exponents.max() <= -3.5
    for name in ("erm", "cdann"):  # what else is searched is drawn as ever
        usual, finetuned = planning.draw(name, [3]), planning.draw(name, [3], finetune=True)
        assert {k for k in usual[0] if usual[0][k] != finetuned[0][k]} <= {"lr", "discriminator_lr"}
    assert plan.runs("erm", {"lr": 1e-4})[0].hparams == {"lr": 1e-4}


def test_the_numbers_that_are_drawn_are_these(tmp_path):
    """Whoever changes them makes every sweep begin anew."""
    (tmp_path / "fixed.py").write_text(FIXED)
    assert planning.draw(str(tmp_path / "fixed.py"), range(3)) == [
        {},
        {"a": 21.7988, "b": 0.557138, "c": "x"},
        {"a": 0.000305453, "b": 0.402438, "c": "x"},
    ]


def test_json_and_back(small, shared):
    assert Plan.from_json(json.loads(json.dumps(small.to_json()))) == small
    plan = make(replace(shared, protocol="dg", labels=("uniform",)), ["erm"], trials=2)
    again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    assert again == plan and again.key == plan.key != small.key


def test_names_twice_count_once(shared):
    assert make(shared, ["erm", "boda", "erm"], trials=1).algorithms == ("erm", "boda")


def test_several_plans_are_one_sweep_of_the_largest(shared):
    first, second = make(shared, ["erm", "boda"], trials=2, seeds=3), make(shared, ["boda", "coral"], trials=4, seeds=1)
    for plans in ([first, second], [second, first]):
        found = by_algorithm(plans)
        assert {e: (p.trials, p.seeds, len(p.drawn[e])) for e, p in found.items()} == {
            "erm": (2, 3, 2),
            "boda": (4, 3, 4),
            "coral": (4, 1, 4),
        }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"entries": ["bodda"]}, "unknown algorithm 'bodda': did you mean 'boda'"),
        ({"entries": ["boda:decuple"]}, "'boda:decuple': after boda only ':retrain' may follow, not 'decuple'"),
        ({"entries": []}, "a sweep needs algorithms"),
        ({"trials": 0}, "trials is 0, expected 1 or more"),
        ({"seeds": 0}, "seeds is 0, expected 1 or more"),
        ({"search": "grid"}, "search is 'grid', expected random or tpe"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(shared, words, message):
    with pytest.raises(ValueError, match=message):
        make(shared, **{"entries": ["erm"]} | words)


def test_tpe_without_optuna_says_what_to_install(shared, monkeypatch):
    monkeypatch.setattr(planning.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'crosstail\[optuna\]'"):
        make(shared, ["erm"], search="tpe")

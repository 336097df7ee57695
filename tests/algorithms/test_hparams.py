"""Hyperparameters: what a search draws, and what a user may type."""

import math
import pickle
import re
from dataclasses import FrozenInstanceError, dataclass, fields

import numpy as np
import pytest
import torch

from crosstail import algorithms, backbones, discovery
from crosstail.algorithms import Task, draw, parse, ranges
from crosstail.algorithms._hparams import Choice, Integer, LogInteger, LogUniform, OneMinus, Uniform, hp
from crosstail.data import DomainBatch


@dataclass(frozen=True, kw_only=True)
class Made:
    rate: float = hp(0.1, LogUniform(1e-3, 1e1), "a rate")
    share: float = hp(0.5, Uniform(-1.0, 2.0), "a share")
    kind: str = hp("a", Choice("a", "b", "c"), "a choice")
    fixed: int = hp(3, None, "without a search")
    switch: bool = hp(False, None, "on or off")
    almost: float = hp(0.99, OneMinus(LogUniform(1e-5, 1e-2)), "just below 1")


class Plain(algorithms.Algorithm):
    class Hparams(algorithms.Algorithm.Hparams):
        eps: float = hp(0.1, None, "declared without a decorator")


class Decorated(Plain):
    @dataclass(frozen=True, kw_only=True)
    class Hparams(Plain.Hparams):
        tau: float = hp(1.0, None, "declared with one")


class Inherited(Decorated):
    pass


EVERY = [algorithms.find(name).Hparams for name in discovery.names("crosstail.algorithms")]


@pytest.mark.parametrize("hparams", [Made, *EVERY])
def test_trial_0_is_the_defaults(hparams):
    assert draw(hparams, 0) == {} and draw(hparams, 0, seed=5) == {}
    assert parse(hparams, {}) == hparams()


@pytest.mark.parametrize("kind", [Plain, Decorated, Inherited])
def test_they_are_a_frozen_dataclass_with_keywords_only_whether_or_not_it_says_so(kind):
    hparams = kind.Hparams(eps=0.5)
    assert hparams == pickle.loads(pickle.dumps(hparams)) != kind.Hparams()
    assert algorithms.values(hparams)["eps"] == 0.5
    with pytest.raises(FrozenInstanceError):
        hparams.eps = 1.0
    with pytest.raises(TypeError):
        kind.Hparams(0.5)


@pytest.mark.parametrize("hparams", [Made, *(hparams for hparams in EVERY if ranges(hparams))])
def test_a_trial_is_the_same_every_time_and_differs_from_the_others(hparams):
    drawn = {(trial, seed): draw(hparams, trial, seed) for trial in range(1, 6) for seed in range(3)}
    np.random.seed(0)  # noqa: NPY002
    assert all(draw(hparams, *key) == value for key, value in drawn.items())
    assert len({str(value) for value in drawn.values()}) == len(drawn)


def test_a_trial_is_drawn_in_the_order_of_the_fields_from_its_own_generator():
    generator = np.random.default_rng(np.random.SeedSequence([7, 2]))
    expected = {
        "rate": math.exp(generator.uniform(math.log(1e-3), math.log(1e1))),
        "share": generator.uniform(-1.0, 2.0),
        "kind": "abc"[int(generator.integers(3))],
        "almost": 1 - math.exp(generator.uniform(math.log(1e-5), math.log(1e-2))),
    }
    assert draw(Made, 2, seed=7) == expected


@pytest.mark.parametrize("hparams", [Made, *EVERY])
def test_draws_are_in_range_and_can_be_parsed(hparams):
    for trial in range(1, 200):
        drawn = draw(hparams, trial)
        for field in fields(hparams):
            search = field.metadata["search"]
            assert (field.name in drawn) == (search is not None)
            if isinstance(search, Uniform):  # and LogUniform
                assert search.low <= drawn[field.name] <= search.high
            elif isinstance(search, Choice):
                assert drawn[field.name] in search.values
        assert {name: getattr(parse(hparams, drawn), name) for name in drawn} == drawn


def test_log_uniform_is_even_in_the_logarithm_and_choice_meets_all():
    drawn = [draw(Made, trial) for trial in range(1, 2001)]
    assert np.mean([d["rate"] < 0.1 for d in drawn]) == pytest.approx(0.5, abs=0.04)
    assert np.mean([d["share"] < 0.5 for d in drawn]) == pytest.approx(0.5, abs=0.04)
    assert {d["kind"] for d in drawn} == {"a", "b", "c"}
    assert np.mean([1 - d["almost"] < 10**-3.5 for d in drawn]) == pytest.approx(0.5, abs=0.04)
    assert all(1 - 1e-2 <= d["almost"] <= 1 - 1e-5 for d in drawn)


def test_text_becomes_what_the_default_is():
    found = parse(Made, {"rate": "1e-3", "fixed": "12", "switch": "True"})
    assert (found.rate, found.fixed, found.switch) == (0.001, 12, True)
    assert type(found.rate) is float and type(found.fixed) is int
    assert parse(Made, {"switch": "false"}).switch is False


def test_values_of_the_right_type_are_taken_as_they_are():
    found = parse(Made, {"rate": 0.25, "fixed": 12, "switch": True})
    assert (found.rate, found.fixed, found.switch) == (0.25, 12, True)
    rate = parse(Made, {"rate": 2}).rate
    assert rate == 2.0 and type(rate) is float


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("rate", "fast", "float"),
        ("rate", None, "float"),
        ("rate", True, "float"),
        ("rate", [0.1], "float"),
        ("fixed", "1.5", "int"),
        ("fixed", 1.5, "int"),
        ("fixed", True, "int"),
        ("switch", "yes", "bool"),
        ("switch", 1, "bool"),
        ("switch", 0, "bool"),
    ],
)
def test_the_wrong_type_is_named(name, value, kind):
    with pytest.raises(ValueError) as caught:
        parse(Made, {name: value})
    assert str(caught.value) == f"hyperparameter {name} is {value!r}, expected {kind}"


@pytest.mark.parametrize("value", ["d", "A", "", "0.5", 0.5, None, ["a"]])
def test_a_word_with_choices_must_be_one_of_them(value):
    assert [parse(Made, {"kind": kind}).kind for kind in "abc"] == ["a", "b", "c"]
    with pytest.raises(ValueError) as caught:
        parse(Made, {"kind": value})
    assert str(caught.value) == f"hyperparameter kind is {value!r}, expected one of a, b, c"


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(ValueError) as caught:
        parse(Made, {"rate": 1.0, "rat": 1.0})
    assert str(caught.value) == (
        "unknown hyperparameter 'rat': there are rate, share, kind, fixed, switch, almost (did you mean 'rate'?)"
    )


@pytest.mark.parametrize("kinds", [(LogInteger, LogUniform), (Integer, Uniform)])
def test_integers_are_draws_rounded_down(kinds):
    for seed in range(50):
        found, exact = (kind(1, 8).draw(np.random.default_rng(seed)) for kind in kinds)
        assert type(found) is int and found == math.floor(exact)


# The paper's table of hyperparameters: the default, and the exponents of 10 between which it is drawn, or the choices.
TABLE = {
    "irm": {"penalty": (100, -1, 5), "anneal": (500, 0, 4)},
    "group_dro": {"eta": (0.01, -3, -1)},
    "mldg": {"beta": (1, -1, 1)},
    "coral": {"gamma": (1, -1, 1)},
    "mmd": {"gamma": (1, -1, 1)},
    "dann": {
        "adversary": (1, -2, 2),
        "discriminator_decay": (0, -6, -2),
        "discriminator_steps": (1, 0, math.log10(8)),
        "gradient_penalty": (0, -2, 1),
        "beta1": (0.5, [0, 0.5]),
    },
    "mtl": {"ema": (0.99, [0.5, 0.9, 0.99, 1])},
    "sagnet": {"adversary": (0.1, -2, 1)},
    "fish": {"meta_lr": (0.5, [0.05, 0.1, 0.5])},
    "focal": {"gamma": (1, math.log10(0.5), math.log10(5))},
    "ldam": {"max_m": (0.5, -1, -0.1), "scale": (30, [10, 30])},
    "boda": {"nu": (1, -0.5, 0), "weight": (0.1, -2, -0.5)},
}


@pytest.mark.parametrize("name", TABLE)
def test_defaults_and_search_ranges_are_those_of_the_paper(name):
    hparams = algorithms.find(name).Hparams
    for parameter, (default, *wanted) in TABLE[name].items():
        assert getattr(hparams(), parameter) == default
        search = algorithms.ranges(hparams)[parameter]
        found = (
            [list(search.values)] if isinstance(search, Choice) else [math.log10(search.low), math.log10(search.high)]
        )
        assert found == (wanted if isinstance(search, Choice) else pytest.approx(wanted))


def test_cb_loss_searches_one_minus_beta_as_in_the_paper():
    search = algorithms.ranges(algorithms.find("cb_loss").Hparams)["beta"]
    assert isinstance(search, OneMinus) and isinstance(search.distribution, LogUniform)
    assert (search.distribution.low, search.distribution.high) == (1e-5, 1e-2)


@pytest.mark.parametrize(("finetune", "rate", "exponents"), [(False, 1e-3, (-4.5, -2.5)), (True, 5e-5, (-5, -3.5))])
@pytest.mark.parametrize("name", ["erm", "cdann"])
def test_learning_rate_and_weight_decay_depend_on_finetuning(name, finetune, rate, exponents):
    """Digits, trained from random initialisation, have no weight decay in the paper; its ResNets have 10^U(−6, −2)."""
    hparams = algorithms.find(name).Hparams
    found, default = algorithms.ranges(hparams, finetune), parse(hparams, draw(hparams, 0, finetune=finetune))
    for parameter in {"lr", "discriminator_lr"} & found.keys():
        assert getattr(default, parameter) == rate
        assert [math.log10(found[parameter].low), math.log10(found[parameter].high)] == pytest.approx(exponents)
    assert default.weight_decay == 0 and ("weight_decay" in found) == finetune
    if finetune:
        assert (found["weight_decay"].low, found["weight_decay"].high) == (1e-6, 1e-2)


def test_distributions_say_what_they_are():
    found = [
        str(d)
        for d in (Uniform(0, 0.4), LogUniform(10**-4.5, 10**-2.5), LogInteger(1, 8), Integer(1, 8), Choice(1, "two"))
    ]
    expected = [
        "uniform 0 to 0.4",
        "log-uniform 3.2e-05 to 0.0032",
        "log-uniform 1 to 8, rounded down",
        "uniform 1 to 8, rounded down",
        "one of 1, two",
    ]
    assert found == expected


def ends(declared):
    """0 and the ends of the search range of a number, except the default."""
    search, default = declared.metadata["search"], declared.default
    if isinstance(default, bool | str):
        return []
    found = [
        0,
        *getattr(search, "values", ()),
        *(getattr(search, end) for end in ("low", "high") if hasattr(search, end)),
    ]
    return [value for value in dict.fromkeys(map(type(default), found)) if value != default]


@pytest.mark.parametrize("name", [entry.name for entry in algorithms.catalogue() if entry.passes])
def test_zero_and_the_ends_of_a_search_range_give_numbers_or_are_refused_in_one_sentence(name):
    """In the first and in the last step, with classes and a domain that have no training samples."""
    counts = torch.tensor([[400, 3, 0, 9], [1, 25, 70, 0], [0, 0, 0, 0], [6, 5, 40, 2]])
    y, domain = torch.tensor([0, 1, 3, 0, 1, 2, 0, 2, 3]), torch.tensor([0, 1, 3]).repeat_interleave(3)
    batch = DomainBatch(torch.randn(9, 4) + y[:, None], y, domain)
    shared = {f.name for f in fields(algorithms.Algorithm.Hparams)}
    for declared in fields(algorithms.find(name).Hparams):
        for value in [] if declared.name in shared else ends(declared):
            torch.manual_seed(0)
            try:
                algorithm = algorithms.build(
                    name, backbones.build("mlp", (4,), 5), Task(counts), {declared.name: value}
                )
            except ValueError as error:
                assert value == 0 and f"{declared.name} is {value}" in str(error)
                continue
            optimizers, algorithm.steps = algorithm.train().optimizers(), 2
            for algorithm.step in range(2):
                terms = algorithm.update(batch, optimizers, torch.Tensor.backward)
                assert all(map(torch.isfinite, terms.values())), (declared.name, value, terms)
            assert all(parameter.isfinite().all() for parameter in algorithm.parameters()), (declared.name, value)


@pytest.mark.parametrize(
    ("name", "word", "expected"),
    [
        ("mixup", "alpha=0", "mixup: hyperparameter alpha is 0.0, expected a number above 0"),
        ("eqrm", "quantile=1", "eqrm: hyperparameter quantile is 1.0, expected a number between 0 and 1"),
        ("fishr", "ema=1", "fishr: hyperparameter ema is 1.0, expected a number below 1"),
        ("supcon", "temperature=nan", "supcon: hyperparameter temperature is nan, expected a number above 0"),
    ],
)
def test_a_value_beyond_the_limits_is_named_with_them(name, word, expected):
    hparam, _, value = word.partition("=")
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        algorithms.parse_for(name, {hparam: value})


STARTS = {
    "boda": "warmup",
    "boda@reference": "warmup",
    "erm_plus_plus": "head_first",
    "irm": "anneal",
    "jtt": "first",
    "tally": "warmup",
    "trm": "start",
}


@pytest.mark.parametrize("name", STARTS)
def test_a_phase_that_a_run_is_too_short_for_is_named_with_the_way_out(name):
    hparam = STARTS[name]
    late, share = (algorithms.parse_for(name, {hparam: value}) for value in (60, 0.1))
    (note,) = algorithms.unreached(late, 60)
    assert note.startswith(f"{hparam} is 60 and the run has 60 steps, ") and note.endswith(f"fit --hp {hparam}=0.1")
    assert not algorithms.unreached(late, 61) and not algorithms.unreached(share, 60)


def test_in_a_combination_the_phase_of_each_part_is_named():
    hparams = algorithms.parse_for("boda@reference+tally", {"tally.warmup": 0.1})
    (note,) = algorithms.unreached(hparams, 300)
    assert note.startswith("boda.warmup is 500 and the run has 300 steps")

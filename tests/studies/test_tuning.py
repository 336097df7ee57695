"""The committed page on tuning the last stage is what its records give, and the rules do what they say."""

from pathlib import Path

import pytest
from studies.tuning import __main__ as study
from studies.tuning.page import CHOSEN, DEVISED, by_set, gains, page, validation
from studies.tuning.rules import RULES


def test_the_page_is_what_the_records_give():
    assert study.PAGE.read_text(encoding="utf-8") == page(study.records())


def test_records_have_no_path_and_every_unit_once():
    text = study.RECORDS.read_text(encoding="utf-8")
    assert not any(place in text for place in ("/tmp", "/work", "/home", str(Path.home())))
    units = [(of["set"], of["split"], of["recipe"]) for of in study.records()]
    assert len(units) == len(set(units)) > 0


def test_the_chosen_rule_is_the_safest_and_then_the_best_where_it_was_chosen():
    parts = [by_set(study.records())[name] for name in DEVISED]

    def merit(name):
        found = [gains(part, RULES[name]) for part in parts]
        return round(min(map(min, found)), 3), sum(sum(of) / len(of) for of in found)

    assert max((name for name in RULES if "empty" not in name), key=merit) == CHOSEN.removesuffix(", few empty")


def test_tuning_chooses_by_that_rule():
    for record in study.records():
        assert record["chosen"] == RULES[CHOSEN](validation(record)), record


def said(pairs, loss, p, beaten, empty=0.0):
    """What validation says of three α."""
    made = {a: {"pairs": pairs[i], "loss": loss[i], "beaten": beaten[i]} for i, a in enumerate((0.0, 0.5, 1.0))}
    for i, a in enumerate((0.5, 1.0)):
        over = {"accuracy": pairs[i + 1] - pairs[0], "log_loss": loss[i + 1] - loss[0]}
        made[a]["over"] = {metric: [value, 0.0, 0.0, p[i]] for metric, value in over.items()}
    made[0.0]["empty"] = empty
    return made


@pytest.mark.parametrize(
    ("rule", "chosen"),
    [
        ("always ½", 0.5),
        ("accuracy", 1.0),
        ("log loss", 0.5),
        ("accuracy, 5 %", 0.5),
        ("log loss, 5 %", 0.5),
        ("log loss, 1 %", 0.0),
        ("½ by log loss, 5 %", 0.5),
        ("both, 5 %", 0.5),
        ("unbeaten, 1 %", 0.0),
        ("unbeaten, 5 %", 0.5),
        ("unbeaten, 5 %, few empty", 0.5),
    ],
)
def test_a_rule_chooses(rule, chosen):
    assert RULES[rule](said((60, 62, 63), (1.0, 0.8, 0.9), (0.03, 0.2), (0.03, 1.0, 0.4))) == chosen


def test_no_rule_moves_for_what_is_worse_or_cannot_be_judged():
    worse = said((60, 50, 40), (1.0, 1.2, 1.3), (0.001, 0.001), (1.0, 0.001, 0.001))
    assert all(rule(worse) == 0 for name, rule in RULES.items() if not name.startswith("always"))
    better = said((60, 70, 80), (1.0, 0.8, 0.5), (0.001, 0.001), (0.001, 0.001, 1.0), empty=0.5)
    assert RULES["unbeaten, 5 %"](better) == 1 and RULES["unbeaten, 5 %, few empty"](better) == 0

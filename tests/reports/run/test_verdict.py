"""What the page of a run says first, and what it advises, against hand-made results."""

import shlex
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from crosstail.reports.document.model import Cards, Code, Items, Text
from crosstail.reports.run.critical import critical_blocks, critical_tables
from crosstail.reports.run.tested import Tested as Shown
from crosstail.reports.run.verdict import next_steps, tone, usable

TOTALS = [[100, 100], [100, 2]]
GOOD, WEAK = [[95, 96], [94, 2]], [[95, 96], [30, 0]]


def first(results):
    """The answer and the cards by their labels."""
    answer, *_, cards = usable(Shown.of_results(results), results)
    assert isinstance(answer, Text) and answer.lead and isinstance(cards, Cards)
    return answer.text, {card.label: card for card in cards.cards}


def steps(result):
    return list(next_steps([result], Shown.of_results([result]), Path("run")))


def commands(result):
    return [shlex.split(block.text) for block in steps(result) if isinstance(block, Code)]


def advice(result):
    return " ".join(item.text for block in steps(result) if isinstance(block, Items) for item in block.items)


def test_the_answer_names_pairs_that_are_clearly_worse(make_result):
    text, cards = first([make_result(WEAK, totals=TOTALS)])
    assert "55.2 %" in text and "1 of 4 tested pairs" in text and "d1 / c0 with 30 of 100 right" in text
    assert cards["Worst pair"].value == "0.0 %" and "d1 / c1 (2 test samples" in cards["Worst pair"].detail
    assert cards["Few-shot pairs"].value == "30.0 %" and cards["Few-shot pairs"].tone == "bad"
    assert "With the domain known" not in cards


def test_one_wrong_answer_of_two_is_no_clear_failure(make_result):
    text, _ = first([make_result([[95, 96], [94, 1]], totals=TOTALS)])
    assert "No pair is lower than the average by more than chance explains" in text
    assert "The lowest: d1 / c1 has 1 of 2 right (95 % interval 9.5 to 90.5)" in text


def test_a_pair_with_one_test_sample_is_not_clearly_worse(make_result):
    """Of 38 pairs with few samples, one wrong answer in a pair with one is what chance explains."""
    totals = [[1] + [3] * 18, [3] * 19]
    result = make_result([[0] + [3] * 18, [3] * 19], totals=totals, counts=totals)
    text, _ = first([result])
    assert "No pair is lower than the average by more than chance explains" in text
    assert "clearly worse" not in advice(result)


def test_what_is_low_is_said_where_the_average_is_no_better(make_result):
    """A third is found in every pair: none is worse than the average, and all are bad."""
    text, _ = first([make_result([[33, 33], [33, 23]], totals=[[100, 100], [100, 68]])])
    assert "No pair is lower than the average" in text and "Guessing among the 2 classes would be better in 4" in text
    assert "Fewer than half of the answers are right in 4 pairs (in 4, the whole interval says so)" in text
    assert "d0 / c0 has 33 of 100 right (95 % interval 24.6 to 42.7)" in text
    guessed, _ = first([make_result([[90, 90], [90, 10]], totals=[[100, 100], [100, 100]])])
    assert "Guessing among the 2 classes would be better in 1 pair." in guessed


def test_what_must_not_be_missed_comes_first(make_result):
    """The recall of the class in every domain that has test samples of it."""
    result = make_result([[90, 30], [80, 0]], totals=[[100, 60], [100, 0]], known=[[90, 45], [80, 0]])
    tested = Shown.of_results([msgspec.structs.replace(result, critical={"c1": None})])
    heading, table = critical_blocks(tested)
    assert heading.text == "What must not be missed: c1"
    assert table.header == ["site", "found", "recall, %", "95 % interval", "domain known, %"]
    assert table.rows == [["d0", "30 of 60", "50.0", "37.7 to 62.3", "75.0"]]
    (both,) = critical_tables(replace(tested, critical=["c1", "c0"]))
    assert [row[0] for row in both.rows] == ["c1, d0", "c0, d0", "c0, d1"]
    assert "no test samples of c9" in critical_tables(replace(tested, critical=["c9"]))[0].note
    assert list(critical_blocks(Shown.of_results([result]))) == []


def test_what_is_not_known_is_said(make_result):
    assert "not measured" in first([make_result(GOOD, totals=TOTALS)])[0]
    counts = [[30, 5], [0, 0]]
    unseen = make_result([[0, 0], [50, 60]], totals=[[0, 0], [100, 100]], counts=counts, protocol="dg", unseen="d1")
    text, _ = first([unseen])
    assert "On d1, a domain that the model was not trained on" in text and "not measured" not in text
    untested = [make_result([[0, 0], [0, 0]], totals=[[0, 0], [0, 0]])]
    (nothing,) = usable(Shown.of_results(untested), untested)
    assert nothing.lead and "unknown" in nothing.text


def test_a_model_that_uses_the_domain_has_a_card_for_it(make_result):
    _, cards = first([make_result(WEAK, totals=TOTALS, known=GOOD)])
    assert cards["With the domain known"].value == "96.2 %"


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0, 49, "bad"), (40, 79, "warn"), (70, 99, ""), (90, 99, "good")]
)
def test_colours_follow_the_interval(low, high, expected):
    assert tone({"low": low, "high": high}) == expected


def test_the_advice_names_pairs_and_complete_commands(make_result):
    result = make_result(WEAK, totals=TOTALS, dataset="my data.csv", columns={"domain": "site"}, second_stage="retrain")
    text = advice(result)
    assert "d1 / c0 (7 training samples)" in text and "d1 / c1 (2)" in text and "FILES" not in text
    same = ["my data.csv", "--column", "domain=site"]
    method = ["--algorithm", "erm", "--second-stage", "retrain"]
    assert commands(result) == [
        ["crosstail", "export", "run", "--out", "run.onnx"],
        ["crosstail", "fit", same[0], *method, "--protocol", "dg", *same[1:], "--out", "run-dg"],
        ["crosstail", "race", *same, "--out", "run-race"],
        ["crosstail", "fit", same[0], *method, *same[1:], "--refit", "--out", "run-final"],
    ]


def test_where_most_pairs_have_few_test_samples_the_advice_is_to_cross_validate(make_result):
    few = [[100, 9], [4, 2]]
    result = make_result([[95, 8], [4, 1]], totals=few, dataset="my data.csv")
    assert "Collect test samples" not in advice(result)
    text = " ".join(block.text for block in steps(result) if isinstance(block, Text))
    assert "3 of 4 pairs have fewer than 10 test samples. Cross-validation tests every sample once" in text
    refits = [words for words in commands(result) if "--refit" in words]
    assert len(refits) == 1 and refits[0][-3:] == ["--refit", "--out", "run-final"]
    assert "--folds 5" in shlex.join(refits[0]) and "--algorithm erm" in shlex.join(refits[0])
    assert commands(result)[0] == refits[0]
    for other in ({"folds": 5, "fold": 1}, {"protocol": "dg", "unseen": "d1"}, {"stop_at": (9,)}):
        assert "Collect test samples" in advice(make_result([[95, 8], [4, 1]], totals=few, **other))
    half = make_result([[95, 80], [4, 1]], totals=[[100, 90], [4, 2]], dataset="my data.csv")
    assert "d1 / c1 (2)" in advice(half) and not any("--folds" in words for words in commands(half))


@pytest.mark.parametrize(("installed", "file"), [(True, "run.onnx"), (False, "run.pt2")])
def test_a_model_is_exported_in_a_format_that_this_installation_writes(make_result, monkeypatch, installed, file):
    monkeypatch.setattr("crosstail.prediction.export.has_onnx", lambda: installed)
    (words,) = [words for words in commands(make_result(WEAK, totals=TOTALS)) if words[1] == "export"]
    assert words[-1] == file and ("--format" in words) == (not installed)


def test_a_group_that_leaks_comes_first_and_is_in_every_command_that_trains(make_result):
    result = make_result(WEAK, totals=TOTALS, dataset="m.csv", columns={"domain": "site"})
    leaking = msgspec.structs.replace(result, data=msgspec.structs.replace(result.data, leaks="patient id"))
    warning, *_ = usable(Shown.of_results([leaking]), [leaking])
    assert "inflated" in warning.text and "--column 'group=patient id'" in warning.text
    trained = [line for line in commands(leaking) if line[1] in ("fit", "race")]
    assert len(trained) == 3 and all("group=patient id" in line and "domain=site" in line for line in trained)


@pytest.mark.parametrize(
    ("source", "header", "words"),
    [
        ("a.csv", "path,site,label", ["a.csv", "--site", "column:site"]),
        ("a.csv", "path;hospital", ["a.csv"]),
        ("a.csv", "file,site", None),
        ("v.npz", "", ["v.npz"]),
        ("digits", "", None),
    ],
)
def test_the_command_to_predict_names_what_it_can_read(make_result, tmp_path, monkeypatch, source, header, words):
    monkeypatch.chdir(tmp_path)
    Path(source).write_text(f"{header}\n")
    found = [
        line[2:]
        for line in commands(make_result(WEAK, totals=TOTALS, dataset=source, columns={"domain": "site"}))
        if line[1] == "predict"
    ]
    assert found == ([["run", *words, "--coverage", "0.9", "--out", "run.csv"]] if words else [])


def test_one_domain_cannot_be_left_out(make_result):
    result = make_result([[9, 1]], totals=[[10, 10]], counts=[[5, 5]])
    assert [words[1] for words in commands(result)] == ["export", "race", "fit"]

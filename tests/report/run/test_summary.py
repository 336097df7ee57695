"""The metrics of a run in the terminal."""

import msgspec
from rich.console import Console

from crosstail.report.document import terminal
from crosstail.report.run.summary import folds_summary, result_summary
from crosstail.training.result import RawWeights

HITS, TOTALS = [[9, 1], [3, 0]], [[10, 4], [6, 0]]


def printed(table):
    console = Console(width=80)
    with console.capture() as capture:
        terminal.show([table], console)
    return capture.get()


def test_a_run_has_its_accuracies_shots_and_statistics(make_result):
    table = result_summary(make_result(HITS, totals=TOTALS, alpha=None, second_stage="retrain"))
    assert table.title == "erm:retrain on photos: test accuracy"
    values = {row[0]: row[1] for row in table.rows}
    assert values == {
        "pair average, %": "55.0",
        "worst pair": "25.0",
        "10th percentile": "30.0",
        "average over domains": "60.7",
        "  d0": "71.4",
        "  d1": "50.0",
        "many-shot pairs": "90.0",
        "medium-shot pairs": "25.0",
        "few-shot pairs": "50.0",
        "transferability α": "–",
        "transferability β": "3.00",
        "transferability γ": "4.00",
    }
    about = {row[0]: row[2] for row in table.rows}
    assert "d0 / c1" in about["worst pair"] and "4 test samples: mostly chance" in about["worst pair"]
    assert "3 pairs" in about["10th percentile"] and "2 with fewer than 10" in about["10th percentile"]


def test_a_worst_pair_with_enough_test_samples_needs_no_warning(make_result):
    table = result_summary(make_result([[90, 10], [30, 0]], totals=[[100, 40], [60, 0]]))
    assert {row[0]: row[2] for row in table.rows}["worst pair"] == "d0 / c1"


def test_averaged_weights_have_the_raw_ones_beside_them(make_result):
    result = make_result(HITS, totals=TOTALS)
    other = make_result([[10, 4], [6, 0]], totals=TOTALS).test
    raw = RawWeights(selected_step=5, validation=other, test=other)
    table = result_summary(msgspec.structs.replace(result, raw=raw))
    assert [row[1] for row in table.rows if "raw" in row[0]] == ["100.0"]


def test_long_and_hostile_names_fit_80_columns(make_result):
    result = make_result(HITS, totals=TOTALS, dataset="[red]photos" * 9)
    names = {"domains": ["[b]hospital" * 9, "d1"], "classes": ["cat\x1b[2J" * 20, "c1"]}
    text = printed(result_summary(msgspec.structs.replace(result, **names)))
    assert max(map(len, text.splitlines())) <= 80 and "\x1b" not in text and "[red]" in text and "[b]" in text


def test_folds_have_a_row_each_and_their_mean(make_result):
    counts = [[30, 5], [0, 0]]
    folds = [
        make_result([[0, 0], hits], totals=[[0, 0], [10, 10]], counts=counts, protocol="dg", unseen=unseen)
        for unseen, hits in (("d1", [3, 4]), ("d0", [5, 6]))
    ]
    (table,) = folds_summary(folds)
    assert [row[:3] for row in table.rows] == [["d1", "35.0", "35.0"], ["d0", "55.0", "55.0"], ["mean", "45.0", "45.0"]]
    assert table.emphasised == {(2, j) for j in range(4)}

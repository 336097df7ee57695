import msgspec
import numpy as np
from rich.console import Console

from crosstail.metrics import PairAccuracy
from crosstail.reports.document import terminal
from crosstail.reports.run.summary import folds_summary, result_summary
from crosstail.training.result import RawWeights

HITS, TOTALS = [[9, 1], [3, 0]], [[10, 4], [6, 0]]


def printed(table):
    console = Console(width=80)
    with console.capture() as capture:
        terminal.show([table], console)
    return capture.get()


def test_a_run_has_its_accuracies_with_words_that_are_explained_beside_them(make_result):
    table = result_summary(make_result(HITS, totals=TOTALS, alpha=None, second_stage="retrain"))
    assert table.title == "erm:retrain on photos: test accuracy; a pair is one class in one domain"
    values = {row[0]: row[1] for row in table.rows}
    assert values == {
        "pair average, %": "55.0",
        "worst pair": "25.0",
        "10th percentile": "30.0",
        "average over domains": "53.8",
        "  d0": "57.5",
        "  d1": "50.0",
        "many-shot pairs": "90.0",
        "medium-shot pairs": "25.0",
        "few-shot pairs": "50.0",
    }
    about = {row[0]: row[2] for row in table.rows}
    assert "d0 / c1" in about["worst pair"] and "4 test samples: mostly chance" in about["worst pair"]
    assert about["medium-shot pairs"] == "1 with 21 to 100 training samples"
    assert "3 pairs" in about["10th percentile"] and "2 with fewer than 10" in about["10th percentile"]


def test_a_worst_pair_with_enough_test_samples_needs_no_warning(make_result):
    table = result_summary(make_result([[90, 10], [30, 0]], totals=[[100, 40], [60, 0]]))
    assert {row[0]: row[2] for row in table.rows}["worst pair"] == "d0 / c1"


def test_both_tracks_stand_side_by_side_where_the_model_uses_the_domain(make_result):
    table = result_summary(make_result(HITS, totals=TOTALS, known=[[10, 4], [2, 0]]))
    values = {row[0]: row[1:3] for row in table.rows}
    assert table.header[1:3] == ["domain unknown", "domain known"]
    assert values["pair average, %"] == ["55.0", "77.8"] and values["worst pair"] == ["25.0", "33.3"]
    assert values["  d1"] == ["50.0", "33.3"] and values["medium-shot pairs"] == ["25.0", "100.0"]
    ends = [PairAccuracy(np.array(hits), np.array(TOTALS)).interval() for hits in (HITS, [[10, 4], [2, 0]])]
    assert values["  95 % interval"] == [f"{100 * low:.1f} to {100 * high:.1f}" for low, high in ends]
    about = {row[0]: row[3] for row in table.rows}
    assert "unknown: d0 / c1" in about["worst pair"] and "known: d1 / c0" in about["worst pair"]
    assert (
        about["  d1"] == "worst" and "3 pairs" in about["10th percentile"] and "unknown" not in about["10th percentile"]
    )
    text = printed(table)
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text


def test_tracks_that_do_not_differ_are_shown_once(make_result):
    same, one = (result_summary(make_result(HITS, totals=TOTALS, known=known)) for known in (HITS, None))
    assert same.rows == one.rows and "--site" in same.note and "--site" not in one.note


def test_folds_have_both_tracks(make_result):
    known = [[10, 4], [2, 0]], [[9, 1], [6, 0]]
    results = [make_result(HITS, totals=TOTALS, known=hits, folds=2, fold=k) for k, hits in enumerate(known, 1)]
    pooled, folds = folds_summary(results)
    hits, totals = np.sum(known, axis=0), 2 * np.array(TOTALS)
    expected = f"{100 * np.mean((hits / np.maximum(totals, 1))[totals > 0]):.1f}"
    assert {row[0]: row[1:3] for row in pooled.rows}["pair average, %"] == ["55.0", expected]
    column = folds.header.index("domain known")
    assert [row[column] for row in folds.rows][:3] == ["77.8", "71.7", expected]
    assert [row[2] for row in folds.rows][:3] == ["55.0"] * 3


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


def test_a_run_without_test_samples_says_so(make_result):
    table = result_summary(make_result([[0, 0], [0, 0]], totals=[[0, 0], [0, 0]]))
    assert table.rows == [] and table.note == "There are no test samples." in printed(table)

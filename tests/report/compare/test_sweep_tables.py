"""A sweep in the terminal."""

from types import SimpleNamespace

from crosstail.report.compare.sweep_tables import selection_notes, selection_table, status_table
from crosstail.sweep.select import SeedSummary, SelectedTrial
from crosstail.sweep.status import MethodStatus
from crosstail.sweep.store import Failure


def choice(**other):
    known = {"plan": SimpleNamespace(trials=5), "method": "boda:retrain", "trial": 2, "hparams": {}, "validation": 0.5}
    return SelectedTrial(**{**known, "finished": 5, "pruned": 0, "failed": {}, "missing": 0, "keys": [], **other})


def test_the_selected_trials_have_their_test_accuracy():
    accuracy = {"pair_average": (0.4567, 0.012), "average": (0.5, None), "worst_domain": (None, None)}
    found = [choice(), choice(method="erm", trial=None, validation=None)]
    rows = selection_table(
        found, [SeedSummary("boda:retrain", 3, 3, accuracy), SeedSummary("erm", 1, 3, accuracy)]
    ).rows
    assert rows == [
        ["boda:retrain", "2", "50.0", "45.7 ± 1.2", "50.0", "–", "3"],
        ["erm", "–", "–", "45.7 ± 1.2", "50.0", "–", "1 of 3"],
    ]


def test_missing_and_failed_trials_are_named_with_their_errors():
    failure = Failure(kind="error", error=["Traceback", "a", "b", "ValueError: x"], attempts=2)
    notes = list(selection_notes([choice(missing=1, failed={3: failure}), choice(method="erm")]))
    assert notes == [
        "boda:retrain: 1 of 5 trials are missing",
        "boda:retrain: 1 of 5 trials failed",
        "  trial 3: error, 2 attempts",
        "    a",
        "    b",
        "    ValueError: x",
    ]


def test_the_status_has_a_row_per_method_and_the_total():
    rows = [MethodStatus("erm", 7, 7, 0, 0, 0, 0.0), MethodStatus("boda", 7, 3, 2, 1, 0, 250.0)]
    assert status_table(rows).rows == [
        ["erm", "7/7", "0", "0", "0", "0 s"],
        ["boda", "3/7", "2", "1", "0", "4 min"],
        ["all", "10/14", "2", "1", "0", "4 min"],
    ]
    assert status_table([*rows, MethodStatus("x", 1, 0, 0, 0, 0, None)]).rows[-1][-1] == "–"

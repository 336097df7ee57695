from types import SimpleNamespace

from crosstail.reports.compare.sweep_tables import selection_notes, selection_table, status_table
from crosstail.sweeps.select import SeedSummary, SelectedTrial
from crosstail.sweeps.status import MethodStatus
from crosstail.sweeps.store import Failure


def choice(unseen=None, **other):
    search = SimpleNamespace(trials=5, shared=SimpleNamespace(unseen=unseen, seed=1))
    known = {
        "plan": search,
        "method": "boda:retrain",
        "trial": 2,
        "hparams": {},
        "selected_on": "average",
        "validation": 0.5,
    }
    return SelectedTrial(**{**known, "finished": 5, "failed": {}, "missing": 0, "keys": [], **other})


def test_the_selected_trials_have_their_test_accuracy():
    accuracy = {"pair_average": (0.4567, 0.012), "average": (0.5, None), "worst_domain": (None, None)}
    found = [SeedSummary("boda:retrain", 2, 0.5, 3, 3, accuracy), SeedSummary("erm", None, None, 1, 3, accuracy)]
    rows = selection_table(found).rows
    assert rows == [
        ["boda:retrain", "2", "50.0", "45.7 ± 1.2", "50.0", "–", "3"],
        ["erm", "–", "–", "45.7 ± 1.2", "50.0", "–", "1 of 3"],
    ]


def test_the_domain_known_has_a_column_where_a_method_uses_it():
    accuracy = {"pair_average": (0.4567, 0.012), "average": (0.5, None), "worst_domain": (None, None)}
    found = [SeedSummary("mtl", 2, 0.5, 3, 3, accuracy, known=(0.6, 0.01)), SeedSummary("erm", 0, 0.4, 3, 3, accuracy)]
    table = selection_table(found)
    column = table.header.index("domain known")
    assert [row[column] for row in table.rows] == ["60.0 ± 1.0", "45.7 ± 1.2"]  # erm ignores it
    assert [len(row) for row in table.rows] == [len(table.header)] * 2
    assert "domain known" not in selection_table(found[1:]).header


def test_with_dg_accuracy_and_class_mean_are_on_the_unseen_domains():
    accuracy = {"accuracy": (0.8, 0.01), "class_mean": (0.75, 0.02)}
    unseen = {"art": (0.7, 0.03), "photo": (0.9, None)}
    table = selection_table([SeedSummary("erm", None, 0.95, 3, 3, accuracy, unseen)])
    assert table.header == ["method", "val", "accuracy", "class mean", "art", "photo", "seeds"]
    assert table.rows == [["erm", "95.0", "80.0 ± 1.0", "75.0 ± 2.0", "70.0 ± 3.0", "90.0", "3"]]
    (note,) = selection_notes([choice(unseen="art", missing=1)])
    assert note == "boda:retrain, unseen art, seed 1: 1 of 5 trials are missing"


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
    rows = [MethodStatus("erm", 7, 7, 0, 0, 0.0), MethodStatus("boda", 7, 3, 2, 1, 250.0)]
    assert status_table(rows).rows == [
        ["erm", "7/7", "0", "0", "0 s"],
        ["boda", "3/7", "2", "1", "4 min"],
        ["all", "10/14", "2", "1", "4 min"],
    ]
    assert status_table([*rows, MethodStatus("x", 1, 0, 0, 0, None)]).rows[-1][-1] == "–"

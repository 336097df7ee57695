from dataclasses import replace

import numpy as np

from crosstail.data import DomainDataset, with_gaps_noted


def dataset(split) -> DomainDataset:
    x, y, domain = np.zeros((4, 2), np.float32), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    return DomainDataset("tiny", x, y, domain, np.array(split), ("a", "b"), ("p", "q"), ("2 files left out",))


def test_another_split_replaces_the_notes_about_the_first():
    first = with_gaps_noted(dataset(["train", "test", "train", "test"]))
    assert any("cannot be learned" in note and "b" in note for note in first.gaps)
    again = with_gaps_noted(replace(first, split=np.array(["train", "train", "test", "test"])))
    assert not any("cannot be learned" in note for note in again.notes)
    assert again.notes == ("2 files left out", *again.gaps) and len(again.gaps) == 1
    assert with_gaps_noted(again).notes == again.notes


def test_a_complete_split_has_no_gaps():
    whole = with_gaps_noted(replace(dataset(["train"] * 4), gaps=()))
    assert whole.notes == ("2 files left out",)

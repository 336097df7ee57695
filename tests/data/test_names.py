"""Names that differ only in case, spaces or Unicode form: found in every source, refused, merged or kept."""

import shutil

import numpy as np
import pandas as pd
import pytest

from crosstail.data import DataSpec, load, load_source
from crosstail.data.names import SameName, same_names

ACCENT, SEPARATE = "caf\u00e9", "cafe\u0301"


def sources(tmp_path, photos):
    """The same 12 samples with classes and domains spelled in several ways, as a folder, a manifest and arrays."""
    root = photos(n=2, domains=("art ", "art", "web"), classes=("dog", "horse", "Horse"))
    shutil.rmtree(root / "web/Horse")
    (root / "web/Horse").mkdir()
    shutil.copy(root / "web/horse/0.jpg", root / "web/Horse/9.jpg")
    yield root
    rows = pd.DataFrame({"x": range(6), "domain": ["Art", "art"] * 3, "label": ["Horse", "horse", "dog"] * 2})
    rows.to_csv(tmp_path / "m.csv", index=False)
    np.save(tmp_path / "m.npy", np.eye(6, dtype=np.float32))
    yield tmp_path / "m.csv"
    np.savez(tmp_path / "a.npz", x=np.eye(6, dtype=np.float32), y=rows["label"].to_numpy("U"), domain=[0, 1] * 3)
    yield tmp_path / "a.npz"
    named = {"domains": ["art", "art "], "classes": ["dog", "horse", "Horse"]}
    np.savez(tmp_path / "b.npz", x=np.eye(6, dtype=np.float32), y=[2, 1, 0] * 2, domain=[0, 1] * 3, **named)
    yield tmp_path / "b.npz"


def test_spellings_are_found_merged_or_kept_in_every_source(tmp_path, photos):
    for source in sources(tmp_path, photos):
        found = load(source)
        assert {same.what for same in found.same_names} >= {"class"} and len(found.classes) == 3
        kept, merged = load(source, names="keep"), load(source, names="merge")
        assert kept.classes == found.classes and kept.checksum == found.checksum and not kept.same_names
        assert "Horse" not in merged.classes and "horse" in merged.classes and not merged.same_names
        assert not {"Art", "art "} & set(merged.domains)
        assert any("merged: " in note and "'Horse' (" in note and "'horse' (" in note for note in merged.notes)
        with pytest.raises(ValueError, match=r"'Horse' \(.*--names merge .*--names keep"):
            load_source(DataSpec(dataset=str(source)))
        assert len(load_source(DataSpec(dataset=str(source), names="merge"))) == len(found)


def test_merging_is_the_same_as_renaming(photos):
    root = photos(n=4, classes=("dog", "horse", "horse "))
    merged = load(root, names="merge")
    for folder in root.glob("*/horse "):
        for file in folder.iterdir():
            file.rename(folder.with_name("horse") / f"more{file.name}")
        folder.rmdir()
    renamed = load(root)
    assert (
        merged.classes == renamed.classes == ("dog", "horse") and merged.counts().tolist() == renamed.counts().tolist()
    )


@pytest.mark.parametrize(
    ("spellings", "chosen"),
    [
        ({"horse": 2, "horse ": 9}, "horse"),
        ({"Horse": 2, "horse": 9}, "horse"),
        ({ACCENT: 2, SEPARATE: 9}, ACCENT),
        ({"STRASSE": 1, "straße": 9}, "straße"),
    ],
)
def test_the_tidy_spelling_is_chosen_then_the_frequent_one(spellings, chosen):
    (same,) = same_names("class", spellings)
    assert same.spellings == spellings and same.chosen == chosen


def test_different_names_stay_apart():
    assert same_names("class", dict.fromkeys(["cat", "cats", "ca t", "cafe", ACCENT, "1", "01"], 1)) == []


def test_what_cannot_be_seen_is_shown():
    assert str(SameName("class", {ACCENT: 1200, SEPARATE: 3})) == r"class 'café' (1,200) and 'cafe\u0301' (3)"
    assert str(SameName("domain", {"a": 1, "a ": 2})) == "domain 'a' (1) and 'a ' (2)"


def test_groups_are_names_too(tmp_path):
    np.save(tmp_path / "m.npy", np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32))
    rows = {
        "x": range(8),
        "domain": "a",
        "label": [0, 1] * 4,
        "group": ["P1", "p1", "p1", None, None, "p2", "p3", "p4"],
    }
    pd.DataFrame(rows).to_csv(tmp_path / "m.csv", index=False)
    found = load(tmp_path / "m.csv")
    assert found.same_names == (SameName("group", {"p1": 2, "P1": 1}),) and len(set(found.group.tolist())) == 7
    merged = load(tmp_path / "m.csv", names="merge")
    assert len(set(merged.group[:3].tolist())) == 1 and len(set(merged.group.tolist())) == 6


def test_groups_in_paths_are_names_too(photos):
    root = photos(n=4)
    for file in root.glob("*/*/3.jpg"):
        file.rename(file.with_name("P1.jpg"))
        file.with_name("0.jpg").rename(file.with_name("p1.jpg"))
    (same,) = load(root, group_by=r"(?i)p\d").same_names
    assert same.what == "group" and set(same.spellings) == {"P1", "p1"}
    assert load(root, group_by=r"(?i)p\d", names="merge").group is not None

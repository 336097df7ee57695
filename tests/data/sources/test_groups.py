"""Groups: from a column, an array or a pattern in paths, what is noted about them, and columns that look like one."""

import re
import shlex
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from crosstail.data import ImageFiles, load, load_arrays, save_arrays
from crosstail.data.sources._groups import looks_like_group, names_in_paths, numbered


@pytest.fixture
def manifest(tmp_path):
    """Write a manifest of vectors: four rows per pair of two domains and two classes, with more columns as given."""

    def make(name="m.csv", n=16, **columns):
        i = np.arange(n)
        table = pd.DataFrame({"x": i, "domain": np.where(i < n / 2, "a", "b"), "label": i % 2} | columns)
        np.save(tmp_path / "m.npy", np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32))
        file = tmp_path / name
        table.to_parquet(file) if name.endswith("parquet") else table.to_csv(file, index=False)
        return file

    return make


@pytest.fixture
def arrays(tmp_path):
    def make(**more):
        x = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
        np.savez(tmp_path / "a.npz", x=x, y=np.arange(16) % 2, domain=np.arange(16) // 8, **more)
        return tmp_path / "a.npz"

    return make


def together(group):
    """Which samples are in a group with which."""
    return (np.asarray(group)[:, None] == np.asarray(group)[None]).tolist()


def group_notes(dataset):
    return [note for note in dataset.notes if "group" in note]


PAIRS = np.repeat(np.arange(8), 2)


# ---- manifests


@pytest.mark.parametrize("name", ["m.csv", "m.parquet"])
@pytest.mark.parametrize("values", [PAIRS, PAIRS.astype(float), [f"p{i}" for i in PAIRS], pd.Categorical(PAIRS)])
def test_a_column_of_words_or_numbers(manifest, name, values):
    dataset = load(manifest(name, group=values))
    assert dataset.group.tolist() == PAIRS.tolist()
    named = load(manifest(name, lesion=values), columns={"group": "lesion"})
    assert named.group.tolist() == PAIRS.tolist() and not any("--column" in note for note in named.notes)
    assert named.checksum == dataset.checksum


def test_without_the_column_there_are_no_groups(manifest):
    dataset = load(manifest(age=PAIRS))
    assert dataset.group is None and group_notes(dataset) == []


@pytest.mark.parametrize("name", ["m.csv", "m.parquet"])
@pytest.mark.parametrize("empty", [None, "", " "])
def test_an_empty_cell_is_a_group_of_its_own(manifest, name, empty):
    dataset = load(manifest(name, group=["p", empty, "q", empty, "p", empty] + ["q", "r"] * 5))
    assert together(dataset.group) == together([0, 1, 2, 3, 0, 4] + [2, 5] * 5)
    assert any("3 of 16 samples have no group" in note and "row 1" in note for note in dataset.notes)


def test_a_missing_number_is_a_group_of_its_own(manifest):
    dataset = load(manifest("m.parquet", group=[np.nan, np.nan, 0, *range(13)]))
    assert together(dataset.group) == together([-2, -1, 0, *range(13)])


def test_a_number_that_is_written_in_two_ways_is_refused(manifest):
    with pytest.raises(ValueError, match=r"m.csv: line 4 has the group '7.0', elsewhere it is '7'"):
        load(manifest(group=["7", None, "7.0", *"abcdefghijklm"]))
    long = [f"1234567890123456{i:02}" for i in range(16)]  # as floats, they would be the same number
    assert load(manifest(group=long)).group is None  # every sample is a group of its own


def test_columns_that_cannot_be_groups_are_refused(manifest):
    with pytest.raises(ValueError, match="the column 'group' is list"):
        load(manifest("m.parquet", group=[[1]] * 16))
    with pytest.raises(ValueError, match="has no column 'patient' for 'group'"):
        load(manifest(), columns={"group": "patient"})


def test_a_row_that_is_listed_twice(manifest):
    file = manifest(group=[None, *PAIRS[1:]])
    twice = pd.concat([pd.read_csv(file, dtype=str)] * 2)
    twice.to_csv(file, index=False)
    assert len(load(file)) == 16
    twice.iloc[-1, -1] = "other"
    twice.to_csv(file, index=False)
    with pytest.raises(ValueError, match=r"line 33 .* with another group"):
        load(file)


# ---- arrays


@pytest.mark.parametrize("values", [PAIRS, PAIRS.astype(np.uint8), -PAIRS, PAIRS.astype(str)])
def test_an_array_of_words_or_numbers(arrays, values):
    assert load(arrays(groups=values)).group.tolist() == PAIRS.tolist()
    assert load(arrays()).group is None


def test_groups_are_saved_with_arrays(arrays, tmp_path):
    dataset = load(arrays(groups=["", *PAIRS[1:].astype(str)]))
    assert any("1 of 16 samples has no group" in note and "row 0" in note for note in dataset.notes)
    save_arrays(dataset, tmp_path / "again.npz")
    again = load_arrays(tmp_path / "again.npz")
    assert again.checksum == dataset.checksum and again.group.tolist() == dataset.group.tolist()


@pytest.mark.parametrize(
    ("groups", "named"),
    [(PAIRS[:5], "groups has the shape (5,)"), (PAIRS / 2, "groups is float64"), (PAIRS > 3, "groups is bool")],
)
def test_arrays_that_cannot_be_groups_are_refused(arrays, groups, named):
    with pytest.raises(ValueError, match=re.escape(f"a.npz: {named}")):
        load(arrays(groups=groups))


# ---- patterns in paths


def test_a_pattern_in_paths(photos):
    root = photos(n=4)
    dataset = load(root, group_by=r"[01]\.jpg|[23]\.jpg")
    assert len(set(dataset.group.tolist())) == 4
    names = [path[-5] for path in dataset.x.paths()]
    assert together(dataset.group) == together(names)  # the whole match
    by_class = load(root, group_by=r"/(\w+)/([0-9])")  # the first capture group, in a folder's name
    assert together(by_class.group) == together(dataset.y)


def test_paths_without_a_match_are_groups_of_their_own(photos):
    dataset = load(photos(n=4), group_by=r"(photo/cat)/[01]|sketch")  # in sketch, the capture group is not matched
    assert together(dataset.group) == together([0, 0, *range(1, 23)])
    assert any("22 of 24 samples have no group" in note and "photo/cat/2.jpg" in note for note in dataset.notes)


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("patient", ["--group-by patient", "photo/cat/0.jpg"]),
        ("(x)?", ["--group-by '(x)?'", "photo/cat/0.jpg"]),
        ("(cat", ["--group-by '(cat'", "regular expression"]),
        ("jpg", ["'jpg'", "24 samples"]),
    ],
)
def test_patterns_that_are_refused(photos, pattern, named):
    with pytest.raises(ValueError) as error:
        load(photos(n=4), group_by=pattern)
    assert all(part in str(error.value) for part in named) and "\n" not in str(error.value)


def test_a_pattern_needs_paths_and_no_other_groups(arrays, manifest, tmp_path):
    with pytest.raises(ValueError, match=r"no paths.*--group-by row"):
        load(arrays(), group_by="row")
    with pytest.raises(ValueError, match=r"m.csv: .*groups.*--group-by 0"):
        load(manifest(group=PAIRS), group_by="0")
    with pytest.raises(ValueError, match=r"digits: .*--group-by 0"):
        load("digits", group_by="0")


def test_half_a_million_paths():
    paths = [f"hospital{i % 7}/melanoma/patient{i // 5:06}_{i % 5}.jpg" for i in range(500_000)]
    start = time.process_time()
    names = names_in_paths("photos", ImageFiles("photos", paths), r"patient\d+")
    assert time.process_time() - start < 10
    assert names.nunique() == 100_000


# ---- what is noted


def test_groups_in_several_domains_or_classes_are_noted(manifest):
    dataset = load(manifest(group=["p", "p", *"abcdef", "b", *"ghijklm"]))
    (domains,) = [note for note in dataset.notes if "domains" in note]
    (classes,) = [note for note in dataset.notes if "classes" in note]
    assert "1 of 14 groups" in domains and "'b' (a, b)" in domains
    assert "2 of 14 groups" in classes and "'p' (0, 1)" in classes


def test_one_group_cannot_be_split(manifest):
    with pytest.raises(ValueError, match=r"m.csv: all 16 samples are in the group 'p'.*split"):
        load(manifest(group="p"))
    dataset = load(manifest(group="p", split=["train", "val", "test", "test"] * 4))
    assert not dataset.group.any()
    assert any("8 of 8 test samples share a group" in note for note in dataset.gaps)


def test_groups_of_one_sample_each_are_noted(manifest):
    assert any("16 groups has one sample" in note for note in load(manifest(group=range(16))).notes)


# ---- columns that look like a group


@pytest.mark.parametrize(
    "name",
    [
        "patient",
        "Patients",
        "lesion_id",
        "lesionID",
        "LesionId",
        "SUBJECT",
        "subject no.",
        "case_number",
        "video sequence",
    ],
)
def test_names_that_look_like_a_group(name):
    assert looks_like_group(name)


@pytest.mark.parametrize(
    "name",
    ["patient_age", "num_lesions", "n_cases", "number of lesions", "is_case", "showcase", "sequencer", "site", ""],
)
def test_names_that_do_not(name):
    assert not looks_like_group(name)


@pytest.mark.parametrize("name", ["m.csv", "m.parquet"])
def test_a_column_that_looks_like_a_group_is_noted(manifest, name):
    split = ["train", "test", "train", "test"] + ["val"] * 2 + ["train", "train", "test", "test"] + ["train"] * 6
    values = [0, 0, 1, 2, 2, 2, 3, 4, 4, 5, *range(6, 12)]
    file = manifest(name, **{"patient (id)": values, "split": split})
    (note,) = group_notes(load(file))
    assert "patient (id)" in note and "2 of 4 test samples" in note
    words = shlex.split(note[note.index("--column") :])
    assert words == ["--column", "group=patient (id)"]
    named = load(file, columns=dict([words[1].split("=")]))
    assert together(named.group) == together(values) and not any("--column" in note for note in named.notes)


@pytest.mark.parametrize("values", [range(16), ["p"] * 16, [None] * 16])
def test_a_column_that_cannot_be_a_group_is_not_noted(manifest, values):
    assert group_notes(load(manifest(patient=values))) == []
    assert group_notes(load(manifest("m.parquet", patient=[[1], [2]] * 8))) == []


def test_a_column_with_another_use_is_not_noted(manifest):
    file = manifest(patient=PAIRS, case=PAIRS % 2)
    (note,) = group_notes(load(file, columns={"label": "case"}))
    assert "group=patient" in note
    assert group_notes(load(file, columns={"label": "case", "domain": "patient"})) == []


def test_a_pattern_instead_of_the_column(photos):
    root = photos(n=4)
    paths = [str(path.relative_to(root)) for path in sorted(root.rglob("*.jpg"))]
    table = pd.DataFrame([path.split("/")[:2] for path in paths], columns=["domain", "label"])
    table.assign(path=paths, patient=[path[-5] for path in paths]).to_csv(root / "m.csv", index=False)
    assert any("group=patient" in note for note in load(root / "m.csv").notes)
    by_path = load(root / "m.csv", group_by=r"(\d)\.jpg")
    assert together(by_path.group) == together([path[-5] for path in by_path.x.paths()])
    assert not any("group=patient" in note for note in by_path.notes)
    (root / paths[0]).write_bytes(b"no image")
    assert any("group=patient" in note for note in load(root / "m.csv", skip_broken=True).notes)


def test_a_million_rows():
    names = pd.Series(np.char.add("HAM_", np.random.default_rng(0).integers(0, 200_000, 1_000_000).astype(str)))
    names = names.astype(pd.ArrowDtype(pa.string()))
    start = time.process_time()
    group = numbered(names)
    assert time.process_time() - start < 5
    assert group.max() + 1 == names.nunique()

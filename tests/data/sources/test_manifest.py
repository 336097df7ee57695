"""Manifests: columns under any name, paths in their folder, labels of any kind, and split files."""

import numpy as np
import pandas as pd
import pytest

from crosstail.data import ImageFiles, kind_in, load, load_manifest, read_split
from crosstail.data.inputs import image_files

ROWS = [
    ("photo", "cat", "a/1.jpg", "train"),
    ("photo", "dog", "a/2.jpg", "val"),
    ("sketch", "cat", "b/1.jpg", "test"),
    ("sketch", "dog", "b/2.jpg", "train"),
]


@pytest.fixture
def write(tmp_path, picture):
    """Write rows as CSV (or Parquet), and small images for their paths."""

    def make(rows=ROWS, columns=("domain", "label", "path", "split"), name="m.csv", images=True):
        table = pd.DataFrame(rows, columns=list(columns))
        path = tmp_path / name
        table.to_csv(path, index=False) if name.lower().endswith(".csv") else table.to_parquet(path)
        if images and "path" in columns:
            for seed, file in enumerate(table["path"]):
                (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
                picture(20, 24, seed=seed).save(tmp_path / file)
        return path

    return make


@pytest.mark.parametrize("name", ["m.csv", "m.parquet", "M.CSV"])
def test_csv_and_parquet(write, name):
    dataset = load_manifest(write(name=name))
    assert (dataset.name, dataset.domains, dataset.classes) == (name[0], ("photo", "sketch"), ("cat", "dog"))
    assert isinstance(dataset.x, ImageFiles) and dataset.x.paths() == [row[2] for row in ROWS]
    assert dataset.y.tolist() == [0, 1, 0, 1] and dataset.domain.tolist() == [0, 0, 1, 1]
    assert dataset.split.tolist() == ["train", "val", "test", "train"] and dataset.notes == ()
    assert dataset.x[:].shape == (4, 224, 224, 3)


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_other_separators(write, separator, name):
    path = write()
    expected = load_manifest(path)
    path.write_text(path.read_text().replace(",", separator))
    dataset = load_manifest(path)
    assert dataset.checksum == expected.checksum
    assert any(name in note for note in dataset.notes) and expected.notes == ()
    assert kind_in(str(path)) is image_files.KIND


def test_a_frame_of_paths_is_a_manifest(write, tmp_path):
    path = write()
    frame = pd.read_csv(path).rename(columns={"domain": "site"})
    dataset = load(frame.astype({"site": "category"}), columns={"domain": "site"}, root=tmp_path)
    assert dataset.checksum == load(path).checksum and dataset.name == "DataFrame"
    with pytest.raises(ValueError, match=r"^DataFrame: has no column 'domain' but site, .* columns=\{'domain'"):
        load(frame)
    with pytest.raises(ValueError, match=r"^DataFrame: row 2 has no label"):
        load(frame.assign(label=["cat", "dog", None, "cat"]), columns={"domain": "site"}, root=tmp_path)


def test_a_frame_of_numbers_is_vectors():
    rng = np.random.default_rng(0)
    about = {"domain": np.arange(40) % 2, "label": np.arange(40) // 2 % 2, "patient": np.arange(40) // 4}
    frame = pd.DataFrame(rng.normal(size=(40, 5))).assign(**about, comment="none")
    dataset = load(frame)
    np.testing.assert_array_equal(dataset.x, frame[list(range(5))].to_numpy(np.float32))
    assert dataset.domain.tolist() == about["domain"].tolist() and dataset.classes == ("0", "1")
    assert "5 columns of numbers" in dataset.notes[0] and "0, 1, …, 4" in dataset.notes[0]
    assert any("patient looks like a group" in note for note in dataset.notes)
    assert load(frame, columns={"group": "patient"}).group is not None
    mixed = load(frame.assign(label=["cat", 3] * 20))
    assert mixed.classes == ("3", "cat")
    with pytest.raises(ValueError, match=r"^DataFrame: has neither a column 'path' nor columns of numbers"):
        load(frame[["domain", "label", "comment"]])
    with pytest.raises(ValueError, match=r"^DataFrame: row 7 of x"):
        load(frame.assign(more=[np.nan if i == 7 else 0.0 for i in range(40)]))


def test_the_references_header(write):
    dataset = load_manifest(write(columns=("env", "label", "path", "split")))
    assert dataset.domains == ("photo", "sketch")


def test_columns_of_other_names(write):
    path = write(columns=("site", "diagnosis", "path", "fold"))
    dataset = load(path, columns={"domain": "site", "label": "diagnosis", "split": "fold"})
    assert dataset.classes == ("cat", "dog") and dataset.split.tolist()[1] == "val"
    unsplit = load(path, columns={"domain": "site", "label": "diagnosis"})
    assert unsplit.counts("train").sum() == 4  # one sample per pair


def test_other_words_for_the_splits(write):
    words = ["Training", "validation", "dev", "valid", "testing", "TEST"]
    rows = [("p", str(i % 2), f"{i}.png", word) for i, word in enumerate(words)]
    assert load_manifest(write(rows)).split.tolist() == ["train", "val", "val", "val", "test", "test"]


def test_numbers_are_in_their_order(write):
    rows = [(str(d), str(c), f"{d}-{c}.png", "train") for d in (10, 9) for c in (2, 11, 1)]
    for name in ("m.csv", "m.parquet"):
        dataset = load_manifest(write(rows, name=name))
        assert (dataset.domains, dataset.classes) == (("9", "10"), ("1", "2", "11"))
        assert dataset.y.tolist() == [1, 2, 0] * 2 and dataset.domain.tolist() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("dtype", ["int64", "float64", "str", "category", "uint8"])
def test_labels_of_any_type_in_parquet(write, tmp_path, dtype):
    table = pd.DataFrame({"path": ["0.png", "1.png"], "domain": "p", "label": pd.Series([3, 12]).astype(dtype)})
    write([("p", "x", "0.png", "train"), ("p", "x", "1.png", "train")])
    table.to_parquet(tmp_path / "n.parquet")
    dataset = load_manifest(tmp_path / "n.parquet")
    assert dataset.classes == ("3", "12") and dataset.y.tolist() == [0, 1]


def test_names_that_look_like_nothing_are_names(write):
    rows = [("NA", "None", "1.png", "train"), ("NA", "nan", "2.png", "train"), ("NA", "null", "3.png", "test")]
    dataset = load_manifest(write(rows))
    assert dataset.domains == ("NA",) and dataset.classes == ("None", "nan", "null")


def test_a_byte_order_mark_spaces_and_quotes(write, tmp_path):
    write()
    text = 'domain,label,path,split\n"site, a" , cat,a/1.jpg,train\n"site, a",dog ,a/2.jpg,train\n'
    (tmp_path / "m.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    dataset = load_manifest(tmp_path / "m.csv")
    assert dataset.domains == ("site, a",) and dataset.classes == ("cat", "dog")


def test_paths_are_brought_into_one_spelling(write, tmp_path):
    rows = [
        (*row[:2], path, row[3]) for row, path in zip(ROWS, ("./a/1.jpg", "a//2.jpg", "a/../b/1.jpg", "x"), strict=True)
    ]
    write()
    rows[3] = (*ROWS[3][:2], str(tmp_path / "b/2.jpg"), "train")  # absolute, but inside
    dataset = load_manifest(write(rows, images=False))
    assert dataset.x.paths() == ["a/1.jpg", "a/2.jpg", "b/1.jpg", "b/2.jpg"]


def test_root(write, tmp_path):
    path = write()
    (tmp_path / "elsewhere").mkdir()
    moved = path.rename(tmp_path / "elsewhere/m.csv")
    assert load(moved, root=tmp_path).x.paths() == [row[2] for row in ROWS]


def test_rows_of_an_array(write, tmp_path):
    x = np.arange(30, dtype=np.float32).reshape(10, 3)
    path = write(
        [(*row[:2], i, row[3]) for row, i in zip(ROWS, (7, 0, 3, 9), strict=True)], ("domain", "label", "x", "split")
    )
    np.save(tmp_path / "m.npy", x)
    dataset = load(path)
    assert (dataset.x == x[[7, 0, 3, 9]]).all() and dataset.split.tolist() == [row[3] for row in ROWS]
    (tmp_path / "m.npy").unlink()
    np.savez(tmp_path / "m.npz", x=np.zeros((10, 8, 8, 3), np.uint8))
    assert load(path).kind.picture


def test_no_split_column(write):
    rows = [(d, c, f"{d}{c}{i}.png") for d in "pq" for c in "xy" for i in range(20)]
    dataset = load_manifest(write(rows, ("domain", "label", "path")), seed=1)
    assert (dataset.counts("val") == 2).all() and (dataset.counts("test") == 4).all()


COUNTS = {  # train, val, test; largest pair, pairs without training data
    "VLCS": (9872, 285, 572, 1454, 3),
    "PACS": (7891, 700, 1400, 741, 0),
    "OfficeHome": (11688, 1300, 2600, 84, 2),
    "TerraIncognita": (23269, 353, 708, 4455, 8),
}


@pytest.mark.parametrize("name", COUNTS)
def test_split_files_of_the_reference(shared_data, name):
    table = read_split(shared_data / f"splits/{name}.csv")
    assert list(table.columns) == ["domain", "label", "path", "split"]
    sizes = table["split"].value_counts()
    pairs = pd.crosstab([table["domain"], table["label"]], table["split"])["train"]
    found = (*(int(sizes[s]) for s in ("train", "val", "test")), int(pairs.max()), int((pairs == 0).sum()))
    assert found == COUNTS[name]


def test_a_split_file_loads_as_it_is(shared_data, tmp_path, picture):
    """With images in its places: here one image, linked to from each of them."""
    table = read_split(shared_data / "splits/PACS.csv")
    picture(8, 8).save(tmp_path / "one.png")
    for path in table["path"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).symlink_to(tmp_path / "one.png")
    dataset = load(shared_data / "splits/PACS.csv", root=tmp_path)
    assert dataset.domains == ("art_painting", "cartoon", "photo", "sketch") and dataset.num_classes == 7
    assert dataset.counts("train").sum() == 7891 and (dataset.counts("test") == 50).all()
    assert dataset.counts("train").min() == 5

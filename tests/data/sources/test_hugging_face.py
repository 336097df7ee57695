import shutil
import sys
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from crosstail.data import find_broken, load, load_hf

NEEDED = "the library `datasets` is not installed: pip install 'crosstail[hf]'"


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        ValueError, match=r"^hf:someone/pacs: needs the library `datasets`: pip install 'crosstail\[hf\]'$"
    ):
        load("hf:someone/pacs")


@pytest.fixture
def datasets(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return pytest.importorskip("datasets", reason=NEEDED)


@pytest.fixture
def made(datasets, tmp_path, picture):
    def make(n=12, classes=("cat", "dog", "emu"), **columns):
        features = datasets.Features(
            {
                "image": datasets.Image(),
                "label": datasets.ClassLabel(names=list(classes)),
                "domain": datasets.Value("string"),
            }
        )
        rows = {
            "image": [picture(30, 36, seed=i) for i in range(n)],
            "label": [i % len(classes) for i in range(n)],
            "domain": [f"site{(2, 10)[i // (n // 2)]}" for i in range(n)],
        } | columns
        return datasets.Dataset.from_dict(rows, features=features)

    return make


def test_objects(datasets, made, tmp_path):
    whole = made()
    whole.save_to_disk(tmp_path / "saved")
    assert load(whole).checksum == load(tmp_path / "saved").checksum and load(whole).name == "Dataset"
    parts = datasets.DatasetDict({"train": whole, "test": made(6)})
    dataset = load(parts.rename_column("domain", "style"), columns={"domain": "style"})
    assert [int(dataset.counts(split).sum()) for split in ("train", "test")] == [12, 6]
    assert load(whole.select([11, 0, 3, 8])).y.tolist() == [2, 0, 0, 2]
    alone = load(whole.remove_columns("domain"))
    assert alone.domains == ("all",) and len(alone.y) == 12 and "domain" in alone.notes[0]
    with pytest.raises(ValueError, match=r"^Dataset: has no column 'style' but image, label"):
        load(whole.remove_columns("domain"), columns={"domain": "style"})
    with pytest.raises(ValueError, match=r"^IterableDataset: is streamed"):
        load(whole.to_iterable_dataset())


def test_in_parts(datasets, made, tmp_path):
    parts = datasets.DatasetDict({"train": made(), "validation": made(6), "test": made(6)})
    parts.save_to_disk(tmp_path / "saved")
    dataset = load(tmp_path / "saved")
    assert (dataset.name, dataset.domains, dataset.classes) == ("saved", ("site2", "site10"), ("cat", "dog", "emu"))
    assert [int(dataset.counts(split).sum()) for split in ("train", "val", "test")] == [12, 6, 6]
    expected = np.asarray(parts["train"][5]["image"]).astype(int)
    assert dataset.x.base(5).shape == (30, 36, 3) and abs(dataset.x.base(5) - expected).max() == 0
    assert dataset.x[:3].shape == (3, 224, 224, 3) and find_broken(dataset.x) == []
    assert load(f"hf:{tmp_path / 'saved'}").checksum == dataset.checksum
    cached = dataset.x.cached()
    assert (cached[:4] == dataset.x[:4]).all() and (cached[:4] == dataset.x[:4]).all()


def test_saved_again_in_another_order_shows_the_new_pictures(datasets, tmp_path):
    """Same folder, same sizes: only the content tells."""
    colours = ["red", "lime"]

    def bitmap(colour):
        stream = BytesIO()
        Image.new("RGB", (8, 8), colour).save(stream, "BMP")
        return {"bytes": stream.getvalue(), "path": None}

    def save(order, folder):
        rows = {"image": [bitmap(colours[i]) for i in order], "label": order, "domain": ["a", "b"]}
        features = datasets.Features(
            {"image": datasets.Image(), "label": datasets.ClassLabel(names=colours), "domain": datasets.Value("string")}
        )
        datasets.Dataset.from_dict(rows, features=features).save_to_disk(folder)
        return load_hf(folder)

    first, new = save([0, 1], tmp_path / "saved"), save([1, 0], tmp_path / "new")
    sizes = [len(first.x.content(i)) for i in (0, 1)]
    assert sizes[0] == sizes[1] and (first.x.cached()[0] == [255, 0, 0]).all()
    shutil.rmtree(tmp_path / "saved")
    (tmp_path / "new").rename(tmp_path / "saved")
    again = load_hf(tmp_path / "saved").x.cached()
    assert (again[0] == [0, 255, 0]).all() and (again[1] == [255, 0, 0]).all() and len(new) == 2


def test_in_one_part_and_another_order(made, tmp_path):
    shuffled = made(24).select([7, 3, 15, 20, 0, 12])
    shuffled.save_to_disk(tmp_path / "saved")
    dataset = load_hf(tmp_path / "saved")
    assert dataset.y.tolist() == [1, 0, 0, 2, 0, 0] and dataset.domain.tolist() == [0, 0, 1, 1, 0, 1]
    assert (dataset.x.base(1) == np.asarray(shuffled[1]["image"])).all()
    assert set(dataset.split.tolist()) <= {"train", "val", "test"}


def test_columns_of_other_names(made, tmp_path):
    made().rename_columns({"domain": "style", "label": "kind"}).save_to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"has no column 'label' but image, kind, style; .* --column label="):
        load(tmp_path / "saved")
    dataset = load(tmp_path / "saved", columns={"domain": "style", "label": "kind"})
    assert dataset.domains == ("site2", "site10") and dataset.group is None
    with pytest.raises(ValueError, match=r"'style'.* image, label, domain, group"):
        load(tmp_path / "saved", columns={"style": "domain"})


def test_groups(datasets, made, tmp_path):
    parts = {"train": made().add_column("group", [f"p{i // 3}" for i in range(12)])}
    parts["test"] = made(6).add_column("group", ["p0", "p9", None, "", "p9", "p1"])
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved")
    dataset = load(tmp_path / "saved")
    assert dataset.group.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 4, 5, 6, 4, 1]
    assert any("2 of 18" in note and "image 14" in note for note in dataset.notes)
    parts["train"].rename_column("group", "visit").save_to_disk(tmp_path / "one")
    assert load(tmp_path / "one").group is None
    dataset = load(tmp_path / "one", columns={"group": "visit"})
    assert dataset.group.tolist() == [i // 3 for i in range(12)]
    with pytest.raises(ValueError, match="has no column 'patient'"):
        load(tmp_path / "one", columns={"group": "patient"})
    with pytest.raises(ValueError, match=r"one: .*no paths.*--group-by image"):
        load(tmp_path / "one", group_by="image")


def test_a_broken_image_is_named_by_its_row(datasets, made, tmp_path):
    features = made().features
    rows = made(6).cast_column("image", datasets.Image(decode=False)).to_dict()
    rows["image"][4]["bytes"] = rows["image"][4]["bytes"][:100]
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"saved: image 4: cannot be decoded"):
        load(tmp_path / "saved").x[:]
    dataset = load(tmp_path / "saved", skip_broken=True)
    assert len(dataset) == 5 and "image 4" in dataset.notes[0]


def test_a_row_without_a_label(made, tmp_path):
    made(domain=["a", None] * 6).save_to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match="saved: row 1 has no domain"):
        load(tmp_path / "saved")


def test_a_name_that_cannot_be_loaded(datasets, monkeypatch):
    def fail(name):
        raise FileNotFoundError(f"Dataset '{name}' doesn't exist\non the Hub")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(ValueError) as error:
        load("hf:no/such")
    assert str(error.value) == (
        "hf:no/such: cannot be loaded by `datasets` (FileNotFoundError: Dataset 'no/such' doesn't exist on the Hub)"
    )


def test_a_column_that_holds_no_images(datasets, tmp_path):
    datasets.Dataset.from_dict({"image": [1], "label": [0], "domain": ["a"]}).save_to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"the column 'image' is .*, expected images"):
        load(tmp_path / "saved")

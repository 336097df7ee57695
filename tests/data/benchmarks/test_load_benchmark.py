import json
import shutil

import numpy as np
import pytest
from PIL import Image

from crosstail.data import DomainBatches
from crosstail.data.benchmarks import domain_net, office_home, pacs, terra_incognita, vlcs
from crosstail.data.benchmarks._load import load_benchmark, sheet_of


def save(path, colour=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (colour % 256, colour // 256 % 256, 0)).save(path)


def make(root, sheet, count=4, domains=None):
    """A small set in the sheet's folders."""
    for d, domain in enumerate(domains or sheet.domains):
        for c, kind in enumerate(sheet.classes):
            for i in range(count):
                save(root / domain / kind / f"{i}.jpg", 100 * d + 10 * c + i)
    return root


def test_folder_after_the_name(tmp_path):
    dataset = load_benchmark(f"vlcs:{make(tmp_path, vlcs.SHEET)}")
    assert (dataset.name, dataset.domains, dataset.classes) == ("vlcs", vlcs.SHEET.domains, vlcs.SHEET.classes)
    assert len(dataset) == 80 and (dataset.counts("val") == 1).all() and (dataset.counts("test") == 3).all()
    assert dataset.kind.picture and dataset.x[3].shape == (224, 224, 3)
    assert dataset.x.paths(3) == ["Caltech101/bird/3.jpg"]


def test_folder_from_the_environment(tmp_path, monkeypatch):
    make(tmp_path / "pacs", pacs.SHEET)
    monkeypatch.setenv("CROSSTAIL_DATA", str(tmp_path))
    assert len(load_benchmark("pacs")) == 4 * 4 * 7 == len(pacs.load())
    with pytest.raises(FileNotFoundError, match=r"/vlcs: there is no such folder; `crosstail data vlcs --root"):
        load_benchmark("vlcs")


def test_no_folder_at_all(monkeypatch):
    monkeypatch.delenv("CROSSTAIL_DATA", raising=False)
    with pytest.raises(ValueError) as error:
        load_benchmark("office_home")
    for choice in ("office_home:FOLDER", "CROSSTAIL_DATA", "`crosstail data office_home`"):
        assert choice in str(error.value)
    with pytest.raises(ValueError, match="no folder after the colon, expected for example vlcs:data/vlcs"):
        load_benchmark("vlcs:")


def test_set_that_is_made_on_the_spot():
    assert len(load_benchmark("digits", seed=1)) == 3450
    with pytest.raises(ValueError, match="digits takes no folder"):
        load_benchmark("digits:somewhere")
    with pytest.raises(ValueError, match="unknown data set 'vlsc': did you mean 'vlcs'"):
        load_benchmark("vlsc:somewhere")


def test_sheet_of_a_source():
    assert sheet_of("terra_incognita:x").few == sheet_of("terra_incognita").few == 25
    assert sheet_of("some/folder") is None


def test_split_of_the_sheet(tmp_path):
    root = make(tmp_path, office_home.SHEET, count=17)
    dataset = office_home.load(root)
    for split, count in (("train", 2), ("val", 5), ("test", 10)):
        assert (dataset.counts(split) == count).all()
    assert (office_home.load(str(root)).split == dataset.split).all()
    assert (office_home.load(root, seed=1).split != dataset.split).any()
    batch = DomainBatches(dataset.keep(dataset.domain < 2), batch_size=2).at(0)
    assert batch.x.shape[0] == 4


def test_other_names_and_a_folder_around_them(tmp_path):
    make(tmp_path / "OfficeHomeDataset_10072016", office_home.SHEET, 3, ("Art", "clipart", "Product", "RealWorld"))
    (tmp_path / "OfficeHomeDataset_10072016/imagelist").mkdir()
    dataset = office_home.load(tmp_path)
    assert dataset.domains == ("Art", "Clipart", "Product", "Real World") and len(dataset) == 3 * 260
    assert dataset.x.paths(-1) == ["RealWorld/Webcam/2.jpg"]


def test_domain_without_images(tmp_path):
    make(tmp_path, vlcs.SHEET, domains=("Caltech101", "LabelMe", "VOC2007"))
    with pytest.raises(ValueError, match=r"has no images of the domain 'SUN09'; `crosstail data vlcs --root .*`"):
        vlcs.load(tmp_path)


def write_split(path, rows):
    path.write_text("env,label,path,split\n" + "".join(f"x,0,{row},{split}\n" for row, split in rows))


def test_split_file_in_the_folder(tmp_path):
    root = make(tmp_path / "root", pacs.SHEET, 2, ("Art", "cartoon", "photo", "sketch"))
    pairs = [(domain, kind) for domain in pacs.SHEET.domains for kind in pacs.SHEET.classes]
    write_split(root / "PACS.csv", [(f"{d}/{c}/0.jpg", "train") for d, c in pairs])
    dataset = pacs.load(root)
    assert len(dataset) == 28 and (dataset.split == "train").all() and "PACS.csv" in dataset.notes[0]
    assert dataset.x.paths(0) == ["Art/dog/0.jpg"]
    write_split(root / "PACS.csv", [(f"{d}/{c}/{i}.jpg", ("val", "test")[i]) for d, c in pairs for i in range(2)])
    dataset = pacs.load(root)
    assert (dataset.counts("val") == 1).all() and (dataset.counts("test") == 1).all()
    write_split(root / "PACS.csv", [("photo/dog/7.jpg", "val")])
    with pytest.raises(ValueError, match=r"PACS\.csv: names photo/dog/7\.jpg, which is not in .* \(1 such images\)"):
        pacs.load(root)


@pytest.mark.parametrize("module", [vlcs, pacs, office_home, terra_incognita])
def test_references_split_files_load_as_they_are(module, tmp_path, shared_data):
    """Files of no bytes are enough: loading reads names only."""
    sheet = module.SHEET
    path = shared_data / "splits" / sheet.split_file
    if not path.is_file():
        pytest.skip(f"{path.name} is not beside the project")
    for d, domain in enumerate(sheet.domains):
        for c, kind in enumerate(sheet.classes):
            if sheet.counts[d][c]:
                (tmp_path / domain / kind).mkdir(parents=True)
    for line in path.read_text().splitlines()[1:]:
        (tmp_path / line.split(",")[2]).touch()
    shutil.copy(path, tmp_path)
    dataset = module.load(tmp_path)
    assert tuple(int((dataset.split == part).sum()) for part in ("train", "val", "test")) == sheet.paper_totals
    assert (sum(dataset.counts(part) for part in ("train", "val", "test")) == np.array(sheet.counts)).all()
    (tmp_path / path.name).unlink()
    made = module.load(tmp_path)
    for part in ("train", "val", "test"):
        assert (made.counts(part) == dataset.counts(part)).all()


def test_domain_net_leaves_out_what_its_lists_do_not_name(tmp_path):
    sheet = domain_net.SHEET
    for domain in sheet.domains:
        for kind in sheet.classes[:2]:
            for i in range(2):
                save(tmp_path / domain / kind / f"{i}.jpg")
    assert len(domain_net.load(tmp_path)) == 24
    for domain in sheet.domains:
        (tmp_path / f"{domain}_train.txt").write_text(f"{domain}/{sheet.classes[0]}/1.jpg 0\n")
        (tmp_path / f"{domain}_test.txt").write_text(f"{domain}/{sheet.classes[1]}/0.jpg 1\n")
    dataset = domain_net.load(tmp_path)
    assert len(dataset) == 12 and dataset.x.paths(0) == ["clipart/aircraft_carrier/1.jpg"]
    (tmp_path / "real_test.txt").unlink()
    with pytest.raises(ValueError, match=r"has clipart_train\.txt but not real_test\.txt; expected all lists or none"):
        domain_net.load(tmp_path)


def labels(images, names=("empty", "bird", "dog", "deer")):
    """Labels in COCO's form; `images` are (file name, place, classes)."""
    return {
        "categories": [{"id": i, "name": name} for i, name in enumerate(names)],
        "images": [{"id": f"id-{f}", "file_name": f, "location": place} for f, place, _ in images],
        "annotations": [{"image_id": f"id-{f}", "category_id": names.index(c)} for f, _, cs in images for c in cs],
    }


def test_terra_incognita_is_put_into_folders(tmp_path):
    images = [
        ("a.jpg", "38", ["bird"]),
        ("b.jpg", "38", ["bird", "dog"]),  # in both folders
        ("c.jpg", "100", ["deer"]),  # no class of ours
        ("d.jpg", "7", ["dog"]),  # no place of ours
        ("e.jpg", "46", ["empty", "empty"]),
    ]
    with pytest.raises(FileNotFoundError, match=r"has no labels, expected eccv_18_annotation_files.* or caltech_im"):
        terra_incognita.prepare(tmp_path)
    (tmp_path / "caltech_images_20210113.json").write_text(json.dumps(labels(images)))
    with pytest.raises(FileNotFoundError, match=r"a\.jpg: is not there, but the labels name it"):
        terra_incognita.prepare(tmp_path)
    for i, (name, _, _) in enumerate(images):
        save(tmp_path / terra_incognita.IMAGES / name, i)
    for _ in range(2):  # the second time changes nothing
        assert terra_incognita.prepare(tmp_path) == 4
        found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("location_*/*/*"))
        assert found == [
            "location_38/bird/a.jpg", "location_38/bird/b.jpg", "location_38/dog/b.jpg", "location_46/empty/e.jpg",
        ]  # fmt: skip
    assert (tmp_path / "location_38/dog/b.jpg").samefile(tmp_path / terra_incognita.IMAGES / "b.jpg")


def test_terra_incognita_with_the_older_labels(tmp_path):
    """They are in several files, their places are numbers, and an image may be in a folder."""
    folder = tmp_path / "eccv_18_annotation_files"
    folder.mkdir()
    (folder / "train_annotations.json").write_text(json.dumps(labels([("a.jpg", 38, ["bird"])])))
    (folder / "cis_val_annotations.json").write_text(json.dumps(labels([("b.jpg", 43, ["dog"])])))
    for name in ("a.jpg", "b.jpg"):
        save(tmp_path / terra_incognita.IMAGES / name)
    newer = tmp_path / "caltech_images_20210113.json"
    newer.write_text(json.dumps(labels([("a.jpg", "38", ["dog"])])))
    assert terra_incognita.prepare(tmp_path) == 2
    assert (tmp_path / "location_43/dog/b.jpg").is_file()
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(
        ValueError, match=r"location_38/bird/a\.jpg: is not in caltech_.* \(2 such images\); delete the"
    ):
        terra_incognita.prepare(tmp_path)

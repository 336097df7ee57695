"""Folders of images: what is found, in which order, and how fast."""

import os
import re
import time

import numpy as np
import pytest

from crosstail.data import ImageFiles, load
from crosstail.data.dataset import SPLIT_NAMES
from crosstail.data.images import decode
from crosstail.data.sources import _folder_walk as folder_walk
from crosstail.data.sources._folder import load_folder, scan


def touch(root, *paths):
    """Empty files, which the scan does not open."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"")
    return root


def paths_of(dataset):
    return dataset.x.paths()


def test_domains_and_classes_are_in_natural_order(tmp_path):
    names = [f"site{d}/{c}/a.jpg" for d in (1, 2, 10) for c in ("class 9", "class 10", "b", "B")]
    dataset = load_folder(touch(tmp_path / "Mine", *names))
    assert dataset.name == "Mine" and dataset.domains == ("site1", "site2", "site10")
    assert dataset.classes == ("B", "b", "class 9", "class 10")
    for i, path in enumerate(paths_of(dataset)):
        domain, name, _ = path.split("/")
        assert (dataset.domains[dataset.domain[i]], dataset.classes[dataset.y[i]]) == (domain, name)
    assert sorted(paths_of(dataset)) == sorted(names) and isinstance(dataset.x, ImageFiles)


def test_split_of_own_data(photos):
    root = photos(n=20)
    dataset = load_folder(root, seed=3)
    assert (dataset.counts("val") == 2).all() and (dataset.counts("test") == 4).all()
    assert (load_folder(root, seed=3).split == dataset.split).all()
    assert (load_folder(root, seed=4).split != dataset.split).any()


def test_pictures_of_every_kind_and_case(tmp_path):
    names = ["a.JPG", "b.jpeg", "c.Png", "d.webp", "e.tiff", "f.bmp", "g.gif", "h.ppm"]
    dataset = load_folder(touch(tmp_path, *(f"p/{c}/{name}" for name in names for c in "xy")))
    assert len(dataset) == 16 and dataset.notes == ()


def test_hidden_files_are_passed_over_and_others_are_named(tmp_path):
    touch(tmp_path, "p/x/a.jpg", "p/y/b.jpg", "p/x/.c.jpg", ".git/x/d.jpg", "p/.cache/e.jpg", "p/x/Thumbs.db")
    touch(tmp_path, "readme.txt", "p/notes.md", "p/stray.jpg", "p/x/deeper/f.jpg", "q/z/empty.txt", "r/readme")
    dataset = load_folder(tmp_path)
    assert paths_of(dataset) == ["p/x/a.jpg", "p/x/deeper/f.jpg", "p/y/b.jpg"] and dataset.y.tolist() == [0, 0, 1]
    assert dataset.domains == ("p",) and dataset.classes == ("x", "y")
    assert dataset.notes == (
        "6 files (p/stray.jpg, readme.txt, p/notes.md, …) ignored: not an image in a class folder",
        "1 folder (p/x/deeper) inside a class folder: part of that class; --group-by '^(?:[^/]+/){2}([^/]+)/' keeps "
        "each of them together in the split",
        "1 folder (q/z) without images",
        "2 domains (q, r) without images, left out",
        "1 class (z) without images in any domain, left out",
    )


def test_a_folder_whose_images_are_ignored_is_not_called_empty(tmp_path):
    touch(tmp_path, *files("train/cat", "train/dog", "val/cat", "test/dog"), "extra/cat/e.png", "extra/dog/readme")
    notes = load_folder(tmp_path).notes
    assert any("files (extra/cat/e.png, extra/dog/readme) ignored" in note for note in notes)
    assert [note for note in notes if "without images" in note] == ["1 folder (extra/dog) without images"]


def test_links_are_followed(tmp_path, photos):
    root = photos(n=2)
    (tmp_path / "linked").mkdir()
    for domain in root.iterdir():
        (tmp_path / "linked" / domain.name).symlink_to(domain)
    assert paths_of(load_folder(tmp_path / "linked")) == paths_of(load_folder(root))
    (root / "photo/cat/gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    assert "photo/cat/gone.jpg" in load_folder(root).notes[0]


WRONG = {
    "no folder": ((), "nowhere", r"nowhere: there is no such file or folder"),
    "a file": (("a.txt",), "a.txt", r"a\.txt: is not a folder"),
    "nothing": ((), ".", r"has no images; expected ROOT/<domain>/<class>/<image>"),
    "no images": (("p/x/a.txt",), ".", r"has no images"),
    "splits of images only": (("train/a.jpg", "test/b.jpg"), ".", r"such as test/b\.jpg, but no folder for each class"),
    "images only": (("a.jpg",), ".", r"holds images such as a\.jpg, but no folder for each class; expected ROOT/<d"),
}


@pytest.mark.parametrize("what", WRONG)
def test_other_layouts_are_refused_with_what_was_found(tmp_path, what):
    files, source, message = WRONG[what]
    touch(tmp_path, *files)
    with pytest.raises(ValueError, match=message) as error:
        load_folder(tmp_path / source)
    assert len(str(error.value).splitlines()) == 1


def files(*folders, each=2):
    return [f"{folder}/{i}.jpg" for folder in folders for i in range(each)]


PLACED = {
    "no domains": (files("cat", "dog"), ("all",), r"^no folders for domains: all 4 images are in one domain"),
    "no domains, nested": (
        files("cat", "dog", each=3) + files("dog/day 2"),
        ("all",),
        r"1 folder \(dog/day 2\) inside",
    ),
    "splits, no domains": (files("train/cat", "train/dog", "Test/cat"), ("all",), r"^folders such as train"),
    "splits above domains": (
        files("train/p/cat", "training/q/dog", "valid/p/dog"),
        ("p", "q"),
        r"^folders such as train",
    ),
    "splits below domains": (files("p/train/cat", "p/test/dog", "q/train/dog"), ("p", "q"), r"^folders such as train"),
    "splits and another": (files("train/p/cat", "test/p/dog", "masks/p/cow"), ("p",), r"2 files \(masks/p/cow/0\.jpg"),
    "a folder too many": (
        files("data/p/cat", "data/p/dog", "data/q/cat", "data/q/dog"),
        ("p", "q"),
        r"in one folder, data:",
    ),
    "an archive of splits": (
        files("data/train/cat", "data/train/dog", "data/test/cat", "data/test/dog"),
        ("all",),
        "data:",
    ),
    "patients": (files("p/cat/007", "p/cat/008", "p/dog/009"), ("p",), r"3 folders \(p/cat/007, .*--group-by"),
}


@pytest.mark.parametrize("what", PLACED)
def test_other_layouts_are_understood_and_noted(tmp_path, what):
    names, domains, note = PLACED[what]
    dataset = load_folder(touch(tmp_path, *names))
    assert dataset.domains == domains and dataset.classes == ("cat", "dog")
    assert any(re.search(note, one) for one in dataset.notes), dataset.notes
    for path, y, d, split in zip(paths_of(dataset), dataset.y, dataset.domain, dataset.split, strict=True):
        folders = path.lower().split("/")[:-1]
        assert dataset.classes[y] in folders and (dataset.domains[d] in folders or domains == ("all",))
        if "split" in what:
            assert split in {SPLIT_NAMES.get(folder) for folder in folders}


def test_the_suggested_groups_are_the_folders_inside_a_class(tmp_path):
    touch(tmp_path, *files("p/cat/007", "p/cat/008", "p/dog/009", "q/dog", "q/cat"))
    (note,) = load_folder(tmp_path).notes
    pattern = re.search(r"--group-by '(.*?)'", note)[1]
    groups = load_folder(tmp_path, group_by=pattern).group
    sizes = np.bincount(groups[groups >= 0])
    assert sorted(sizes.tolist()) == [1, 1, 1, 1, 2, 2, 2]


def test_a_link_to_a_folder_above_ends(tmp_path):
    touch(tmp_path, "p/x/a.jpg", "p/y/b.jpg")
    (tmp_path / "p/x/up").symlink_to(tmp_path)
    assert paths_of(load_folder(tmp_path)) == ["p/x/a.jpg", "p/y/b.jpg"]


def test_heic_photos_are_ignored_with_the_remedy(tmp_path, monkeypatch):
    for module in (decode, folder_walk):
        monkeypatch.setattr(module, "SUFFIXES", decode.SUFFIXES - {*decode.HEIC})
    notes = load_folder(touch(tmp_path, "p/x/a.jpg", "p/y/b.jpg", "p/y/c.heic", "p/y/d.HEIF", "p/y/e.txt")).notes
    assert any("2 HEIC photos (p/y/c.heic, p/y/d.HEIF)" in note and "pillow-heif" in note for note in notes)
    assert any(note.startswith("1 file (p/y/e.txt)") for note in notes)
    with pytest.raises(ValueError, match=r"HEIC photos such as x/a\.HEIC: pip install pillow-heif"):
        load_folder(touch(tmp_path / "only", "x/a.HEIC", "y/b.heic"))


def test_a_domain_may_have_the_name_of_one_split(tmp_path):
    touch(tmp_path, "train/x/a.jpg", "bus/x/b.jpg")
    assert load_folder(tmp_path).domains == ("bus", "train")


def test_a_name_that_is_not_text(tmp_path):
    touch(tmp_path, "p/x/a.jpg")
    try:
        (tmp_path / "p/x" / os.fsdecode(b"caf\xe9.jpg")).write_bytes(b"")
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    with pytest.raises(ValueError, match=r"p/x: the name b'caf\\xe9\.jpg' is not UTF-8"):
        load_folder(tmp_path)


def test_a_file_that_is_written_over_changes_the_checksum(tmp_path):
    touch(tmp_path, "p/x/a.jpg", "p/y/b.jpg")
    before = load_folder(tmp_path).checksum
    assert load_folder(tmp_path).checksum == before
    (tmp_path / "p/y/b.jpg").write_bytes(b"longer")
    assert load_folder(tmp_path).checksum != before


def test_twenty_thousand_files_are_listed_in_no_time(tmp_path):
    """DomainNet has thirty times as many, and is to take seconds."""
    for d, c in np.ndindex(4, 10):
        folder = tmp_path / f"d{d}/c{c}"
        folder.mkdir(parents=True)
        for i in range(500):
            os.close(os.open(folder / f"{i:06d}.jpg", os.O_CREAT | os.O_WRONLY))
    start = time.process_time()
    assert len(scan(tmp_path).paths) == 20_000
    scanned = time.process_time() - start
    dataset = load_folder(tmp_path)
    assert len(dataset) == 20_000 and (dataset.counts("test") > 0).all()
    assert scanned < 2


def test_load_takes_a_folder(photos, tmp_path, monkeypatch):
    root = photos(n=3, root="digits")
    assert load(root).domains == load(str(root)).domains == ("photo", "sketch")
    monkeypatch.chdir(tmp_path)
    assert load("digits").domains != ("photo", "sketch")  # the benchmark of that name
    assert load("./digits").domains == load(root).domains
    assert load(root, labels=["step:3"]).notes == load(root).notes
    with pytest.raises(FileNotFoundError, match=r"^no/where: there is no such file or folder$"):
        load("no/where")
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(ValueError, match=r"a\.txt: .*a folder"):
        load("a.txt")


def test_real_photos(shared_data):
    dataset = load(shared_data / "office-caltech10")
    assert dataset.domains == ("amazon", "caltech10", "dslr", "webcam") and dataset.num_classes == 10
    sizes = sum(dataset.counts(split) for split in ("train", "val", "test"))
    assert len(dataset) == 2533 and sizes.min() == 8 and sizes.max() == 151
    assert "47 groups" in dataset.notes[0]  # duplicates and look-alikes
    assert (np.diff(dataset.domain) >= 0).all()

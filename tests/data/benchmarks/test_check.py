"""The check of a folder: wrong names, counts, broken images, duplicates, lists and split files."""

import numpy as np
import pytest
from PIL import Image

from crosstail.data.benchmarks import pacs
from crosstail.data.benchmarks._check_folder import check_folder, probable
from crosstail.data.benchmarks._sheet import DataSheet, Release

WORDS = dict.fromkeys(("title", "summary", "licence", "citation", "source"), "w")
SHEET = DataSheet(
    **WORDS,
    name="pets",
    domains=("art_painting", "photo"),
    classes=("cat", "dog"),
    counts=((4, 3), (5, 3)),
    validation=1,
    aliases={"photo": ("Photos",)},
    split_file="Pets.csv",
)
PER_DOMAIN = DataSheet(
    **WORDS,
    name="pets",
    domains=("art_painting", "photo"),
    classes=("cat", "dog"),
    domain_counts=(7, 8),
    validation=1,
    releases=(Release((9, 8), "the archives with duplicates", usable=False),),
    lists=("art_train.txt", "art_test.txt"),
)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path_factory.mktemp("cache")))


def save(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def root(tmp_path):
    """A root that is right in every way; no two images are the same."""
    seed = 0
    for domain, counts in zip(SHEET.domains, SHEET.counts, strict=True):
        for kind, count in zip(SHEET.classes, counts, strict=True):
            for i in range(count):
                save(tmp_path / domain / kind / f"{i}.jpg", seed := seed + 1)
    return tmp_path


def messages(findings):
    return [f"{finding.kind}: {finding.message}" for finding in findings]


def problems(root, sheet=SHEET, **options):
    return messages(check_folder(sheet, root, **options).problems)


def notes(root, sheet=SHEET, **options):
    return messages(check_folder(sheet, root, **options).notes)


def test_right_root(root):
    seen = []
    report = check_folder(SHEET, root, progress=lambda *now: seen.append(now))
    assert report.ok and report.problems == report.notes == [] and report.images == 15
    assert ("reading images", 15, 15) in seen
    assert report.to_json() == {
        "name": "pets", "root": str(root), "ok": True, "images": 15, "problems": [], "notes": [],
    }  # fmt: skip


def test_no_root(tmp_path):
    report = check_folder(SHEET, tmp_path / "nowhere")
    assert not report.ok and messages(report.problems) == ["missing: there is no such folder"]


def test_empty_root(tmp_path):
    assert problems(tmp_path) == ["folder: no folder for the domains 'art_painting', 'photo'"]


def test_files_that_are_no_images_do_not_count(root):
    (root / "photo/cat/Thumbs.db").write_bytes(b"x")
    (root / "photo/cat/.hidden.jpg").write_bytes(b"x")
    (root / "photo/notes.txt").write_text("x")
    assert check_folder(SHEET, root).ok


def test_folder_of_an_archive_around_it(root, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    root.rename(outside / "kfold")
    report = check_folder(SHEET, outside)
    assert report.ok and messages(report.notes) == ["folder: the images are in kfold"]


def test_wrong_domain_name(root):
    (root / "art_painting").rename(root / "Art Painting")
    assert problems(root) == ["folder: found 'Art Painting', expected 'art_painting': rename it"]


def test_known_alias_is_read(root):
    (root / "photo").rename(root / "Photos")
    report = check_folder(SHEET, root)
    assert report.ok and report.images == 15
    assert messages(report.notes) == ["folder: the folder 'Photos' is read as the domain 'photo'"]


def test_two_folders_for_one_domain(root):
    save(root / "Photos/cat/new.jpg", 99)
    assert problems(root)[0] == "folder: 'Photos' and 'photo' both stand for the domain 'photo'"


def test_wrong_class_names_in_all_domains_are_one_problem(root):
    for domain in SHEET.domains:
        (root / domain / "dog").rename(root / domain / "Dogs")
    assert problems(root) == ["folder: art_painting, photo: found 'Dogs', expected 'dog': rename it"]


def test_missing_class(root):
    for path in (root / "photo/dog").iterdir():
        path.unlink()
    (root / "photo/dog").rmdir()
    assert problems(root) == ["folder: photo: no folder for the class 'dog'"]


def test_folders_that_are_no_domain_or_class(root):
    save(root / "photo/zebra/1.jpg", 77)
    save(root / "sculpture/cat/1.jpg", 78)
    (root / "archives").mkdir()
    report = check_folder(SHEET, root)
    assert report.ok and report.images == 15
    assert messages(report.notes) == [
        "folder: the folder 'sculpture' is not a domain of pets and is left out",
        "folder: photo: the folder 'zebra' is not a class of pets and is left out",
    ]


@pytest.mark.parametrize(("found", "meant"), [
    ("Art Painting", "art_painting"), ("art-paintings", "art_painting"), ("Photographs", None), ("PHOTO", "photo"),
    ("Sketches", "sketch"), ("cartoons", "cartoon"), ("images", None), ("ART", "art_painting"),
])  # fmt: skip
def test_probable_name(found, meant):
    assert probable(found, pacs.SHEET, pacs.SHEET.domains) == meant


def test_wrong_counts(root):
    (root / "photo/cat/0.jpg").unlink()
    save(root / "art_painting/dog/new.jpg", 99)
    assert problems(root) == [
        "count: art_painting / dog: images 4, expected 3",
        "count: photo / cat: images 4, expected 5",
    ]


def test_many_wrong_counts_are_summed_up(tmp_path):
    for domain in pacs.SHEET.domains:
        for kind in pacs.SHEET.classes:
            save(tmp_path / domain / kind / "1.jpg", 1)
    found = problems(tmp_path, pacs.SHEET, decode=False, duplicates=False)
    assert len(found) == 9 and found[0] == "count: art_painting / dog: images 1, expected 379"
    assert found[-1] == "count: 20 other pairs differ as well; images in all 28, expected 9,991"


def test_counts_per_domain(root):
    assert problems(root, PER_DOMAIN) == []
    (root / "photo/cat/0.jpg").unlink()
    assert problems(root, PER_DOMAIN) == ["count: photo: images 7, expected 8"]
    save(root / "art_painting/dog/8.jpg", 98)
    save(root / "art_painting/dog/9.jpg", 99)
    assert problems(root, PER_DOMAIN) == [
        "count: art_painting: images 9, expected 7, as in the archives with duplicates",
        "count: photo: images 7, expected 8",
    ]


def test_another_release(root):
    save(root / "art_painting/dog/8.jpg", 98)
    save(root / "art_painting/dog/9.jpg", 99)
    assert problems(root, PER_DOMAIN) == ["release: these are the archives with duplicates"]


def test_lists_leave_the_duplicates_out(root):
    report = check_folder(PER_DOMAIN, root)
    assert report.ok
    names = [str(path.relative_to(root)) for path in root.rglob("*.jpg")]
    save(root / "art_painting/dog/8.jpg", 98)
    (root / "art_train.txt").write_text("".join(f"{name} 0\n" for name in names[:9]))
    assert problems(root, PER_DOMAIN) == [
        f"list: {root}: has art_train.txt but not art_test.txt; expected all lists or none",
        "count: art_painting: images 8, expected 7",
    ]
    (root / "art_test.txt").write_text("".join(f"{name} 0\n" for name in names[9:]))
    report = check_folder(PER_DOMAIN, root)
    assert report.ok and report.images == 15
    assert messages(report.notes) == ["list: images that the lists do not name (duplicates), left out: 1"]
    (root / names[0]).unlink()
    found = check_folder(PER_DOMAIN, root).problems
    assert messages(found)[0] == "list: listed images that are not there: 1 of 15" and found[0].paths == (names[0],)


@pytest.mark.parametrize("what", ["empty", "text", "cut", "no image data"])
def test_broken_images(root, what):
    path = root / "photo/cat/0.jpg"
    content = path.read_bytes()
    broken = {"empty": b"", "text": b"<html>", "cut": content[: len(content) // 2], "no image data": content[:20]}
    path.write_bytes(broken[what])
    report = check_folder(SHEET, root)
    (finding,) = report.problems
    assert (finding.kind, finding.message) == ("broken", "1 image cannot be read")
    assert finding.paths[0].startswith("photo/cat/0.jpg: ")
    assert check_folder(SHEET, root, decode=False).ok


def copy(root, source, target):
    (root / target).write_bytes((root / source).read_bytes())


def test_duplicates_are_noted(root):
    copy(root, "photo/cat/0.jpg", "photo/dog/0.jpg")
    copy(root, "photo/cat/1.jpg", "art_painting/cat/1.jpg")
    report = check_folder(SHEET, root)
    assert report.ok
    found = {finding.message: finding.paths for finding in report.notes}
    assert found["1 image in two classes, byte for byte"] == ("photo/cat/0.jpg = photo/dog/0.jpg",)
    assert found["1 image in two domains, byte for byte"] == ("art_painting/cat/1.jpg = photo/cat/1.jpg",)
    assert check_folder(SHEET, root, duplicates=False).notes == []


def write_split(root, splits, name="Pets.csv"):
    lines = [f"{path.split('/')[0]},0,{path},{split}\n" for path, split in splits.items()]
    (root / name).write_text("env,label,path,split\n" + "".join(lines))


def test_duplicates_across_the_splits_of_a_split_file(root):
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*.jpg"))
    copy(root, "photo/cat/0.jpg", "photo/cat/1.jpg")
    write_split(root, dict.fromkeys(names, "train"))
    found = {finding.message for finding in check_folder(SHEET, root).notes}
    assert found == {"Pets.csv names the split of every image", "1 image twice in a pair, byte for byte"}
    write_split(root, dict.fromkeys(names, "train") | {"photo/cat/1.jpg": "test"})
    found = {finding.message: finding.paths for finding in check_folder(SHEET, root).notes}
    assert found["1 image in two splits, byte for byte"] == ("photo/cat/0.jpg = photo/cat/1.jpg",)


def test_split_file_that_does_not_fit(root):
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*.jpg"))
    write_split(root, dict.fromkeys(names[1:], "train") | {"photo/cat/nowhere.jpg": "test"}, "pets.csv")
    report = check_folder(SHEET, root)
    assert messages(report.problems) == ["split: images that pets.csv names and that are not there: 1"]
    assert report.problems[0].paths == ("photo/cat/nowhere.jpg",)
    assert messages(report.notes) == ["split: images that pets.csv does not name, left out: 1"]


@pytest.mark.parametrize(("text", "message"), [
    ("env,label,path\n", "has no column 'split'"),
    ("env,label,path,split\nphoto,0,photo/cat/0.jpg,later\n", "line 2 has the split 'later'"),
    ("env,label,path,split\nphoto,0,0.jpg,val\n", "line 2: path is '0.jpg', expected <domain>/<class>/<image>"),
    ("env,label,path,split\nx,0,x/cat/0.jpg,val\n", "line 2: 'x' is not a domain of pets"),
    ("env,label,path,split\nx,0,photo/cow/0.jpg,val\n", "line 2: 'cow' is not a class of pets"),
])  # fmt: skip
def test_wrong_split_file(root, text, message):
    (root / "Pets.csv").write_text(text)
    (problem,) = problems(root)
    assert problem.startswith(f"split: {root / 'Pets.csv'}") and message in problem


def test_quick_check_reads_no_image(root, monkeypatch):
    def fail(*_):
        raise AssertionError("an image was read")

    monkeypatch.setattr(Image, "open", fail)
    assert check_folder(SHEET, root, decode=False, duplicates=False).ok

"""Every data sheet is complete, and its numbers agree with the paper and the reference's split files."""

import csv
from collections import Counter

import numpy as np
import pytest

from crosstail import discovery
from crosstail.data.benchmarks import domain_net, office_home, pacs, terra_incognita, vlcs
from crosstail.data.benchmarks._image_folders import read_split_file
from crosstail.data.benchmarks._sheet import Archive, DataSheet, read_sheet
from crosstail.data.splits.paper import paper_split

PACKAGE = "crosstail.data.benchmarks"
SHEETS = {name: discovery.find(PACKAGE, name, "benchmark").SHEET for name in discovery.names(PACKAGE)}
WITH_COUNTS = {sheet.name: sheet for sheet in (vlcs.SHEET, pacs.SHEET, office_home.SHEET, terra_incognita.SHEET)}
IMAGES = {**WITH_COUNTS, "domain_net": domain_net.SHEET}
WORDS = dict.fromkeys(("name", "title", "summary", "licence", "citation", "source"), "w")


def split_of_counts(sheet, seed=0):
    """The sheet's split of a set with the sheet's counts: train, validation and test per pair."""
    table = np.array(sheet.counts)
    d, c = np.indices(table.shape)
    domain, y = np.repeat(d.ravel(), table.ravel()), np.repeat(c.ravel(), table.ravel())
    split = paper_split(y, domain, validation=sheet.validation, seed=seed)
    pair = domain * table.shape[1] + y
    return {
        part: np.bincount(pair[split == part], minlength=table.size).reshape(table.shape)
        for part in ("train", "val", "test")
    }


def test_all_of_the_papers_sets_are_there():
    assert {"digits_mlt", "vlcs", "pacs", "office_home", "terra_incognita", "domain_net"} <= set(SHEETS)


@pytest.mark.parametrize("name", SHEETS)
def test_sheet_is_complete(name):
    sheet, module = SHEETS[name], discovery.find(PACKAGE, name, "benchmark")
    assert sheet.name == name and f"`{name}`" in module.__doc__.splitlines()[0]
    for word in ("title", "summary", "licence", "citation", "source"):
        assert getattr(sheet, word).strip() == getattr(sheet, word) != ""
    for names in (sheet.domains, sheet.classes):
        assert len(set(names)) == len(names) > 1
    assert sheet.steps > 0 and sheet.batch_size > 0 and sheet.many > sheet.few > 0
    assert {"mdlt"} <= set(sheet.protocols) <= {"mdlt", "dg"}
    assert callable(module.load)
    if sheet.archives:
        assert sheet.made_by and sheet.paper_totals
        for heading in ("What it is:", "How to get it:"):
            assert heading in sheet.about


@pytest.mark.parametrize("name", IMAGES)
def test_both_protocols_are_told_of(name):
    assert SHEETS[name].protocols == ("mdlt", "dg")
    assert "`dg`" in SHEETS[name].about


@pytest.mark.parametrize(("name", "domains", "classes", "steps", "batch_size", "many", "few", "validation"), [
    ("digits_mlt", 2, 10, 5000, 64, 100, 20, None),
    ("vlcs", 4, 5, 5000, 24, 100, 20, 15),
    ("pacs", 4, 7, 5000, 24, 100, 20, 25),
    ("office_home", 4, 65, 5000, 24, 60, 20, 5),
    ("terra_incognita", 4, 10, 5000, 24, 100, 25, 10),
    ("domain_net", 6, 345, 15000, 32, 100, 20, 20),
])  # fmt: skip
def test_numbers_of_the_paper(name, domains, classes, steps, batch_size, many, few, validation):
    sheet = SHEETS[name]
    assert (len(sheet.domains), len(sheet.classes)) == (domains, classes)
    assert (sheet.steps, sheet.batch_size, sheet.many, sheet.few) == (steps, batch_size, many, few)
    assert sheet.validation == validation


@pytest.mark.parametrize(("name", "images"), [
    ("vlcs", 10_729),
    ("pacs", 9_991),
    ("office_home", 15_588),
    ("terra_incognita", 24_330),  # the paper's text says 24,788, its own table adds up to this
    ("domain_net", 586_575),
])  # fmt: skip
def test_images_in_all(name, images):
    sheet = SHEETS[name]
    assert sheet.images == images == sum(sheet.paper_totals)


def test_the_paper_gives_the_number_of_another_release_of_terra_incognita():
    (release,) = terra_incognita.SHEET.releases
    assert sum(release.domain_counts) == 24_788 and "24,788" in release.what
    assert all(old > new for old, new in zip(release.domain_counts, terra_incognita.SHEET.domain_counts, strict=True))


def test_domain_net_has_more_images_before_its_clean_up():
    (release,) = domain_net.SHEET.releases
    assert all(a >= b for a, b in zip(release.domain_counts, domain_net.SHEET.domain_counts, strict=True))
    assert not release.usable


@pytest.mark.parametrize("name", WITH_COUNTS)
def test_the_split_has_the_papers_totals(name):
    sheet = SHEETS[name]
    parts = split_of_counts(sheet)
    assert tuple(int(parts[part].sum()) for part in ("train", "val", "test")) == sheet.paper_totals


@pytest.mark.parametrize(("name", "largest", "empty", "test_sizes"), [
    ("vlcs", 1454, 3, (14, 30)),
    ("pacs", 741, 0, (50, 50)),
    ("office_home", 84, 2, (10, 10)),
    ("terra_incognita", 4455, 8, (2, 20)),
])  # fmt: skip
def test_pairs_of_the_split(name, largest, empty, test_sizes):
    parts = split_of_counts(SHEETS[name])
    assert parts["train"].max() == largest
    assert (parts["train"] == 0).sum() == empty
    assert (parts["test"].min(), parts["test"].max()) == test_sizes


def test_domain_nets_totals_fit_its_numbers_per_pair():
    """Counts per pair are unknown, so only the bounds can be tested: at most 20 and 40 of each of 2,070 pairs."""
    train, val, test = domain_net.SHEET.paper_totals
    pairs = len(domain_net.SHEET.domains) * len(domain_net.SHEET.classes)
    assert val <= 20 * pairs and test <= 40 * pairs and 2 * val <= test <= 2 * val + 2 * pairs
    assert train + val + test == domain_net.SHEET.images


@pytest.mark.parametrize("name", WITH_COUNTS)
def test_counts_are_those_of_the_references_split_file(name, shared_data):
    sheet = SHEETS[name]
    path = shared_data / "splits" / sheet.split_file
    if not path.is_file():
        pytest.skip(f"{path.name} is not beside the project")
    splits = read_split_file(sheet, path)
    table = Counter(place[:2] for place in splits)
    assert all(table[d, c] == n for d, row in enumerate(sheet.counts) for c, n in enumerate(row))
    assert len(splits) == sheet.images
    parts = split_of_counts(sheet)
    for part, counts in parts.items():
        in_file = Counter(place[:2] for place, split in splits.items() if split == part)
        assert all(in_file[d, c] == n for (d, c), n in np.ndenumerate(counts))
    with path.open(newline="") as stream:  # the reference's numbers of the classes are ours
        for row in csv.DictReader(stream):
            assert row["path"].split("/")[:2] == [row["env"], sheet.classes[int(row["label"])]]
            assert row["env"] in sheet.domains


@pytest.mark.parametrize("name", SHEETS)
def test_archives(name):
    for archive in SHEETS[name].archives:
        assert archive.mirrors and len(set(archive.mirrors)) == len(archive.mirrors)
        assert all(mirror.startswith(("https://", "http://")) for mirror in archive.mirrors)
        assert archive.unpacks_to and "/" not in archive.file
        assert archive.is_packed == archive.file.endswith((".zip", ".gz"))


@pytest.mark.parametrize("name", IMAGES)
def test_aliases_are_of_one_name_each(name):
    sheet = SHEETS[name]
    spellings = [text for name in sheet.domains for text in (name, *sheet.aliases.get(name, ()))]
    assert len(set(spellings)) == len(spellings)
    for d, domain in enumerate(sheet.domains):
        assert all(sheet.index("domain", text) == d for text in (domain, *sheet.aliases.get(domain, ())))


def test_wrong_sheets_are_refused():
    with pytest.raises(ValueError, match="w: counts are not 2 rows of 1"):
        DataSheet(**WORDS, domains=("a", "b"), classes=("c",), counts=((1,), (2, 3)))
    with pytest.raises(ValueError, match="w: aliases of 'd', which is neither a domain nor a class"):
        DataSheet(**WORDS, domains=("a", "b"), classes=("c",), aliases={"d": ("D",)})


@pytest.mark.parametrize(("line", "named"), [
    ('md5 = "x"', "md5"),  # of an archive, not of the set
    ("steps = true", "steps"),
    ("[[archives]]\nfile = 'x.zip'\nmirrors = []\nsha265 = 'x'", "sha265"),
    ("[[archives]]\nfile = 'x.zip'\nmirrors = []\nmd5 = 'abc'", r"archives\[0\]\.md5"),
    ("labels = ['uniform']", "1 label profiles for 2 domains"),
    ("steps =", "line 9"),
])  # fmt: skip
def test_a_wrong_sheet_is_refused_with_its_file(line, named, tmp_path):
    words = [f"{name} = '{text}'" for name, text in WORDS.items()]
    (tmp_path / "mine.toml").write_text("\n".join(["domains = ['a', 'b']", "classes = ['c', 'd']", *words, line, ""]))
    with pytest.raises(ValueError, match=rf"mine\.toml: .*{named}"):
        read_sheet(str(tmp_path / "mine.py"))


def test_an_address_of_a_folder_is_completed_with_the_files_name():
    assert Archive(file="x.zip", mirrors=("http://a/b/", "http://c/d?id=1")).mirrors == (
        "http://a/b/x.zip",
        "http://c/d?id=1",
    )

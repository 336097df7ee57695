"""Imbalanced domain generalisation: the published counts, how images are drawn for them, and tables by shots."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crosstail import cli
from crosstail.data import DomainBatches, DomainDataset, sheet_of
from crosstail.data.spec import DataSpec
from crosstail.data.splits.imbalanced_dg import SETTINGS, imbalanced, setting_of

KNOWN = [(data, name) for data in ("vlcs", "pacs", "office_home", "domain_net") for name in SETTINGS]
KNOWN = [pair for pair in KNOWN if pair not in {("office_home", "idg"), ("domain_net", "cross"), ("domain_net", "idg")}]


def setting(data, name):
    found = setting_of(DataSpec(dataset=data, protocol="dg", labels=(name,)))
    assert found is not None
    return found


def whole(data, counts=None) -> DomainDataset:
    """A data set with the images of the sheet, as numbers."""
    sheet = sheet_of(data)
    counts = np.array(sheet.counts if counts is None else counts)
    pair = np.repeat(np.arange(counts.size), counts.ravel())
    x, split = np.arange(len(pair), dtype=np.float32)[:, None], np.full(len(pair), "train")
    domain, y = np.divmod(pair, counts.shape[1])
    return DomainDataset(data, x, y, domain, split, sheet.classes, sheet.domains)


@pytest.mark.parametrize(("data", "name"), KNOWN)
def test_every_source_pair_has_the_images_that_its_count_needs(data, name) -> None:
    sheet, found = sheet_of(data), setting(data, name)
    size = len(sheet.domains)
    assert found.counts.shape == (size, size, len(sheet.classes)) and found.shots.shape == (size, 2)
    assert not found.counts[np.arange(size), np.arange(size)].any() and (found.shots[:, 0] > found.shots[:, 1]).all()
    needed = found.counts + found.validation * (found.counts > 0)
    if sheet.counts:
        assert (needed <= np.array(sheet.counts)).all()
    assert (needed.sum(2) <= np.array(sheet.domain_counts)).all()


FILES = {"vlcs": "VLCS", "pacs": "PACS", "office_home": "OfficeHome", "domain_net": "DomainNet"}
PUBLISHED = {"heavy-tail": "TotalHeavyTail", "duality": "Duality", "cross": "Cross", "idg": "idg"}
RENAMED = {"pascal_voc": "voc2007", "voc": "voc2007", "caltech": "caltech101", "sun": "sun09"}


@pytest.mark.parametrize(("data", "name"), KNOWN)
def test_counts_and_thresholds_are_those_of_the_published_files(data, name, shared_data) -> None:
    sheet, found = sheet_of(data), setting(data, name)

    def index(names, word) -> int:
        plain, word = [each.lower().replace(" ", "_") for each in names], word.lower().replace(" ", "_")
        return plain.index(word if word in plain else RENAMED[word])

    counts, shots = np.zeros_like(found.counts), np.zeros_like(found.shots)
    with (shared_data / "idg-counts" / f"{FILES[data]}.csv").open() as file:
        for row in csv.DictReader(file):
            if row["setting"] == PUBLISHED[name] and row["unseen"] == "thres":
                shots[index(sheet.domains, row["domain"]), ("many", "few").index(row["class"])] = int(row["count"])
            elif row["setting"] == PUBLISHED[name]:
                unseen, domain = (index(sheet.domains, row[key]) for key in ("unseen", "domain"))
                counts[unseen, domain, index(sheet.classes, row["class"])] = int(row["count"])
    assert (counts == found.counts).all() and (shots == found.shots).all()


@pytest.mark.parametrize(
    ("data", "name", "validation"), [("pacs", "duality", 15), ("pacs", "idg", 25), ("vlcs", "cross", 5)]
)
def test_training_has_the_counts_and_all_of_the_unseen_domain_is_tested(data, name, validation) -> None:
    source, found = whole(data), setting(data, name)
    for u, unseen in enumerate(source.domains):
        made = imbalanced(source, unseen, found, (0, 3))
        assert (made.counts("train") == found.counts[u]).all()
        expected = np.full(found.counts[u].shape, validation)
        expected[u] = 0
        assert (made.counts("val") == expected).all()
        tested = np.where(np.arange(len(source.domains))[:, None] == u, np.array(sheet_of(data).counts), 0)
        assert (made.counts("test") == tested).all()
        assert not set(np.unique(DomainBatches(made, batch_size=4).batch_rows(0))) - set(made.rows("train"))


def test_a_smaller_count_keeps_a_subset_and_a_seed_draws_other_images() -> None:
    source, found = whole("vlcs"), setting("vlcs", "heavy-tail")
    half = found._replace(counts=found.counts // 2)
    rows = [set(imbalanced(source, "SUN09", each, (0, 1)).rows("train")) for each in (found, half)]
    assert rows[1] < rows[0]
    assert set(imbalanced(source, "SUN09", found, (0, 2)).rows("train")) != rows[0]


@pytest.mark.parametrize(("data", "name"), KNOWN)
def test_a_class_is_many_shot_by_its_mean_count_over_the_source_domains(data, name) -> None:
    found = setting(data, name)
    table = found.table()
    size, _, classes = found.counts.shape
    for u in range(size):
        many, few = found.shots[u]
        for c in range(0, classes, 1 + classes // 20):
            mean = sum(int(found.counts[u, d, c]) for d in range(size) if d != u) / (size - 1)
            shot = 0 if mean == 0 else 3 if mean > many else 1 if mean < few else 2
            assert table[u, c] == shot


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dataset": "pacs", "labels": ("cross",)}, "--labels cross says .*: add --protocol dg"),
        (
            {"dataset": "terra_incognita", "labels": ("idg",), "protocol": "dg"},
            "counts for vlcs, pacs, not for terra_inc",
        ),
        ({"dataset": "photos/", "labels": ("cross",), "protocol": "dg"}, "vlcs, pacs, office_home, not for photos/"),
    ],
)
def test_a_setting_without_counts_or_without_dg_is_refused(fields, message) -> None:
    with pytest.raises(ValueError, match=message):
        setting_of(DataSpec(**fields))


def test_a_pair_with_too_few_images_is_named() -> None:
    counts = np.array(sheet_of("vlcs").counts)
    counts[1, 2] = 6
    with pytest.raises(
        ValueError, match=r"LabelMe / chair has 6 images, expected \d+ for training and 5 for validation"
    ):
        imbalanced(whole("vlcs", counts), "SUN09", setting("vlcs", "heavy-tail"), (0, 0))


def test_a_run_is_reported_by_shots(tmp_path: Path, monkeypatch) -> None:
    """On folders with as many links to one picture as every pair needs."""
    sheet, found = sheet_of("vlcs"), setting("vlcs", "duality")
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "0.png")
    for (d, c), needed in np.ndenumerate(found.counts.max(0) + found.validation):
        folder = tmp_path / "vlcs" / sheet.domains[d] / sheet.classes[c]
        folder.mkdir(parents=True)
        for i in range(needed):
            os.link(tmp_path / "0.png", folder / f"{i}.png")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSTAIL_DATA", str(tmp_path))
    words = "--protocol dg --algorithm erm --backbone small_cnn --resolution 8 --steps 2 --batch-size 2 --evaluations 1"
    cli.main(["fit", "vlcs", "--labels", "duality", *words.split(), "--out", "run"])
    cli.main(["report", "run", "--out", "report", "--page-only"])
    table = next(Path("report/tables").glob("results-*.csv"))
    with table.open() as file:
        shown = {row["metric"]: float(row["mean"]) for row in csv.DictReader(file)}
    assert {"accuracy", "many", "medium", "few"} <= set(shown)

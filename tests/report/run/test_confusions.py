"""What the worst pairs are taken for, against hand-made answers; pictures that are there, gone, or never were."""

import base64
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from crosstail.report import page as page_module
from crosstail.report.page import THUMBNAIL, Picture
from crosstail.report.run.confusions import (
    CLASSES,
    PAIRS,
    SAMPLES,
    confusion_figure,
    confusion_table,
    failing_pairs,
    failures,
    read_predictions,
)
from crosstail.report.run.page import write_page
from crosstail.training import RunSpec
from crosstail.training.fit import fit
from crosstail.training.folder import RunFolder

EVIL = "<script>alert(1)</script>"


def answers(*given: tuple[int, int, int]) -> dict[str, np.ndarray]:
    """From (domain, class, predicted) of each sample."""
    domain, y, predicted = (np.array(column, np.uint8) for column in zip(*given, strict=True))
    return {"domain": domain, "y": y, "predicted": predicted}


def named(domains: int, classes: int) -> dict[str, Any]:
    return {"domains": [f"d{d}" for d in range(domains)], "classes": [f"c{c}" for c in range(classes)]}


def test_the_worst_pairs_with_failures_come_first(make_run: Callable[..., Path]) -> None:
    folder = make_run("run", [[9, 10], [3, 0]])
    assert failing_pairs(RunFolder(folder).read_json("result.json")) == [(1, 1), (1, 0), (0, 0)]
    folder = make_run("many", np.arange(12)[None] % 10, totals=[[10] * 12], counts=[[5] * 12])
    assert len(failing_pairs(RunFolder(folder).read_json("result.json"))) == PAIRS


def test_answers_are_counted_right_first_then_by_frequency() -> None:
    given = answers((0, 0, 0), (0, 0, 2), (1, 0, 1), (0, 0, 1), (0, 0, 2), (0, 1, 2))
    table = confusion_table(named(2, 3), given, [(0, 0), (0, 1)])
    assert table.to_numpy().tolist() == [
        ["d0 / c0", "c0", 1, 25.0, "right"],
        ["d0 / c0", "c2", 2, 50.0, "wrong"],
        ["d0 / c0", "c1", 1, 25.0, "wrong"],
        ["d0 / c1", "c2", 1, 100.0, "wrong"],
    ]


def test_rare_answers_are_one_row() -> None:
    given = answers(*((0, 0, c) for c in range(1, CLASSES + 4)), (0, 0, CLASSES + 3))
    table = confusion_table(named(1, CLASSES + 4), given, [(0, 0)])
    assert table["answer"].tolist() == ["c8", "c1", "c2", "c3", "c4", "others: 3"]
    assert table["samples"].tolist() == [2, 1, 1, 1, 1, 3]


def test_the_title_names_the_most_frequent_mistake() -> None:
    given = answers((0, 0, 0), (0, 0, 2), (0, 0, 2), (0, 1, 2))
    figure = confusion_figure(confusion_table(named(1, 3), given, [(0, 0), (0, 1)]))
    assert figure.title == "d0 / c0 is taken for c2 in 2 of 3 test samples"
    assert figure.chart.to_dict()["facet"]["sort"] == ["d0 / c0", "d0 / c1"]


def test_failures_are_the_first_in_the_order_of_the_data() -> None:
    given = answers((0, 1, 1), *[(0, 1, 0), (1, 1, 0)] * 9)
    assert failures(given, (0, 1)) == [1, 3, 5, 7, 9, 11] and SAMPLES == 6


def test_a_thumbnail_is_small() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (500, 300, 3)).astype(np.uint8)
    address = Picture(noise, "", "").thumbnail()
    image = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
    assert max(image.size) == THUMBNAIL == 64 and len(address) < 8000


def page_of(folder: Path) -> str:
    write_page(folder, [folder])
    return (folder / "report.html").read_text(encoding="utf-8").replace(page_module._bundle(), "")


COMMON: dict[str, Any] = {"backbone": "small_cnn", "algorithm": "erm", "width": 8, "steps": 2, "batch_size": 4}


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """An .npz of random images, so that most answers are wrong, with a name that is no name."""
    rng = np.random.default_rng(0)
    y, domain = np.tile([0, 1, 2], 40), np.repeat([0, 1], 60)
    x = rng.integers(0, 256, (120, 12, 12, 3)).astype(np.uint8)
    split = np.array(["train", "val", "test", "test"])[np.arange(120) // 3 % 4]
    np.savez(tmp_path / "i.npz", x=x, y=y, domain=domain, split=split, classes=[EVIL, "cat", "dog"], domains=["a", "b"])
    return tmp_path / "i.npz"


def test_images_of_an_array_are_shown_until_they_are_gone(images: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    fit(RunSpec(dataset=str(images), **COMMON), folder)
    text = page_of(folder)
    shown = re.findall(r'<img alt="([^"]*)" title="[^"]*" src="data:image/jpeg;base64,', text)
    assert shown and EVIL not in text and "&lt;script&gt;" in text and len(text) < 1_000_000
    given = read_predictions(RunFolder(folder))
    assert given is not None
    pairs = failing_pairs(RunFolder(folder).read_json("result.json"))
    assert len(shown) == sum(len(failures(given, pair)) for pair in pairs)
    assert re.fullmatch(r"[ab] / .*, taken for .*: test sample \d+", shown[0])
    images.unlink()
    text = page_of(folder)
    assert "<img" not in text and "The images are not where they were" in text and "is taken for" in text


def test_other_images_than_then_are_not_shown(images: Path, tmp_path: Path) -> None:
    fit(RunSpec(dataset=str(images), **COMMON), tmp_path / "run")
    with np.load(images) as arrays:
        changed = {**arrays, "x": 255 - arrays["x"]}
    np.savez(images, **changed)
    assert "<img" not in page_of(tmp_path / "run")


def test_images_of_a_folder_are_shown_with_their_paths(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for place in ("a/cat", "a/dog", "b/cat", "b/dog"):
        (tmp_path / "photos" / place).mkdir(parents=True)
        for i in range(12):
            pixels = rng.integers(0, 256, (20, 30, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / place / f"{i}.png")
    fit(RunSpec(dataset=str(tmp_path / "photos"), resolution=16, **COMMON), tmp_path / "run")
    text = page_of(tmp_path / "run")
    assert re.search(r'<img alt="[ab] / (cat|dog), taken for (cat|dog): [ab]/(cat|dog)/\d+\.png"', text)


def test_vectors_have_numbers(make_run: Callable[..., Path]) -> None:
    folder = make_run("run", [[10, 9], [10, 10]])
    text = page_of(folder)
    assert "<p>d0 / c1: 19 taken for c0</p>" in text and "<img" not in text
    (folder / "predictions.pt").unlink()
    assert "taken for" not in page_of(folder)


def test_a_run_without_failures_has_no_such_part(make_run: Callable[..., Path]) -> None:
    assert "taken for" not in page_of(make_run("right", [[10, 10], [10, 10]]))
    folder = make_run("run", [[10, 9], [10, 10]])
    kept = torch.load(folder / "predictions.pt")
    torch.save({**kept, "predicted": kept["y"]}, folder / "predictions.pt")  # not those of the result
    assert "taken for" not in page_of(folder)

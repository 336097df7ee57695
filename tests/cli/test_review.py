"""The page to look at photos in a real browser: filter, correct, save the labels, and train and evaluate on them."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.common.keys import Keys
from tests.browser import MARKS, soon, started

from crosstail.data.images.files import ImageFiles
from crosstail.reports.review import SIZE, Review, Thumbnails

pytestmark = MARKS
EVIL = "<script>alert('x')</script>"
NAMES = ['it\'s "quoted".jpg', "<b>&amp;.jpg", f"{'long' * 60}.jpg", "plain.jpg"]
TRAIN = "--width 8 --steps 20 --batch-size 8 --evaluations 1"
SEEN = "return [...document.querySelectorAll('.tile')].map(tile => tile.querySelector('a').textContent)"


@pytest.fixture(scope="module")
def browser():
    with started() as driver:
        yield driver


@pytest.fixture
def page(crosstail, make_photos):
    """The page of new photos, whose names need escaping."""
    photos = make_photos(12)
    crosstail(f"fit {photos} --out run {TRAIN}").ok()
    new = Path("new", EVIL.replace("/", "|"))
    new.mkdir(parents=True)
    for name, photo in zip(NAMES, sorted(Path(photos).rglob("*.*")), strict=False):
        shutil.copy(photo, new / name)
    done = crosstail("predict run new --coverage 0.8 --out answers.csv").ok()
    assert "answers.html" in done.err
    return Path("answers.html")


def opened(browser, page, width):
    window = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(page.resolve().as_uri())
    assert browser.get_log("browser") == []
    asked = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    urls = {one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"}
    assert all(url == page.resolve().as_uri() or url.startswith("data:") for url in urls)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def press(browser, *keys):
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def test_corrected_labels_are_saved_as_a_table_that_fit_and_evaluate_read(browser, crosstail, page, tmp_path):
    opened(browser, page, 390)
    shown = browser.execute_script(SEEN)
    assert sorted(shown) == sorted(NAMES)
    with Path("answers.csv").open(encoding="utf-8") as file:
        rows = {Path(row["input"]).name: row for row in csv.DictReader(file)}
    flags = [(rows[name]["unlike_training"], rows[name]["review"]) for name in shown]
    assert flags == sorted(flags, reverse=True)  # those unlike training and those that need a look first
    places = browser.execute_script(
        "return [...document.querySelectorAll('.tile img')].map(image => image.naturalWidth)"
    )
    assert all(places)

    browser.execute_script("document.querySelector('.tile').focus()")
    press(browser, Keys.ENTER, "2", "x")  # right, the second class, left out
    press(browser, "o")
    press(browser, EVIL, Keys.TAB)
    state = "return [...document.querySelectorAll('.tile')].map(tile => tile.className.trim())"
    assert browser.execute_script(state) == ["tile right", "tile changed", "tile out", "tile changed"]
    opened(browser, page, 1440)  # what was decided is still there
    assert browser.execute_script(state) == ["tile right", "tile changed", "tile out", "tile changed"]
    browser.find_element("id", "flag").send_keys("changed")
    assert browser.execute_script(SEEN) == [shown[1], shown[3]]

    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    browser.find_element("id", "newsite").send_keys("north, 'new'")
    browser.find_element("id", "save").click()
    saved = soon(lambda: [file for file in tmp_path.glob("*labels.csv") if file.stat().st_size])[0]
    with saved.open(encoding="utf-8") as file:
        labels = {Path(row["path"]).name: row for row in csv.DictReader(file)}
    assert set(labels) == {shown[i] for i in (0, 1, 3)} and {row["domain"] for row in labels.values()} == {
        "north, 'new'"
    }
    assert labels[shown[0]]["label"] == rows[shown[0]]["class"] and labels[shown[3]]["label"] == EVIL
    assert labels[shown[1]]["label"] not in (rows[shown[1]]["class"], EVIL)

    elsewhere = Path("elsewhere")  # the table may be anywhere
    elsewhere.mkdir()
    shutil.move(saved, elsewhere / "labels.csv")
    found = crosstail("evaluate run elsewhere/labels.csv")
    assert found.code == 2 and "trained" in found.err  # copies of training photos are found by content
    for place in Path("new").rglob("*.jpg"):
        Image.effect_noise((40, 40), 90).convert("RGB").save(place)
    found = json.loads(crosstail("evaluate run elsewhere/labels.csv --json").ok().out)
    assert found["left_out"]["unknown"] == {EVIL: 1} and sum(map(sum, found["totals"])) == 2
    crosstail(f"fit elsewhere/labels.csv --out again {TRAIN}").ok()
    next(Path("new").rglob("plain.jpg" if "plain.jpg" in labels else shown[0])).unlink()
    gone = crosstail(f"fit elsewhere/labels.csv --out third {TRAIN}")
    assert gone.code == 2 and "1 of 3 files" in gone.err.replace("\n", " ")


def test_ten_thousand_photos_are_at_most_60_megabytes_and_open_in_three_seconds(browser, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (256, 256, 3), dtype=np.uint8)  # the worst case for JPEG
    names = [f"{i:05}{'n' * 200}.jpg" for i in range(10_000)]
    review = Review(ImageFiles(tmp_path, names), names, ["a", "b"], ["s"] * len(names))
    review.thumbnails(0, noise)
    review.thumbnails.made = dict.fromkeys(range(len(names)), review.thumbnails.made[0])
    p = np.random.default_rng(1).dirichlet([1, 1], len(names))
    flags = [["needs a look"] * (i % 2) + ["unlike anything in training"] * (i == 9_876) for i in range(len(names))]
    review.add(np.arange(len(names)), p, p > 0.3, flags)
    review.save(tmp_path / "page.html", "many")
    assert 20e6 < (tmp_path / "page.html").stat().st_size <= 60e6
    opened(browser, tmp_path / "page.html", 1440)
    assert (
        browser.execute_script(
            "return performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart"
        )
        < 3000
    )
    assert len(browser.execute_script(SEEN)) == 48
    browser.execute_script("document.getElementById('next').click()")
    assert "2 of 209" in browser.find_element("css selector", ".pages").text
    browser.find_element("id", "flag").send_keys("unlike anything in training")
    assert browser.execute_script(SEEN) == [names[9_876]]


def test_a_page_says_what_is_not_known(tmp_path):
    Image.new("RGB", (30, 20)).save(tmp_path / "a.png")
    for asked, said in ((False, "With `--coverage`, those that need a look"), (True, "0 of 1 photos need a look")):
        review = Review(ImageFiles(tmp_path, ["a.png"]), ["a.png"], ["a", "b"], [None], asked)
        review.add(np.arange(1), np.array([[0.9, 0.1]]), None, [[]])
        review.save(tmp_path / "page.html", "one")
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert said.replace("`--coverage`", "<code>--coverage</code>") in text


def test_thumbnails_are_as_large_as_there_is_room():
    few, many = Thumbnails(10), Thumbnails(20_000)
    assert few.side == 240 and many.side == 112 and many.most * 10_000 * 4 / 3 <= SIZE


@pytest.mark.parametrize("option", ["--no-page", ""])
def test_there_is_no_page_without_photos_or_if_it_is_not_wanted(crosstail, vectors, make_photos, option):
    data = make_photos(12) if option else vectors
    crosstail(f"fit {data} --out run {TRAIN}").ok()
    crosstail(f"predict run {data} --out answers.csv {option}").ok()
    assert not Path("answers.html").exists()

"""The pages in a real browser: they draw without errors, their fields work, and they make no requests."""

import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys
from tests.browser import MARKS, soon, started

from crosstail.reports.compare import demo_page as demo
from crosstail.reports.compare.feature_charts import ModelFeatures
from crosstail.reports.compare.page import write_report
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.results import Results
from crosstail.reports.document import html
from crosstail.reports.document.model import Choice, Code, Document, Slider, Table
from crosstail.reports.run.page import write_page
from crosstail.training.run import Run
from crosstail.transfer import TransferabilityGraph

pytestmark = MARKS
EVIL = "<script>photos<!--"
METHODS = ("erm", "boda", "coral", "irm", "mmd", "mixup", "dann", "ldam", "fish")
WAYS = {"phone": (390, 844, "dark", "rgb(22, 24, 28)"), "desktop": (1440, 900, "light", "rgb(255, 255, 255)")}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as driver:
        yield driver


def features() -> ModelFeatures:
    """Four samples of each of four pairs."""
    rng = np.random.default_rng(0)
    domain, y = np.repeat([[0, 0, 1, 1], [0, 1, 0, 1]], 4, axis=1)
    z = {split: (rng.normal(size=(16, 3)) + 3 * y[:, None]).astype(np.float32) for split in ("train", "test")}
    graph = TransferabilityGraph.from_features(z["train"], y, domain, num_domains=2, num_classes=2)
    both = dict.fromkeys(z, y), dict.fromkeys(z, domain)
    return ModelFeatures("boda", z, *both, (EVIL, "d1"), ("c0", "c1"), (100, 2), graph)


def add_traces(run: Path) -> None:
    """The three pairs with training samples, at other places in each evaluation."""
    file, rng = run / "records.jsonl", np.random.default_rng(0)
    records = [json.loads(line) for line in file.read_text().splitlines()]
    for record in records:
        record["trace"] = {"alpha": 1.0, "beta": 3.0, "gamma": 4.0, "points": rng.normal(size=(3, 2)).tolist()}
    file.write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture(scope="module")
def pages(make_run_in: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report, a run's page, and the demo's."""
    root = tmp_path_factory.mktemp("pages")
    many, few = root / "many", root / "few"
    for i, algorithm in enumerate(METHODS):
        hits = [[9, 1 + i], [i, 0]]
        run = make_run_in(many, algorithm, hits, algorithm=algorithm, alpha=1.0 + i, dataset=EVIL)
    add_traces(run)
    write_page(Run(run))
    methods = [*product(("erm", "boda"), (None, "retrain")), ("frozen", "blend")]
    for (algorithm, stage), seed in product(methods, (0, 1)):
        hits, spec = [[9, 5], [3 + 2 * seed, 0]], {"algorithm": algorithm, "second_stage": stage, "seed": seed}
        totals = [[10, 10], [10, 2]]
        make_run_in(few, f"{algorithm}{stage}{seed}", hits, totals=totals, dataset="digits", **spec)
    demo.write_page(root / "demo.html", Results(read_runs([few])), [])
    report = write_report(root / "out", Results(read_runs([many]), baseline="erm"), [features()], files=False)
    return {"report": report, "run": run / "report.html", "demo": root / "demo.html"}


def opened(browser: Any, page: Path, way: str) -> None:
    """Open the page in a window of this size; all charts are drawn once it is loaded, without scrolling to them.

    Those in a closed section are drawn when it is opened.
    """
    width, height, scheme, _ = WAYS[way]
    window = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": way == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
    colours = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", colours)
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(page.as_uri())
    charts = "[...document.querySelectorAll('[data-chart]')].filter(place => !place.querySelector('.marks'))"
    waiting = browser.execute_script(f"return {charts}.filter(place => !place.closest('details:not([open])'))")
    assert not waiting, ([p.get_attribute("aria-label") for p in waiting], browser.get_log("browser"))
    browser.execute_script("document.querySelectorAll('main details').forEach(section => { section.open = true; })")
    soon(lambda: not browser.execute_script(f"return {charts}"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["report", "run", "demo"])
def test_everything_is_drawn_without_errors_requests_or_sideways_scrolling(browser, pages, name, way):
    page, (width, _, _, paper) = pages[name], WAYS[way]
    opened(browser, page, way)
    assert [line["message"] for line in browser.get_log("browser")] == []
    events = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    assert page.as_uri() in asked and all(url == page.as_uri() or url.startswith("data:") for url in asked), asked
    labels = browser.execute_script(
        "return [...document.querySelectorAll('[data-chart]')].map(place => place.ariaLabel)"
    )
    assert all(re.match("(Bars|Lines|Points|Dots|Heat map|Scatter plots?|Gain)", label) for label in labels), labels
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == paper
    assert name == "demo" or EVIL in browser.execute_script("return document.body.innerText")


def test_tables_fit_without_scrolling(browser, pages):
    opened(browser, pages["demo"], "desktop")
    places = "[...document.querySelectorAll('.wide:has(table)')]"
    widths = browser.execute_script(f"return {places}.map(place => [place.scrollWidth, place.clientWidth])")
    assert len(widths) > 3 and all(table <= room for table, room in widths), widths
    assert "(n = 2)" in browser.execute_script(f"return {places}[0].innerText")


def test_fields_menus_and_buttons_work_by_keyboard(browser, pages):
    opened(browser, pages["report"], "desktop")
    field = browser.find_element("css selector", "[data-rows]")
    rows = "document.querySelector('[data-rows]').parentElement.nextElementSibling.querySelectorAll('tr:not([hidden])')"
    assert browser.execute_script(f"return {rows}.length") == 1 + len(METHODS)
    field.send_keys("BODA")
    assert browser.execute_script(f"return [...{rows}].map(row => row.cells[0].textContent)") == ["method", "• boda"]

    menu = browser.find_element("css selector", ".vega-bind select")
    drawn = "return arguments[0].closest('[data-chart]').querySelector('.marks').innerHTML"
    before = browser.execute_script(drawn, menu)
    menu.send_keys("mmd")
    soon(lambda: browser.execute_script(drawn, menu) != before)

    catch = "HTMLAnchorElement.prototype.click = function () { window.saved = [this.download, this.href.slice(0, 20)] }"
    browser.execute_script(catch)
    browser.find_element("css selector", "[data-save=png]").send_keys("\n")
    name, content = soon(lambda: browser.execute_script("return window.saved"))
    assert name.endswith(".png") and content.startswith("data:image/png")


def test_the_slider_moves_the_pairs_and_what_is_typed_finds_them(browser, pages):
    opened(browser, pages["run"], "desktop")
    slider = browser.find_element("css selector", ".vega-bind input[type=range]")
    marks = "return arguments[0].closest('[data-chart]').querySelector('.marks').innerHTML"
    kept, step = browser.execute_script(marks, slider), slider.get_attribute("value")
    slider.send_keys(Keys.ARROW_RIGHT)
    other = soon(lambda: (now := browser.execute_script(marks, slider)) != kept and now)
    assert slider.get_attribute("value") != step
    slider.send_keys(Keys.ARROW_LEFT)
    soon(lambda: browser.execute_script(marks, slider) == kept)

    chart = slider.find_element("xpath", "./ancestor::*[@data-chart]")
    chart.find_element("css selector", ".vega-bind input:not([type=range])").send_keys("c1")
    found = soon(lambda: (now := browser.execute_script(marks, slider)) not in (other, kept) and now)
    assert found.count('opacity="0.05"') > kept.count('opacity="0.05"')


def test_a_slider_and_its_menu_choose_what_is_shown_and_print_has_the_table(browser, tmp_path):
    choices = [Choice(menu, f"{place} %", [Code(f"{menu} {place}")]) for menu in (EVIL, "b") for place in (80, 90)]
    table = Table(header=["menu", "place"], rows=[[EVIL, "80"]])
    html.save(Document("t", [Slider("share", choices, 1, table)]), tmp_path / "slider.html")
    opened(browser, tmp_path / "slider.html", "phone")
    shown = lambda: browser.find_element("css selector", "main").text  # noqa: E731
    assert f"{EVIL} 90" in shown() and f"{EVIL} 80" not in shown() and "menu" not in shown()
    browser.find_element("css selector", "[type=range]").send_keys(Keys.ARROW_LEFT)
    assert f"{EVIL} 80" in shown() and "80 %" in shown() and f"{EVIL} 90" not in shown()
    browser.find_element("css selector", "select").send_keys("b")
    assert "b 80" in shown() and f"{EVIL} 80" not in shown()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert "menu" in shown() and "b 80" not in shown()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_charts_take_the_colour_of_the_page_on_a_dark_screen_and_on_paper(browser, pages):
    opened(browser, pages["run"], "phone")
    colour = "return getComputedStyle(document.querySelector('[data-chart] .role-axis-label text')).fill"
    assert browser.execute_script(colour) == "rgb(232, 234, 237)"
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
    assert browser.execute_script(colour) == "rgb(27, 31, 36)"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_contents_are_beside_the_page_on_a_wide_screen_and_folded_on_a_phone(browser, pages):
    place = "const [nav, text] = ['nav', 'main'].map(name => document.querySelector(name).getBoundingClientRect());"
    beside = f"{place} return [nav.right <= text.left, nav.height > 100]"
    opened(browser, pages["run"], "desktop")
    assert browser.execute_script(beside) == [True, True]
    opened(browser, pages["run"], "phone")
    assert browser.execute_script(beside) == [False, False]


def test_an_appendix_is_closed_until_its_title_or_a_link_to_it_is_clicked_or_the_page_is_printed(browser, pages):
    browser.get(pages["run"].as_uri())
    section, link = "document.querySelector('main details')", "document.querySelector('.toc a.sub[href=\"#training\"]')"
    seen = f"return [{section}.open, !!{section}.querySelector('[data-chart] .marks')]"
    assert browser.execute_script(seen) == [False, False]
    browser.execute_script(f"{section}.firstElementChild.click()")
    soon(lambda: browser.execute_script(seen) == [True, True])
    browser.execute_script(f"{section}.firstElementChild.click()")
    browser.execute_script(f"{link}.click()")
    soon(lambda: browser.execute_script(f"return {section}.open"))
    browser.get(pages["demo"].as_uri())
    browser.get(pages["run"].as_uri())
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    soon(lambda: browser.execute_script(seen) == [True, True])

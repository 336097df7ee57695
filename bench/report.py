"""Layout and drawing of as many pairs as DomainNet has, and the report on 2,000 runs."""

import dataclasses
import os
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from msgspec.structs import replace

from bench._rows import Row
from crosstail import discovery
from crosstail.metrics import PairAccuracy
from crosstail.reports.compare.page import write_report
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.results import Results
from crosstail.reports.document import html
from crosstail.reports.document.model import Document
from crosstail.reports.run.trace import moving_charts
from crosstail.storage import write_json
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.data_facts import DataFacts
from crosstail.training.fit import train_run
from crosstail.training.result import Evaluation, RunResult, SplitAccuracy, Trace, Transferability
from crosstail.transfer.layout import planar_layout

DOMAINS, CLASSES, QUICK_CLASSES, FEATURES = 6, 345, 50, 64
SEEDS, QUICK_SEEDS = 80, 8
METHODS = 25
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


def run() -> list[Row]:
    quick = os.environ.get("CROSSTAIL_BENCH") == "quick"
    with tempfile.TemporaryDirectory() as name:
        page = _page(Path(name), QUICK_SEEDS if quick else SEEDS)
        drawing = _drawing(Path(name), QUICK_CLASSES if quick else CLASSES) if BROWSER and DRIVER else []
    return [_layout(QUICK_CLASSES if quick else CLASSES), page, *drawing]


def transferability(classes: int) -> np.ndarray:
    """Distances between pairs with effects of class, domain and pair, plus the spread of the samples."""
    generator = np.random.default_rng(0)
    sizes = (4.0, (1, classes)), (1.5, (DOMAINS, 1)), (1.5, (DOMAINS, classes))
    means = sum(scale * generator.standard_normal((*shape, FEATURES)) for scale, shape in sizes).reshape(-1, FEATURES)
    squares = (means**2).sum(1)
    return np.sqrt((squares[:, None] + squares - 2 * means @ means.T).clip(0) + 8)


def _layout(classes: int) -> Row:
    matrix = transferability(classes)
    start = time.perf_counter()
    planar_layout(matrix)
    return Row(f"layout of {len(matrix):,} pairs", time.perf_counter() - start, "", None, 30.0)


def _drawing(folder: Path, classes: int) -> list[Row]:
    """The pairs at eleven evaluations in a browser, from opening the page until the marks are drawn."""
    from selenium import webdriver

    generator, counts = np.random.default_rng(0), np.full((DOMAINS, classes), 20)
    accuracy = SplitAccuracy.of(PairAccuracy(counts, counts))
    splits, statistics = {"validation": accuracy, "test": accuracy}, {"alpha": 1.0, "beta": 2.0, "gamma": 3.0}
    points = [[tuple(point) for point in generator.normal(size=(counts.size, 2)).round(4)] for _ in range(11)]
    traces = [Trace(**statistics, points=layout) for layout in points]
    records = [Evaluation(stage=1, step=10 * i, seconds=0, losses={}, trace=t, **splits) for i, t in enumerate(traces)]
    result = RunResult(
        spec=RunSpec(dataset="pairs"),
        versions={},
        selected_step=100,
        selected_steps=[100],
        seconds=0,
        domains=[f"domain {d}" for d in range(DOMAINS)],
        classes=[f"class {c}" for c in range(classes)],
        counts=counts.tolist(),
        **splits,
        transferability=Transferability(**statistics),
        hparams={},
        input_shape=[FEATURES],
        weights=None,
        data=DataFacts(checksum="", samples=counts.sum(), notes=[]),
    )
    (chart,) = moving_charts(result, records)
    html.save(Document("pairs", [chart]), folder / "pairs.html")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    seconds = []
    try:
        for _ in range(5):
            start = time.perf_counter()
            browser.get((folder / "pairs.html").as_uri())
            while not browser.execute_script("return document.querySelector('[data-chart] .marks')"):
                time.sleep(0.01)
            seconds.append(time.perf_counter() - start)
    finally:
        browser.quit()
    return [Row(f"draw {counts.size:,} pairs in a browser", median(seconds), "", None, 2.0)]


def _page(folder: Path, seeds: int) -> Row:
    save_separable(folder / "vectors.npz", [[100, 30, 10, 5], [5, 10, 30, 100], [20, 20, 20, 20]])
    spec = RunSpec(dataset=str(folder / "vectors.npz"), algorithm="erm", backbone="mlp", width=8, steps=10)
    result = train_run(spec, folder / "one").result
    generator = np.random.default_rng(0)
    names = discovery.names("crosstail.algorithms")[:METHODS]
    for algorithm in names:
        for seed in range(seeds):
            place = folder / "runs" / f"{algorithm} {seed}"
            place.mkdir(parents=True)
            own = dataclasses.replace(result.spec, algorithm=algorithm, seed=seed)
            alpha = (result.transferability.alpha or 0) * generator.uniform(0.5, 1)
            transferability = replace(result.transferability, alpha=alpha)
            write_json(place / "result.json", replace(result, spec=own, transferability=transferability))
            for file in ("records.jsonl", "predictions.pt"):
                shutil.copy(folder / "one" / file, place / file)
    start = time.perf_counter()
    write_report(folder / "report", Results(read_runs([folder / "runs"]), baseline="erm"), files=False)
    return Row(f"page of {len(names) * seeds:,} runs", time.perf_counter() - start, "", None, 20.0)

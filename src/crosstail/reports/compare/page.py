"""The page of many runs, with its tables and charts as files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosstail.metrics import DEFAULT, PairAccuracy, wilson
from crosstail.reports.compare import charts
from crosstail.reports.compare.feature_charts import ModelFeatures, bound_table, feature_charts
from crosstail.reports.compare.gain_charts import gain_chart, gain_table
from crosstail.reports.compare.method_runs import by_method
from crosstail.reports.compare.paper_table import paper_table
from crosstail.reports.compare.published import published_table
from crosstail.reports.compare.ranks import ranks
from crosstail.reports.compare.results import Results
from crosstail.reports.compare.significance import SEARCHED, THESE, verdict
from crosstail.reports.compare.tables import RANKED, of_metric, transfer_table
from crosstail.reports.compare.text_tables import (
    domain_table,
    effects,
    known_table,
    other_tables,
    overall,
    plain_table,
    result_table,
)
from crosstail.reports.document import html
from crosstail.reports.document.files import FORMATS, save_chart, save_floating, save_table
from crosstail.reports.document.model import Block, Chart, Document, Heading, Table, Text, bullets
from crosstail.reports.run.critical import CRITICAL
from crosstail.reports.wording import interval, listing, number, of_the, several
from crosstail.sweeps.recommendation import BASELINE

MEASURED = (
    "From the probabilities that the runs have kept, calibrated as predict gives them. Macro F1, balanced accuracy and "
    "AUROC of a pair are computed for its class among all test samples of the domain; a domain has the mean over its "
    "classes. Intervals come from the influence of each test sample."
)
UNSEEN = " With dg, all are measured on the unseen domains."
NAMED = 20  # skipped folders that are listed


def write_report(
    out: Path, results: Results, models: Sequence[ModelFeatures] = (), *, files: bool = True, published: bool = False
) -> Path:
    """Write OUT/index.html, OUT/tables/ and, unless `files` is False, OUT/charts/; `published` adds others' figures."""
    page = list(blocks(results, models, published))
    title = f"Results{of_the(results.of)} on {listing(list(results.files), 3)}"
    html.save(Document(title, page), out / "index.html")
    for block in page:
        if isinstance(block, Table) and block.name:
            save_table(block, out / "tables")
        elif isinstance(block, Chart) and files:
            (out / "charts").mkdir(exist_ok=True)
            for suffix in FORMATS:
                save_chart(block, out / "charts" / f"{block.name}.{suffix}")
    for data, name in results.files.items():
        if table := paper_table(results.summary, results.tests, data, name):
            save_floating(table, out / "tables")
    return out / "index.html"


def blocks(results: Results, models: Sequence[ModelFeatures] = (), published: bool = False) -> Iterator[Block]:
    """What the runs show; `models` are those whose features to draw."""
    runs, chosen, found, summary = results.runs, results.runs.chosen, results.methods, results.summary
    names, metric = results.files, results.of
    yield from (table for data in names for table in _critical(results, data))
    if len(names) == 1:
        yield from _answer(results, next(iter(names)))
    yield Text(
        f"{several(len(chosen), 'finished run')} of {several(chosen['method'].nunique(), 'method')} on "
        f"{several(len(names), 'data set')}. {metric.label[:1].upper()}{metric.label[1:]}{' in %' * metric.share}"
        f"{', where lower is better' * (not metric.higher_is_better)}, mean over the seeds; the best is bold, and a "
        "dot marks BoDA." + UNSEEN * any(run.dg for run in found)
    )
    if results.metric != DEFAULT:
        yield Text(MEASURED)
    for race in runs.races:
        yield Text(
            f"Race on {race.dataset}: {race.recommendation} A race ranks by validation; the tables are of the test set."
        )
    if len(names) > 1:
        yield Heading("All data sets")
        yield overall(summary)
        yield from filter(None, [effects(summary)])
        yield from ranks(summary)
    if published and results.metric == DEFAULT:
        yield from filter(None, [published_table(results)])
    for data, name in names.items():
        yield Heading(data)
        if len(names) > 1:
            yield from _answer(results, data)
        yield Heading("Methods", 3)
        yield result_table(summary, data, f"results-{name}")
        if len(own := results.tests[results.tests["data"] == data]):
            if THESE in set(own["about"]):
                yield Text("A single seed shows how these models differ, not the methods if trained again.", dim=True)
            if any(run.trials for run in chosen["run"]):
                yield Text(SEARCHED, dim=True)
        elif len(by_method(results.methods, data)) > 1:
            yield Text("Without validation samples, nothing says what to test methods against. Name a --baseline.")
        if known := known_table(summary, data, f"known-{name}"):
            yield known
        by_domain = domain_table(summary, data, f"domains-{name}")
        if len(by_domain.header) > 3:
            yield by_domain
        yield from _charts(results, data)
    yield Heading("More tables")
    yield from other_tables(results)
    if models:
        yield Heading("Features")
        yield from feature_charts(models)
        yield from _bound(models)
    yield from _skipped(results)


def _critical(results: Results, data: str) -> Iterator[Block]:
    """The recall of classes that must not be missed by each method at each site: the mean over its seeds."""
    methods = by_method(results.methods, data)
    runs, rows = [one for own in methods.values() for run in own for one in run.runs], []
    for name in dict.fromkeys(name for one in runs for name in one.critical):
        for method, own in methods.items():
            accuracies = [PairAccuracy.pooled([one.accuracy() for one in run.runs]) for run in own]
            right, tests = np.mean([of.independent for of in accuracies], axis=0)[:, :, runs[0].classes.index(name)]
            low, high = wilson(right, tests)
            for d in np.flatnonzero(tests):
                recall, ends = number(100 * right[d] / tests[d]), interval(100 * low[d], 100 * high[d])
                rows.append([method, name, runs[0].domains[d], recall, ends])
    if rows:
        yield Heading(CRITICAL)
        yield Table(title=data, header=["method", "class", "site", "recall, %", "95 % interval"], rows=rows)


def _answer(results: Results, data: str) -> Iterator[Block]:
    """The method that the others are tested against on a data set, and what the tests say."""
    ranked, own = of_metric(results.summary, RANKED, data), results.tests[results.tests["data"] == data]
    if ranked.empty:
        return
    metric, reference = results.of, own["against"].iloc[0] if len(own) else ranked["method"].iloc[0]
    best = ranked[ranked["method"] == reference].iloc[0]
    ends = f"95 % interval {interval(best['low'], best['high'], digits=metric.digits)}"
    value = f"{number(best['mean'], metric.digits)}{metric.unit}"
    name = "baseline" if results.baseline == reference else "best on validation" if len(own) else "best on test"
    text = f"{reference}, the {name}, has a {best['metric']}{of_the(metric)} on {data} of {value} ({ends})."
    yield Text(f"{text} {verdict(own, metric)}" if len(own) else text, lead=True)


def _charts(results: Results, data: str) -> Iterator[Block]:
    name, summary, baseline = results.files[data], results.summary, results.baseline or BASELINE
    found = [run for run in results.methods if run.data == data]
    if found:
        yield Heading("Pairs", 3)
        yield charts.counts_chart(f"labels-{name}", found[0])
    listed = charts.shortlist(summary, data, baseline)
    if found and baseline in listed and len(listed) > 1:
        best = next(method for method in of_metric(summary, RANKED, data)["method"] if method != baseline)
        yield gain_chart(f"gain-{name}", data, gain_table(found, baseline), baseline, best, results.of)
    curves, traces = charts.curve_tables(found, listed)
    if len(curves):
        yield Heading("Training", 3)
        yield charts.curve_chart(f"curves-{name}", data, curves, listed, found[0].runs[0].spec.selected_on)
    if len(traces):
        yield charts.trace_chart(f"trace-{name}", data, traces, listed)
    of_data = results.runs.table[results.runs.table["data"] == data]
    chosen = transfer_table(of_data[of_data["chosen"]])
    separated = charts.separation_chart(f"separation-{name}", data, transfer_table(of_data))
    drawn = [chart for chart in (separated, charts.transfer_chart(f"transferability-{name}", data, chosen)) if chart]
    if drawn:
        yield Heading("Transferability", 3)
        yield from drawn


def _bound(models: Sequence[ModelFeatures]) -> Iterator[Table]:
    bounds = bound_table(models)
    if len(bounds):
        gap = float((bounds["empirical"] / bounds["theoretical"] - 1).max())
        title = f"The BoDA loss is at most {100 * gap:.2f} % above its theoretical lower bound"
        formats: dict[str, Any] = dict.fromkeys(("empirical", "theoretical"), lambda value: number(value, 5))
        yield plain_table("bound", title, bounds, **formats)


def _skipped(results: Results) -> Iterator[Block]:
    runs, missing = results.runs, results.left_out
    yield Heading("Runs and skipped folders")
    trials = len(runs.table) - len(runs.chosen)
    yield Text(
        f"{several(len(runs.table), 'finished run')}, {trials:,} of them trials that were not chosen; "
        f"{several(len(runs.skipped), 'folder')} skipped."
    )
    if missing:
        yield bullets(f"Left out: {sentence}." for sentence in missing[:NAMED])
    if runs.skipped:
        rest = len(runs.skipped) - NAMED
        rows = [[str(path), why] for path, why in runs.skipped[:NAMED]]
        note = f"and {rest:,} more" if rest > 0 else ""
        yield Table(header=["folder", "reason"], rows=rows, note=note, words_last=True)

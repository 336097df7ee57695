"""The page of many runs, with its tables and figures beside it as files."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from crosstail.report.wording import several
from crosstail.report.compare.charts import (
    Figure,
    counts_figure,
    curve_figure,
    curve_table,
    gain_figure,
    gain_table,
    separation_figure,
    shortlist,
    transfer_figure,
)
from crosstail.report.compare.feature_charts import Seen, bound_table, feature_figures
from crosstail.report.compare.read_runs import Runs
from crosstail.report.compare.table_files import TextTable, number, result_text, save
from crosstail.report.compare.tables import (
    alignment_table,
    decoupling_table,
    entries,
    hparams_table,
    nu_table,
    overall_table,
    significance_table,
    summary_table,
    transfer_table,
)
from crosstail.report.page import Chart, Page, save_chart
from crosstail.report.run.trace import method_curve, method_figure

FORMATS = ("svg", "png", "pdf")
NAMED = 20  # folders that were left out, by name


def write_report(out: Path, runs: Runs, baseline: str, seen: Sequence[Seen] = (), files: bool = True) -> Path:
    """OUT/index.html, OUT/tables/ and OUT/figures/; `seen` are the models to draw the features of."""
    names = list(dict.fromkeys(runs.chosen["data"]))
    page = Page("Results of " + ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""))
    made = add_results(page, runs, baseline, seen)
    page.save(out / "index.html")
    for part in made:
        if isinstance(part, TextTable):
            save(part, out / "tables")
        elif files:
            save_figure(part, out / "figures")
    return out / "index.html"


def add_results(page: Page, runs: Runs, baseline: str, seen: Sequence[Seen] = ()) -> list[TextTable | Figure]:
    """Show what the runs found on a page, and return its tables and figures."""
    chosen = runs.chosen
    found, missing = entries(chosen)
    if not found:
        raise ValueError(f"no method has a run for every unseen domain: {missing[0]}")
    summary = summary_table(chosen)
    names = _file_names(list(dict.fromkeys(summary["data"])))
    made: list[TextTable | Figure] = []

    def show(part: TextTable | Figure) -> None:
        made.append(part)
        if isinstance(part, Figure):
            part.show(page)
            return
        page.heading(part.title)
        page.table(part.header, part.rows, part.best, search=len(part.rows) > 8)
        if part.note:
            page.text(part.note, dim=True)

    page.text(
        f"{several(len(chosen), 'finished run')} of {several(chosen['method'].nunique(), 'method')} on "
        f"{several(len(names), 'data set')}. Accuracies in %, mean ± standard deviation over the seeds; the best is "
        "bold, and a dot marks BoDA."
    )
    if len(names) > 1:
        show(_overall_text(overall_table(summary), summary))
    tests = significance_table(chosen)
    for data, name in names.items():
        test = tests[tests["data"] == data]
        show(result_text(summary, data, f"results-{name}", _headline(summary, data)))
        if len(test):
            page.text(_verdict(test.iloc[0].to_dict()))
        for figure in _figures(name, data, runs.table, [e for e in found if e.data == data], summary, baseline):
            show(figure)
    for table in _other_tables(chosen, summary, tests):
        show(table)
    if seen:
        for figure in feature_figures(seen):
            show(figure)
        bounds = bound_table(seen)
        if len(bounds):
            digits = dict.fromkeys(("empirical", "theoretical"), lambda value: number(value, 5))
            gap = float((bounds["empirical"] / bounds["theoretical"] - 1).max())
            title = f"The BoDA loss is at most {100 * gap:.2f} % above the least that its theorems allow"
            show(_plain("bound", title, bounds, digits))
    _left_out(page, runs, missing)
    return made


def save_figure(figure: Figure, folder: Path) -> None:
    """NAME.svg, NAME.png and NAME.pdf."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in FORMATS:
        save_chart(titled(figure), folder / f"{figure.name}.{suffix}")


def titled(figure: Figure) -> Chart:
    """The chart to stand alone, with the finding as title."""
    chart = figure.chart.copy(deep=False)
    if getattr(chart, "width", None) == "container":
        chart.width = 560
    chart.title = alt.TitleParams(_lines(figure.title), anchor="start")
    return chart


def _lines(text: str, width: int = 80) -> list[str]:
    """Broken between words, but not at a non-breaking space."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def _file_names(data: Sequence[str]) -> dict[str, str]:
    """A name for files, different for each data set."""
    found: dict[str, str] = {}
    for name in data:
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "data"
        taken = sum(other == plain or other.startswith(f"{plain}-") for other in found.values())
        found[name] = f"{plain}-{taken + 1}" if plain in found.values() else plain
    return found


def _headline(summary: pd.DataFrame, data: str) -> str:
    rows = summary[(summary["data"] == data) & (summary["figure"] == "pair average") & (summary["kind"] == "figure")]
    if rows.empty:
        return f"{data}: there are no test samples"
    best = rows.sort_values("mean", ascending=False, kind="stable").iloc[0]
    return f"{data}: {best['method']} is best over all pairs, {number(best['mean'])} %"


def _verdict(test: dict[Any, Any]) -> str:
    words = f"Best against second over all pairs: {test['best']} is {number(test['difference'], 1)} points above "
    words += str(test["second"])
    if test["p"] != test["p"]:
        return (
            f"{words}. How sure that is cannot be said: not all of their runs have kept what they said of each sample."
        )
    sure = "a difference" if test["p"] < 0.05 else "no difference that could be told from chance"
    return (
        f"{words} (95 % interval {number(test['low'], 1, '+')} to {number(test['high'], 1, '+')}, p = {test['p']:.3f}, "
        f"paired bootstrap over the test samples): {sure}. The choice of the best of many is not accounted for."
    )


def _figures(
    name: str, data: str, table: pd.DataFrame, found: Sequence[Any], summary: pd.DataFrame, baseline: str
) -> list[Figure]:
    made = [counts_figure(f"labels-{name}", found[0])] if found else []
    listed = shortlist(summary, data, baseline)
    others = [method for method in listed if method != baseline]
    if found and baseline in listed and others:
        best = shortlist(summary[summary["method"] != baseline], data, baseline)[0]
        made.append(gain_figure(f"gain-{name}", data, gain_table(found, baseline), baseline, best))
    curves = curve_table(found, listed)
    if len(curves):
        made.append(curve_figure(f"curves-{name}", data, curves, listed))
    traces = method_curve(found, listed)
    if len(traces):
        made.append(method_figure(f"trace-{name}", data, traces, listed))
    models = transfer_table(table[table["data"] == data])
    if len(models):
        made.append(separation_figure(f"separation-{name}", data, models, listed))
        finals = transfer_table(table[(table["data"] == data) & table["chosen"]])
        made.append(transfer_figure(f"transferability-{name}", data, finals))
    return made


def _overall_text(table: pd.DataFrame, summary: pd.DataFrame) -> TextTable:
    boda = set(summary[summary["boda"]]["method"])
    best = {
        (i, j + 1)
        for j, column in enumerate(table.columns)
        for i, value in enumerate(table[column])
        if value == table[column].max() and table[column].nunique() > 1
    }
    rows = [["• " * (row[0] in boda) + row[0], *map(number, row[1:])] for row in table.reset_index().to_numpy()]
    title = "Over all data sets: average accuracy of the domains"
    if table["mean"].notna().any():
        title = f"Over all data sets, {table['mean'].idxmax()} has the highest average accuracy"
    note = "The mean over the domains of each data set; the last column where a method was run on all."
    return TextTable("overall", title, ["method", *table.columns], rows, table.reset_index(), best, note)


def _other_tables(chosen: pd.DataFrame, summary: pd.DataFrame, tests: pd.DataFrame) -> list[TextTable]:
    """What exists of: decoupling, DA against BoDA, ν, significance, hyperparameters."""
    found = []
    for name, what, make in (
        ("decoupling", "Training the classifier again", decoupling_table),
        ("da-boda", "Balancing the distance (BoDA against DA)", alignment_table),
    ):
        table = make(summary)
        if len(table):
            title = f"{what} changes the pair average by {table['gain'].mean():+.1f} points on average"
            found.append(_plain(name, title, table, {"gain": lambda v: number(v, 1, "+")}))
    nu = nu_table(chosen)
    if len(nu):
        best = nu.iloc[int(nu["mean"].argmax())]
        title = f"The best calibration exponent is ν = {best['nu']:g}, with {best['mean']:.1f} % over all pairs"
        found.append(_plain("nu", title, nu.rename(columns={"nu": "ν"}), {"ν": "{:g}".format}))
    if len(tests):
        sure = int((tests["p"] < 0.05).sum())
        title = f"The best method is told from the second on {sure} of {several(len(tests), 'data set')}"
        found.append(_plain("significance", title, tests, {"p": lambda v: number(v, 3)}))
    words = hparams_table(chosen)
    title = "Hyperparameters of the reported runs, and the validation pair average they were chosen by"
    found.append(_plain("hyperparameters", title, words, {"hparams": _words, "trials": lambda v: number(v, 0)}))
    return found


def _words(hparams: str) -> str:
    found = json.loads(hparams).items()
    return ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in found) or "defaults"


def _plain(name: str, title: str, table: pd.DataFrame, formats: dict[str, Callable[[Any], str]]) -> TextTable:
    def cell(column: str, value: Any) -> str:
        return (
            formats[column](value) if column in formats else number(value) if isinstance(value, float) else str(value)
        )

    rows = [[cell(column, row[column]) for column in table.columns] for row in table.to_dict("records")]
    return TextTable(name, title, list(table.columns), rows, table)


def _left_out(page: Page, runs: Runs, missing: Sequence[str]) -> None:
    page.heading("What was read and what was not")
    trials = len(runs.table) - len(runs.chosen)
    page.text(
        f"{several(len(runs.table), 'finished run')}, of which {trials:,} are trials that were not chosen; "
        f"{several(len(runs.skipped), 'folder')} left out."
    )
    for sentence in missing[:NAMED]:
        page.text(f"Left out: {sentence}.")
    if runs.skipped:
        page.table(["folder", "why"], [[str(path), why] for path, why in runs.skipped[:NAMED]], words_last=True)
    if len(runs.skipped) > NAMED:
        page.text(f"And {len(runs.skipped) - NAMED:,} more.")

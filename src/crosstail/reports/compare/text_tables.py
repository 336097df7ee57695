"""The tables of a report as text: rounded, with the best values emphasised and the unrounded numbers attached."""

from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from crosstail.metrics import FEW_TESTS, LEVEL, find, mean_interval
from crosstail.reports.compare import tables
from crosstail.reports.compare.results import Results
from crosstail.reports.compare.significance import how
from crosstail.reports.compare.tables import METRICS, RANKED, metric_of, of_metric
from crosstail.reports.document.model import Columns, Table, records_table
from crosstail.reports.wording import TRACKS, has, interval, number, of_the, probability, selected_on, several, shown
from crosstail.sweeps.recommendation import BASELINE


def result_table(summary: pd.DataFrame, data: str, name: str) -> Table:
    """The results on one data set, the best by `RANKED` first: mean ± error over the seeds; a dot marks BoDA."""
    return _with_best(_of_kind("metric", summary, data, name, data))


def known_table(summary: pd.DataFrame, data: str, name: str) -> Table | None:
    """The same with the domain known, if it makes a difference to any method."""
    means = (of_metric(summary, RANKED, data, kind).set_index("method")["mean"] for kind in ("metric", "known"))
    unknown, known = means
    if known.empty or known.sub(unknown).abs().max() < 1e-9:
        return None
    table = _with_best(_of_kind("known", summary, data, name, f"{data}, {TRACKS[1]}"))
    same = f"Methods that ignore the domain have the same {metric_of(summary).label} as above."
    return replace(table, note=f"{same} {table.note}".rstrip())


def _with_best(table: Table) -> Table:
    """The table with the best method in its title, and a note on pairs with few test samples."""
    assert table.numbers is not None
    ranked = table.numbers[table.numbers["metric"].isin(RANKED)]
    title, note = f"{table.title}: there are no test samples", ""
    if len(ranked):
        best = ranked.iloc[0]  # rows are sorted by it
        metric = metric_of(ranked)
        value, what = f"{number(best['mean'], metric.digits)}{metric.unit}", f"{best['metric']}{of_the(metric)}"
        title = f"{table.title}: {best['method']} has the best {what} on the test set, {value}"
    few = table.numbers["barely_tested"].max()
    if few > 0:
        pairs = f"{several(int(few), 'pair')} {has(int(few))} n < {FEW_TESTS} test samples"
        note = f"{pairs}; as the worst pair, such a pair is mostly chance."
    return replace(table, title=title, note=note)


def domain_table(summary: pd.DataFrame, data: str, name: str) -> Table:
    """The metric on each domain, like `result_table`."""
    return _of_kind("domain", summary, data, name, f"{data}: {metric_of(summary).label} on each domain")


def _of_kind(kind: str, summary: pd.DataFrame, data: str, name: str, title: str) -> Table:
    of_data = summary[(summary["data"] == data) & (summary["kind"] == kind)]
    rank = of_metric(summary, RANKED, data, "known" if kind == "known" else "metric").set_index("method")["mean"]
    metric = metric_of(summary)
    of_data = of_data.sort_values("method", key=lambda names: -metric.sign * names.map(rank), kind="stable")
    cells = {(row["method"], row["metric"]): row for row in of_data.to_dict("records")}
    present = dict.fromkeys(of_data["metric"])
    columns = list(present)
    if kind != "domain":  # what they are ranked by comes first
        columns = sorted((name for name in METRICS if name in present), key=lambda name: name not in RANKED)
    rows, best = [], set()
    for i, (method, own) in enumerate(of_data.groupby("method", sort=False)):
        rows.append(["• " * bool(own["boda"].any()) + str(method), str(own["n"].max())])
        for j, column in enumerate(columns):
            cell = cells.get((method, column), {"mean": None, "error": np.nan, "best": False, "tests": np.nan})
            spread = "" if np.isnan(cell["error"]) else f" ± {number(cell['error'], metric.digits)}"
            chance = f" (n = {cell['tests']:.0f})" if cell["tests"] < FEW_TESTS else ""
            rows[i].append(number(cell["mean"], metric.digits) + spread + chance)
            if cell["best"]:
                best.add((i, j + 2))
    spread = f" (± {of_data['spread'].iloc[0]})" if of_data["error"].notna().any() else ""
    header = ["method", f"seeds{spread}", *columns]
    return Table(name=name, title=title, header=header, rows=rows, numbers=of_data, emphasised=best)


def overall(summary: pd.DataFrame) -> Table:
    """The average of each method on all data sets side by side."""
    table = tables.overall_table(summary)
    boda = set(summary[summary["boda"]]["method"])
    metric = metric_of(summary)
    lower, name = not metric.higher_is_better, metric.label
    leading = table.eq(table.min() if lower else table.max()) & (table.nunique() > 1)
    best = {(int(i), int(j) + 1) for i, j in np.argwhere(leading.to_numpy())}
    title = f"Average {name} on all data sets"
    if table["mean"].notna().any():
        first, word = (table["mean"].idxmin(), "lowest") if lower else (table["mean"].idxmax(), "highest")
        title = f"{first} has the {word} average {name} over all data sets"
    flat = table.reset_index()
    return Table(
        name="overall",
        title=title,
        header=list(flat.columns),
        rows=[
            ["• " * (name in boda) + name, *(number(v, metric.digits) for v in row)] for name, *row in flat.to_numpy()
        ],
        numbers=flat,
        emphasised=best,
        note="Mean over the domains of each data set; the last column is for methods that were run on all of them.",
    )


def effects(summary: pd.DataFrame) -> Table | None:
    """The gain of each method that was run on all data sets, with a data set as the unit; None of a single one."""
    values, digits = tables.everywhere(summary), metric_of(summary).digits
    order = list(map(str, values))
    if min(values.shape) < 2:
        return None
    base = BASELINE if BASELINE in values.index else values.mean(axis=1).idxmax()
    gains = values - values.loc[str(base)]
    ends = np.array([mean_interval(row) if row.any() else (np.nan,) * 2 for row in gains.to_numpy()])
    table = gains.assign(mean=gains.mean(axis=1), low=ends[:, 0], high=ends[:, 1])
    table = table.sort_values("mean", ascending=False, kind="stable").reset_index()
    columns: Columns = {"method": itemgetter("method"), "mean": shown("mean", digits, "+")}
    columns |= {"95 % interval": lambda row: interval(row["low"], row["high"], "+z", digits)}
    columns |= {data: shown(data, digits, "+") for data in order}
    return records_table(
        table.to_dict("records"),
        columns,
        name="effects",
        title=f"Gain over {base} on each of {several(len(order), 'data set')}",
        numbers=table,
        note="The interval is Student's of the mean over data sets like these.",
    )


def other_tables(results: Results) -> list[Table]:
    """Second stage, DA against BoDA, ν, significance and hyperparameters, as far as there are runs for them."""
    found, metric, decimals = [], results.of, results.of.digits
    summary, tests, chosen = results.summary, results.tests, results.runs.chosen
    ranked = " or ".join(dict.fromkeys(of_metric(summary, RANKED)["metric"])) + of_the(metric)
    for name, what, table in (
        ("second-stage", "The second stage", tables.second_stage_table(summary)),
        ("da-boda", "Balancing the distance (BoDA against DA)", tables.alignment_table(summary)),
    ):
        if len(table):
            change = number(metric.sign * table["gain"].mean(), decimals, "+")
            title = f"{what} changes the {ranked} by {change}{metric.points} on average"
            found.append(plain_table(name, title, table, decimals, gain=lambda v: number(v, decimals, "+")))
    nu = tables.nu_table(results.methods)
    if len(nu):
        best = nu.iloc[int((metric.sign * nu["mean"]).argmax())]
        mean = f"{number(best['mean'], decimals)}{metric.unit}"
        title = f"The best calibration exponent is ν = {best['nu']:g}, with a mean {ranked} of {mean}"
        found.append(plain_table("nu", title, nu.rename(columns={"nu": "ν"}), decimals, **{"ν": "{:g}".format}))
    if tests["adjusted"].notna().any():
        sure = int((tests["adjusted"] < LEVEL).sum())
        title = f"Differences between methods: {sure} of {len(tests)} significant"
        formats: dict[str, Callable[[Any], str]] = dict.fromkeys(("p", "adjusted"), probability)
        formats["difference"] = lambda v: number(v, decimals, "+")
        formats["same"] = lambda v: "yes" if v else ""
        differences = plain_table("significance", title, tests, decimals, **formats)
        header = [
            {"adjusted": "corrected p", "low": "from", "high": "to", "same": "same answers"}.get(name, name)
            for name in differences.header
        ]
        in_points = "Points, with" if metric.share else "With"
        found.append(replace(differences, header=header, note=f"{in_points} 95 % intervals: {how(tests)}."))
    criteria = dict.fromkeys(run.spec.selected_on for run in chosen["run"])
    on = " or ".join(selected_on(one) for one in criteria)
    title = f"Hyperparameters of the reported runs, and the {on} on validation that they were chosen by"
    finest = max(find(one).digits for one in criteria)
    formats = {"hparams": _hparams, "trials": lambda v: number(v, 0), "validation": lambda v: number(v, finest)}
    hparams = plain_table("hyperparameters", title, tables.hparams_table(chosen), 1, **formats)
    found.append(replace(hparams, header=[*hparams.header[:-1], "hyperparameters"], words_last=True))
    return found


def plain_table(
    name: str, title: str, table: pd.DataFrame, decimals: int = 1, **formats: Callable[[Any], str]
) -> Table:
    """A table as it is, floats with so many digits unless a column has its own format."""

    def cell(column: str, value: Any) -> str:
        if column in formats:
            return formats[column](value)
        return number(value, decimals) if isinstance(value, float) else str(value)

    rows = [[cell(column, row[column]) for column in table.columns] for row in table.to_dict("records")]
    return Table(name=name, title=title, header=list(table.columns), rows=rows, numbers=table)


def _hparams(text: str) -> str:
    found = msgspec.json.decode(text).items()
    return ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in found) or "defaults"

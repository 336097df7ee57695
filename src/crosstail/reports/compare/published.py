"""Published figures beside ours: those of the paper and of DomainBed that could be had."""

import math
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

from crosstail.data.sources.benchmark import benchmark_of
from crosstail.reports.compare.results import Results
from crosstail.reports.compare.tables import overall_table
from crosstail.reports.document.model import Columns, Table, records_table
from crosstail.reports.wording import interval, number, shown

MEAN = "mean"
"""What the table has, in the place of a data set, for the mean over its five sets."""


@cache
def published() -> pd.DataFrame:
    """One row per figure: protocol (mdlt or dg), data, method, value in %, standard error if known, and source."""
    with files("crosstail.reports.compare").joinpath("published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def published_table(results: Results) -> Table | None:
    """Accuracies averaged over domains beside the published ones; None on data that nobody has published on.

    The interval of a difference is that of our test samples; the published figure counts as exact. A method of the
    authors' code, such as boda@reference, stands beside the figure of its method.
    """
    rows, known = list[dict[str, Any]](), published()
    ours = results.summary[
        results.summary["metric"].isin(["average", "accuracy"]) & (results.summary["kind"] == "metric")
    ]
    for data, (protocol, name) in _sets(results).items():
        theirs = known[(known["data"] == name) & (known["protocol"] == protocol)]
        own = ours[ours["data"] == data].drop_duplicates("method").set_index("method")[["mean", "low", "high"]]
        if name == MEAN:
            own = overall_table(results.summary)[["mean"]].assign(low=math.nan, high=math.nan)
        taken = set[str]()
        for method, *values in own.itertuples() if len(theirs) else ():
            match = theirs[theirs["method"] == method.replace("@reference", "")].to_dict("records")
            taken |= {row["method"] for row in match}
            value = match[0]["value"] if match else math.nan
            found = dict(zip(("difference", "low", "high"), (ours - value for ours in values), strict=True))
            rows.append({"data": data, "method": method, "ours": values[0], "published": value, **found})
            rows[-1] |= {key: match[0][key] if match else none for key, none in (("error", math.nan), ("source", ""))}
        rest = theirs[~theirs["method"].isin(taken)].assign(data=data, published=theirs["value"])
        rows += [{str(k): v for k, v in row.items()} for row in rest.to_dict("records")]
    if not rows:
        return None
    table = pd.DataFrame(rows)
    columns: Columns = {"data": lambda row: row["data"], "method": lambda row: row["method"], "ours": shown("ours", 1)}
    columns |= {"published": _with_error, "difference": shown("difference", 1, "+")}
    columns |= {
        "95 % interval": lambda row: interval(row["low"], row["high"], "+z"),
        "source": lambda row: row["source"],
    }
    return records_table(
        table.to_dict("records"),
        columns,
        name="published",
        title="Published figures beside ours",
        numbers=table,
        note="Average accuracy over domains in %; ± is the standard error over seeds. The intervals are of our test "
        "samples, with published figures as exact. A dash is a figure that is not known, or a method not run.",
    )


def _with_error(row: dict[str, float]) -> str:
    spread = "" if pd.isna(row["error"]) else f" ± {number(row['error'], 1)}"
    return number(row["published"], 1) + spread


def _sets(results: Results) -> dict[str, tuple[str, str]]:
    """Protocol and benchmark of the data sets on their usual labels, and the mean, if these are the published five."""
    first = {run.data: run.runs[0].spec for run in reversed(results.methods)}
    found = {data: ("dg" if spec.unseen_domains else "mdlt", spec) for data, spec in first.items() if not spec.labels}
    named = {data: (protocol, benchmark_of(spec.dataset) or "") for data, (protocol, spec) in found.items()}
    protocols, five = {protocol for protocol, _ in named.values()}, set(published()["data"]) - {MEAN}
    if len(protocols) == 1 and sorted(name for _, name in named.values()) == sorted(five) and len(named) == len(first):
        named["mean over the sets"] = protocols.pop(), MEAN
    return named

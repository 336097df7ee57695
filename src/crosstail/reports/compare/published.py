"""Published figures beside ours: those of the paper and of DomainBed that could be had."""

from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import Any

import pandas as pd

from crosstail.data import protocols, sheet_of
from crosstail.data.sources.benchmark import benchmark_of
from crosstail.reports.compare.results import Results
from crosstail.reports.compare.tables import overall_table
from crosstail.reports.document.model import Columns, Table, records_table
from crosstail.reports.wording import interval, listing, number, shown

MEAN = "mean"
"""What the table has, in the place of a data set, for the mean over its five sets."""

FIVE = ["domain_net", "office_home", "pacs", "terra_incognita", "vlcs"]


@cache
def published() -> pd.DataFrame:
    """One row per figure: protocol (mdlt or dg), data, method, published value in %, standard error, and source."""
    with files("crosstail.reports.compare").joinpath("published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def published_table(results: Results) -> Table | None:
    """Accuracies averaged over domains beside the published ones; None on data that nobody has published on.

    The interval of a difference is that of our test samples; the published figure counts as exact. A method of the
    authors' code, such as boda@reference, stands beside the figure of its method.
    """
    ours, known, found = results.summary, published(), []
    ours = ours[ours["metric"].isin(["average", "accuracy"]) & (ours["kind"] == "metric")]
    for data, (protocol, name) in _sets(results).items():
        theirs = known[(known["data"] == name) & (known["protocol"] == protocol)].rename(columns={"method": "of"})
        own = overall_table(results.summary).reset_index() if name == MEAN else ours[ours["data"] == data]
        own = own.reindex(columns=["method", "mean", "low", "high"]).rename(columns={"mean": "ours"})
        both = own.assign(of=own["method"].str.replace("@reference", "")).merge(theirs, "outer", "of")
        both = both.assign(data=data, method=both["method"].fillna(both["of"]), unknown=both["published"].isna())
        found += [both.sort_values(["unknown", "ours"], ascending=[True, False])] if len(theirs) else []
    if not found:
        return None
    table = pd.concat(found, ignore_index=True)
    table["difference"] = table["ours"] - table["published"]
    table[["low", "high"]] = table[["low", "high"]].sub(table["published"], axis=0)
    names = ["data", "method", "ours", "published", "error", "difference", "low", "high", "source"]
    columns: Columns = {name: itemgetter(name) for name in names[table["data"].nunique() < 2 : 2]}
    columns |= {"ours": shown("ours"), "published": _with_error, "difference": shown("difference", 1, "+")}
    columns["95 % interval"] = lambda row: interval(row["low"], row["high"], "+z")
    columns["source"] = lambda row: "" if pd.isna(row["source"]) else row["source"]
    note = (
        "Average accuracy over domains in %; ± is the standard error over seeds. The intervals are of our test "
        "samples, with published figures as exact. A dash is a figure that is not known, or a method not run."
    )
    return records_table(
        table.to_dict("records"),
        columns,
        name="published",
        title="Published figures beside ours",
        numbers=table[names],
        words_last=True,
        note=" ".join([note, *_otherwise(results)]),
    )


def _with_error(row: dict[str, float]) -> str:
    return number(row["published"]) + ("" if pd.isna(row["error"]) else f" ± {number(row['error'])}")


def _otherwise(results: Results) -> list[str]:
    """A sentence on each data set whose runs were trained otherwise than those that the figures were published of."""
    found = []
    for data in dict.fromkeys(one.data for one in results.methods):
        own = [one for one in results.methods if one.data == data]
        spec, sheet = own[0].runs[0].spec, sheet_of(own[0].runs[0].spec.dataset)
        network = {"backbone": "resnet50"} if sheet and sheet.inputs == "image_files" else {"backbone": "timm:resnet18"}
        usual: dict[str, Any] = {**network, "tune": "all", "trials": 20, "seeds": 3}
        usual |= protocols.find(spec.protocol).defaults(sheet) if sheet else {}
        trials = max(run.trials or 1 for one in own for run in one.runs)
        here = vars(spec) | {"trials": trials, "seeds": len({one.seed for one in own})}
        other = [
            f"{name.replace('_', ' ')} {here[name]}, not {usual[name]}" for name in usual if here[name] != usual[name]
        ]
        found += [f"Not like for like on {data}: {listing(other, joint='; ')}."] if other else []
    return found


def _sets(results: Results) -> dict[str, tuple[str, str]]:
    """Protocol and benchmark, with its labels, of the data sets, and the mean, if these are the published five."""
    first, found = {run.data: run.runs[0].spec for run in reversed(results.methods)}, dict[str, tuple[str, str]]()
    for data, spec in first.items():
        words = [benchmark_of(spec.dataset) or "", *(spec.labels or ())]
        found[data] = "dg" if spec.unseen_domains else "mdlt", " ".join(words)
    kinds = {protocol for protocol, _ in found.values()}
    if len(kinds) == 1 and sorted(name for _, name in found.values()) == FIVE:
        found["mean over the sets"] = kinds.pop(), MEAN
    return found

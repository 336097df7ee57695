"""The results on one data set as a table for one column of a paper."""

import pandas as pd

from crosstail.metrics import FEW_TESTS, LEVEL
from crosstail.reports.compare.method_runs import TAIL
from crosstail.reports.compare.significance import how
from crosstail.reports.compare.tables import RANKED, metric_of, of_metric
from crosstail.reports.document.model import Table
from crosstail.reports.wording import number, several

OTHERS = ("average", "class mean", "few", "worst domain", *TAIL)
"""Metrics beside the one that methods are ranked by, as far as there are any."""

SHORT = {"worst domain": "worst dom."} | {tail: tail.replace("percentile", "pct.") for tail in TAIL}
MARK = "†"


def paper_table(summary: pd.DataFrame, tests: pd.DataFrame, data: str, name: str) -> Table | None:
    """Best first: the ranked metric ± its spread over the seeds, means of others, and a mark for significance."""
    ranked = of_metric(summary, RANKED, data)
    if ranked.empty:
        return None
    main, own, decimals = ranked["metric"].iloc[0], tests[tests["data"] == data], metric_of(summary).digits
    sure = set(own[own["adjusted"] < LEVEL]["method"])
    records = of_metric(summary, [main, *OTHERS], data).to_dict("records")
    cells = {(row["method"], row["metric"]): row for row in records}
    others = [metric for metric in OTHERS if any(known == metric for _, known in cells)]
    rows, best = [], set()
    for i, method in enumerate(ranked["method"]):
        first = cells[method, main]
        spread = "" if first["error"] != first["error"] else f" ± {number(first['error'], decimals)}"
        rows.append([method, number(first["mean"], decimals) + spread + MARK * (method in sure)])
        values = [cells[method, other]["mean"] if (method, other) in cells else None for other in others]
        rows[i] += [number(value, decimals) for value in values]
        marked = [cells.get((method, metric), {"best": False})["best"] for metric in (main, *others)]
        best |= {(i, j) for j, is_best in enumerate(marked, 1) if is_best}
    header = ["method", main, *(SHORT.get(metric, metric) for metric in others)]
    caption = _caption(summary[summary["data"] == data], own, data, main, others)
    return Table(name=f"paper-{name}", title=caption, header=header, rows=rows, emphasised=best)


def _caption(summary: pd.DataFrame, tests: pd.DataFrame, data: str, main: str, others: list[str]) -> str:
    seeds = int(summary["n"].max())
    spread = {"sd": "standard deviation", "se": "standard error"}[summary["spread"].iloc[0]]
    of_seeds = f" (mean ± {spread} over {seeds} seeds)" if seeds > 1 else ""
    metric = metric_of(summary)
    parts = [f"Test {metric.label} on {data}{' in %' if metric.share else ''}: {main}{of_seeds}"]
    meanings = {"few": "few-shot pairs"} | {tail: f"{tail} over pairs" for tail in TAIL}
    parts[0] += "".join(f", {meanings.get(metric, metric)}" for metric in others) + ". Best in bold"
    known = tests[tests["adjusted"].notna()]
    if len(known):
        against = known["against"].iloc[0]
        number = several(len(known), "comparison")
        parts.append(
            f"{MARK}: differs from {against} at p < {LEVEL} ({how(known).replace('the number of methods', number)})"
        )
    few = summary["barely_tested"].max()
    if few > 0:
        parts.append(f"{several(int(few), 'pair')} with fewer than {FEW_TESTS} test samples")
    return ". ".join(parts) + "."

"""Gains over several data sets, with a data set as the unit."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from crosstail.metrics import mean_interval
from crosstail.reports.compare.tables import RANKED, metric_of, of_metric
from crosstail.reports.document.model import Table
from crosstail.reports.wording import interval, number, several
from crosstail.sweeps.recommendation import BASELINE


def effects(summary: pd.DataFrame) -> Iterator[Table]:
    """The gain of each method that was run on all data sets over one of them, if there are two or more of both."""
    rows, metric = of_metric(summary, RANKED), metric_of(summary)
    order = list(dict.fromkeys(rows["data"]))
    values = metric.sign * rows.pivot(index="method", columns="data", values="mean")[order].dropna()
    if len(order) < 2 or len(values) < 2:
        return
    base = BASELINE if BASELINE in values.index else values.mean(axis=1).idxmax()
    gains = (values - values.loc[str(base)]).assign(mean=lambda found: found.mean(axis=1))
    gains = gains.sort_values("mean", ascending=False, kind="stable")
    ends = [mean_interval(row) if row.any() else (np.nan,) * 2 for row in gains.drop(columns="mean").to_numpy()]
    table = gains.assign(low=[low for low, _ in ends], high=[high for _, high in ends]).reset_index()
    yield Table(
        name="effects",
        title=f"Gain over {base} on each of {several(len(order), 'data set')}",
        header=["method", "mean", "95 % interval", *order],
        rows=[
            [row["method"], number(row["mean"], metric.digits, "+")]
            + [interval(row["low"], row["high"], "+z", metric.digits)]
            + [number(row[data], metric.digits, "+") for data in order]
            for row in table.to_dict("records")
        ],
        numbers=table,
        note="The interval is Student's of the mean over data sets like these.",
    )

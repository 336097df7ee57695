"""Two runs side by side, as a page and for the terminal."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from crosstail.metrics import DEFAULT, LEVEL, find
from crosstail.reports.charts import certain
from crosstail.reports.compare.charts import LABELLED
from crosstail.reports.compare.gain_charts import COLOURED, gain_heat_map
from crosstail.reports.compare.two_runs import Compared, Comparison
from crosstail.reports.document.model import Block, Chart, Document, Heading, Table, Text
from crosstail.reports.run.critical import CRITICAL
from crosstail.reports.vega_lite import draw
from crosstail.reports.wording import interval, number, probability, several

LISTED = 10  # pairs in the terminal
SHOWN = 40  # pairs on the page
HOW = (
    "Both models answer the same test samples, so samples that are hard for both cancel out. Overall: a t test of the "
    "difference over the test samples, within each pair, with its 95 % interval; there is none for a worst case. Pair "
    "by pair: an exact sign test on the samples that "
    "only one model gets right (McNemar's test), or, where samples come in groups, on the groups; Newcombe's interval "
    "for paired proportions. P-values of pairs are corrected for the number of pairs by Holm's method: if the models "
    "were equally good on every pair, the chance of any p < 0.05 would be at most 5 %. The tests treat both models as "
    "given: another seed may give another model."
)


def page(found: Comparison) -> Document:
    """The whole comparison."""
    first, second = found.names
    return Document(f"{first} against {second} on {found.data}", list(_blocks(found)))


def summary(found: Comparison) -> list[Block]:
    """The parts that fit the terminal."""
    first, second = found.names
    metrics = _metrics_table(found, narrow=True)
    pairs = [_pairs_table(found, LISTED, narrow=True)] * (len(_differing(found)) > 0)
    critical = _critical(found, narrow=True)
    return [Text(f"A: {first}, B: {second}, on {found.data}"), *critical, metrics, *pairs, *map(Text, _verdict(found))]


def _blocks(found: Comparison) -> Iterator[Block]:
    overall, by_pair = _verdict(found)
    yield from _critical(found)
    yield Text(overall, lead=True)

    yield Heading("Overall")
    yield _metrics_table(found)
    yield Heading("Pair by pair")
    yield Text(by_pair)
    if len(_differing(found)):
        labels = min(found.pairs[of].nunique() for of in ("class", "domain"))
        if labels <= LABELLED and certain(found.pairs["low"], found.pairs["high"]).any():
            yield _chart(found)
        yield _pairs_table(found, SHOWN)
    yield Heading("How it is computed")
    yield Text(HOW)


def _verdict(found: Comparison) -> tuple[str, str]:
    main, (first, second) = found.metrics[0], found.names
    test = main.test
    points = f"{100 * main.difference:+.1f} points of {main.name}"
    overall = f"Nothing shows how certain the difference between {first} and {second} is: {points}."
    if test and found.equal:
        overall = f"{first} and {second} give the same answers to every test sample."
    elif test:
        equals = "" if test.p_value < 0.001 else "= "
        points += f" (95 % interval {_ends(main)}, p {equals}{probability(test.p_value)})"
        overall = f"The test set is too small to separate {first} from {second}: {points}."
        if test.sure:
            overall = f"{first} is {'better' if test.estimate > 0 else 'worse'} than {second}: {points}."
    sure = found.sure
    better, worse = (int((sign * sure["difference"] > 0).sum()) for sign in (1, -1))
    if len(sure):
        pairs = f"{first} is significantly better on {several(better, 'pair')} and worse on {worse:,}"
    else:
        pairs = f"{first} and {second} do not differ significantly on any single pair"
    pairs = f"{pairs}, of {len(found.pairs):,}, corrected for their number."
    if not len(_differing(found)):
        pairs = f"{first} and {second} have the same accuracy on each of the {several(len(found.pairs), 'pair')}."
    return overall, pairs


def _differing(found: Comparison) -> pd.DataFrame:
    """The pairs with a difference that the tables can show."""
    return found.pairs[found.pairs["difference"].abs().round(1) > 0]


def _ends(metric: Compared) -> str:
    return interval(100 * metric.test.low, 100 * metric.test.high, "+z") if metric.test else ""


def _metrics_table(found: Comparison, *, narrow: bool = False) -> Table:
    header = ["accuracy, %", *(("A", "B") if narrow else found.names), "difference", "95 % interval"]
    rows = [
        [m.name, number(100 * m.first), number(100 * m.second), f"{100 * m.difference:+z.1f}", _ends(m)]
        for m in found.metrics
    ]
    return Table(header=header, rows=rows, emphasised={(0, j) for j in range(len(header))})


def _critical(found: Comparison, *, narrow: bool = False) -> list[Block]:
    """The recall of classes that must not be missed at each site, if there are any."""
    own = found.pairs[found.pairs["class"].isin(found.critical)]
    if own.empty:
        return []
    table = _pairs_table(replace(found, pairs=own), len(own), narrow=narrow, every=True)
    return [Heading(CRITICAL), replace(table, title="")]


def _pairs_table(found: Comparison, most: int, *, narrow: bool = False, every: bool = False) -> Table:
    differing = found.pairs if every else _differing(found)
    order = differing.assign(size=-differing["difference"].abs()).sort_values(["p", "size"], kind="stable")
    rows = [
        [f"{row['domain']} / {row['class']}", *[f"{row['count']:,}"] * (not narrow), f"{row['tested']:,}"]
        + [number(row[name]) for name in ("first", "second")]
        + [number(row["difference"], 1, "+z"), *[interval(row["low"], row["high"], "+z")] * (not narrow)]
        + [*[probability(row["p"])] * (not narrow), probability(row["adjusted"])]
        for row in order.head(most).to_dict("records")
    ]
    names = ("A", "B") if narrow else found.names
    header = ["pair", *["training samples"] * (not narrow), "tested", *names, "difference"]
    header += [*["95 % interval", "p"] * (not narrow), "corrected p"]
    sure = {(i, len(header) - 1) for i, p in enumerate(order["adjusted"].head(most)) if p < LEVEL}
    rest = len(order) - most
    equal = len(found.pairs) - len(differing)
    note = f"The pairs with the smallest p-values first; {rest:,} more are in `--json`." if rest > 0 else ""
    note += f" {several(equal, 'pair')} without a difference {'is' if equal == 1 else 'are'} left out." if equal else ""
    title = "" if not narrow else "pairs that differ most"
    return Table(title=title, header=header, rows=rows, emphasised=sure, note=note.strip())


def _chart(found: Comparison) -> Chart:
    first, second = found.names
    table = found.pairs.rename(columns={"difference": "gain"})
    table["sure"] = certain(table["low"], table["high"])
    drawing = gain_heat_map(draw(table.round(3)), table, max(float(table["gain"].abs().max()), 1.0), find(DEFAULT))
    title = f"Accuracy of {first} minus accuracy of {second}"
    return Chart("pairs", title, drawing, f"Heat map: {title}, per domain and class", COLOURED)

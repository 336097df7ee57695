"""Write docs/results/speed.md and its charts from the records of the benchmarks.

python -m bench --json docs/results/speed.json
python examples/speed_page.py [--growth]     # --growth first measures memory again, which takes some minutes
"""

import argparse
import json
from pathlib import Path

import altair as alt
import pandas as pd
from PIL import Image

from crosstail.report.charts import PALETTE

DOCS = Path(__file__).parents[1] / "docs"
RECORD, GROWTH = DOCS / "results" / "speed.json", DOCS / "results" / "memory.json"
AXES = {"samples": "N", "pairs": "P", "features": "F"}


def limits_table(record: list[dict[str, object]]) -> pd.DataFrame:
    """The share of its limit that each measurement uses: 1 is the limit, less is better."""
    table = pd.DataFrame(record)
    measured = table["ratio"].astype(float).fillna(table["ours"])
    used = measured / table["limit"]
    table["used"] = used.where(table["sense"] == "at most", 1 / used)
    peers = table["peer"].where(table["ratio"].notna(), "")
    table["label"] = table["name"] + peers.map(lambda peer: f" / {peer}" if peer else "")
    return table


def limits_chart(table: pd.DataFrame) -> alt.LayerChart:
    """One dot per measurement on a logarithmic axis, and a line at the limit."""
    missed = int((table["used"] > 1).sum())
    title = (
        f"{len(table) - missed} of {len(table)} measurements are within their limits"
        if missed
        else "All measurements are within their limits"
    )
    steps = table[table["bench"] == "step"]
    slowest = steps.nlargest(1, "used").assign(label=lambda t: t["label"] + f" (slowest of {len(steps)})")
    shown = pd.concat([table[table["bench"] != "step"], slowest]).sort_values("used")
    base = alt.Chart(shown, width=420, height=alt.Step(17), title=title)
    dots = base.mark_point(filled=True, size=60).encode(
        x=alt.X("used:Q", title="share of the limit (log scale; less is better)", scale=alt.Scale(type="log")),
        y=alt.Y("label:N", title=None, sort=None, axis=alt.Axis(labelLimit=460)),
        color=alt.condition("datum.used > 1", alt.value(PALETTE[5]), alt.value(PALETTE[0])),
        shape=alt.condition("datum.used > 1", alt.value("triangle-up"), alt.value("circle")),
    )
    limit = alt.Chart(pd.DataFrame({"limit": [1]})).mark_rule(strokeDash=[4, 4]).encode(x="limit:Q")
    return limit + dots


def growth_chart(growth: list[dict[str, float]]) -> alt.HConcatChart:
    """Peak memory against each size, with the other two fixed."""
    table = pd.DataFrame(growth)
    usual = table[list(AXES)].mode().iloc[0]
    top = float(table["MiB"].max()) * 1.1
    panels = []
    for name, symbol in AXES.items():
        others = [other for other in AXES if other != name]
        shown = table[(table[others] == usual[others]).all(axis=1)]
        title, fixed = f"{name} {symbol}", ", ".join(f"{AXES[other]} = {int(usual[other]):,}" for other in others)
        base = alt.Chart(shown, width=200, height=180, title=alt.TitleParams(title, subtitle=fixed)).encode(
            x=alt.X(f"{name}:Q", title=title, axis=alt.Axis(format="~s", tickCount=4))
        )
        y = alt.Y("MiB:Q", title="peak without the file, MiB", scale=alt.Scale(domain=[0, top]))
        dots = base.mark_point(filled=True, size=50, color=PALETTE[0]).encode(y=y)
        panels.append(dots + base.mark_line(color=PALETTE[0]).encode(y="mean(MiB):Q"))
    return alt.hconcat(*panels)


def amount(value: float, unit: str) -> str:
    """A value with its unit."""
    if unit == "MiB":
        return f"{value:,.0f} MiB"
    return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.1f} s"


def row(entry: dict[str, object]) -> str:
    """One line of the table."""
    ratio, limit = entry["ratio"], float(str(entry["limit"]))
    bound = f"{limit:g}" if ratio is not None else amount(limit, str(entry["unit"]))
    shown = f"{float(str(ratio)):.2f}" if ratio is not None else ""
    ours = amount(float(str(entry["ours"])), str(entry["unit"]))
    return f"| `{entry['bench']}` | {entry['name']} | {ours} | {entry['peer']} | {shown} | {entry['sense']} {bound} |"


def main() -> None:
    """Draw the charts and write the page; with --growth, measure memory first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--growth", action="store_true", help="measure again how memory grows")
    if parser.parse_args().growth:
        from bench.memory import growth

        GROWTH.write_text(json.dumps(growth(), indent=1) + "\n", encoding="utf-8")
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    table = limits_table(record)
    charts = {"speed": limits_chart(table), "memory": growth_chart(json.loads(GROWTH.read_text(encoding="utf-8")))}
    for name, chart in charts.items():
        file = DOCS / "images" / f"{name}.png"
        chart.save(file, scale_factor=2.0)
        Image.open(file).convert("RGB").quantize(64).save(file, optimize=True)  # a tenth of the size
    missed = table[table["used"] > 1]["label"].tolist()
    summary = f"Over their limits: {'; '.join(missed)}." if missed else "All measurements are within their limits."
    loads = table["load"]
    text = (DOCS / "results" / "speed.md").read_text(encoding="utf-8")
    before, _, rest = text.partition("<!-- table -->\n")
    _, _, after = rest.partition("<!-- end of table -->\n")
    lines = [
        f"{summary} The load of the machine was {loads.min():.1f} to {loads.max():.1f} on two cores.",
        "",
        "| `python -m bench …` | measurement | ours | reference | ratio | limit |",
        "|---|---|---|---|---|---|",
        *map(row, record),
    ]
    new = "\n".join(lines) + "\n"
    page = f"{before}<!-- table -->\n{new}<!-- end of table -->\n{after}"
    (DOCS / "results" / "speed.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Write docs/results/speed.md and its charts from the records of the benchmarks.

python -m bench --json docs/results/speed.json
python -m studies.speed_page [--growth] [--scale]

--growth first measures memory again, which takes some minutes, and --scale whole commands on up to 100,000 pairs, which
takes an hour and can be stopped and continued.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd
from bench.scale import FIXED, LARGEST
from bench.scale import GROWTH as GROWN
from bench.scale import growth as measure_scale
from PIL import Image

from crosstail.reports.charts import PALETTE, colours, names, palette
from crosstail.reports.document.files import save_drawing
from crosstail.reports.vega_lite import Drawing, concat, draw, either, field, layer

DOCS = Path(__file__).parents[1] / "docs"
RECORD, GROWTH, SCALE = (DOCS / "results" / f"{name}.json" for name in ("speed", "memory", "scale"))
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


def limits_chart(table: pd.DataFrame) -> Drawing:
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
    base = draw(shown).mark("point", filled=True, size=60)
    dots = base.encode(
        x=field("used:Q", title="share of the limit (log scale; less is better)", scale={"type": "log"}),
        y=names("label", labelLimit=460),
        color=either("datum.used > 1", PALETTE[5], PALETTE[0]),
        shape=either("datum.used > 1", "triangle-up", "circle"),
    )
    limit = draw(pd.DataFrame({"limit": [1]})).mark("rule", strokeDash=[4, 4]).encode(x="limit:Q")
    return layer(limit, dots, width=420, height={"step": 17}, title=title)


def growth_chart(growth: list[dict[str, float]]) -> Drawing:
    """Peak memory against each size, with the other two fixed."""
    table = pd.DataFrame(growth)
    usual = table[list(AXES)].mode().iloc[0]
    top = float(table["MiB"].max()) * 1.1
    panels = []
    for name, symbol in AXES.items():
        others = [other for other in AXES if other != name]
        shown = table[(table[others] == usual[others]).all(axis=1)]
        title, fixed = f"{name} {symbol}", ", ".join(f"{AXES[other]} = {int(usual[other]):,}" for other in others)
        x = field(f"{name}:Q", title=title, axis={"format": "~s", "tickCount": 4})
        y = field("MiB:Q", title="peak without the file, MiB", scale={"domain": [0, top]})
        dots = draw().mark("point", filled=True, size=50, color=PALETTE[0]).encode(y=y)
        line = draw().mark("line", color=PALETTE[0]).encode(y=field("MiB:Q", aggregate="mean"))
        panel = layer(dots, line, data=shown, encoding={"x": x}, width=200, height=180)
        panels.append(panel.having(title={"text": title, "subtitle": fixed}))
    return concat(*panels, columns=len(panels))


def scale_chart(rows: list[dict[str, Any]]) -> Drawing:
    """Processor time and peak memory of each command against each size, with the other two fixed."""
    table = pd.DataFrame(rows)
    colour = colours("command", palette(dict.fromkeys(table["command"])), "", orient="top")
    along = {}
    for name in GROWN:
        others = [other for other in GROWN if other != name]
        shown = table[(table[[*others]] == [FIXED[other] for other in others]).all(axis=1)]
        along |= {name: shown} if shown[name].nunique() > 1 else {}
    panels = []
    for value, unit in (("seconds", "processor time, s"), ("MiB", "peak without the file, MiB")):
        for name, shown in along.items():
            x = field(f"{name}:Q", title=name, axis={"format": "~s", "tickCount": 4})
            line = draw(shown).mark("line", point=True).encode(x=x, y=field(f"{value}:Q", title=unit), color=colour)
            panels.append(line.having(width=190, height=170))
    return concat(*panels, columns=len(along))


def scale_table(rows: list[dict[str, Any]]) -> list[str]:
    """What each command takes at the largest size."""
    largest = [found for found in rows if found.items() >= LARGEST.items()]
    cells = [f"| `{found['command']}` | {found['seconds']:,.0f} s | {found['MiB']:,.0f} MiB |" for found in largest]
    return ["| command | processor time | peak, file excluded |", "|---|---:|---:|", *cells]


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
    ours, sense = amount(float(str(entry["ours"])), str(entry["unit"])), "≤" if entry["sense"] == "at most" else "≥"
    return f"| `{entry['bench']}` | {entry['name']} | {ours} | {entry['peer']} | {shown} | {sense} {bound} |"


def shown(record: list[dict[str, object]]) -> list[dict[str, object]]:
    """All rows, but of the steps of the algorithms only those over their limits and the one nearest to its own."""
    used = dict(enumerate(limits_table(record)["used"]))
    steps = [i for i, entry in enumerate(record) if entry["bench"] == "step"]
    most = max((used[i] for i in steps if used[i] <= 1), default=0.0)
    return [entry for i, entry in enumerate(record) if i not in steps or used[i] > 1 or used[i] == most]


def main() -> None:
    """Draw the charts and write the page; with --growth, measure memory first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--growth", action="store_true", help="measure again how memory grows")
    parser.add_argument("--scale", action="store_true", help="measure what is missing of whole commands on many pairs")
    given = parser.parse_args()
    scale = json.loads(SCALE.read_text(encoding="utf-8")) if SCALE.exists() else []
    if given.scale:
        measure_scale(scale, SCALE)
    if given.growth:
        from bench.memory import growth

        GROWTH.write_text(json.dumps(growth(), indent=1) + "\n", encoding="utf-8")
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    table = limits_table(record)
    charts = {"speed": limits_chart(table), "memory": growth_chart(json.loads(GROWTH.read_text(encoding="utf-8")))}
    charts["scale"] = scale_chart(scale)
    for name, chart in charts.items():
        file = DOCS / "images" / f"{name}.png"
        save_drawing(chart, file)
        Image.open(file).convert("RGB").quantize(64).save(file, optimize=True)  # a tenth of the size
    missed = table[table["used"] > 1]["label"].tolist()
    summary = f"Over their limits: {'; '.join(missed)}." if missed else "All measurements are within their limits."
    loads = table["load"]
    lines = [
        f"{summary} The load of the machine was {loads.min():.1f} to {loads.max():.1f} on two cores.",
        "",
        "| `python -m bench …` | measurement | ours | reference | ratio | limit |",
        "|---|---|---|---|---|---|",
        *map(row, shown(record)),
    ]
    page = DOCS / "results" / "speed.md"
    text = replaced(page.read_text(encoding="utf-8"), "table", lines)
    page.write_text(replaced(text, "scale", scale_table(scale)), encoding="utf-8")


def replaced(text: str, name: str, lines: list[str]) -> str:
    """A page with other lines between the two comments of this name; the rest was written by hand."""
    before, start, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->\n")
    return before + start + "\n".join([*lines, ""]) + end + after


if __name__ == "__main__":
    main()

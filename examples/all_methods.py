"""Every algorithm and every second stage on several sets of features: docs/results/all-methods.md.

A race on each set, with nothing stopped early. About an hour on two cores once the images are embedded; what is
finished is not repeated:

    python examples/all_methods.py --data ../shared/data --out races
"""

import argparse
from pathlib import Path

import pandas as pd

from crosstail import algorithms, cli, discovery
from crosstail.report.compare.ranks import ranks
from crosstail.report.compare.read_runs import read_runs
from crosstail.report.compare.tables import of_metric, summary_table
from crosstail.report.document.files import save_chart
from crosstail.report.document.model import Chart, Text
from crosstail.report.wording import listing
from crosstail.training.spec import split_method

SETS = {
    "office-caltech10": ("office-caltech10",),
    "ham10000": (
        "ham10000/manifest.csv",
        "--column",
        "domain=source",
        "--column",
        "label=diagnosis",
        "--column",
        "group=lesion_id",
    ),
    "crisis": ("crisis.npz",),
    "digits": ("digits",),
    "digits-mlt, opposite tails": ("digits-mlt.npz", "--labels", "forward:100", "--labels", "backward:100"),
}
BUDGET = ("--trials", "1", "--seeds", "3")
SHOWN = 3  # methods named for each set
DOCS = Path(__file__).parents[1] / "docs"


def methods() -> list[str]:
    """All algorithms, and ERM with every second stage."""
    stages = discovery.names("crosstail.second_stages")
    return [entry.name for entry in algorithms.catalogue()] + [f"erm:{stage}" for stage in stages]


def race(data: Path, words: tuple[str, ...], out: Path) -> None:
    """Run or resume a race in which every method gets to the end."""
    source, *options = words
    entrants = methods()
    named = [word for method in entrants for word in ("--algorithm", method)]
    place = source if source == "digits" else str(data / source)
    cli.main(["race", place, *options, *BUDGET, "--finalists", str(len(entrants)), *named, "--out", str(out)])


def summaries(races: dict[str, Path]) -> pd.DataFrame:
    """The numbers of all races, with the names of the sets as they are here."""
    parts = [summary_table(read_runs([place]).chosen).assign(data=name) for name, place in races.items()]
    return pd.concat(parts, ignore_index=True)


def page(summary: pd.DataFrame) -> str:
    """The page, whose chart is saved beside it."""
    text, chart, table = ranks(summary)
    assert isinstance(text, Text) and isinstance(chart, Chart)
    save_chart(chart, DOCS / "images/all-methods.png")
    order = table.numbers  # by mean rank
    family = {entry.name: entry.family for entry in algorithms.catalogue()}
    order["family"] = [family[split_method(method)[0]] for method in order["method"]]
    order.loc[order["method"].str.startswith("erm:"), "family"] = "second stage of ERM"
    average = of_metric(summary, ["pair average"]).pivot(index="method", columns="data", values="mean")
    sets = list(SETS)
    by_family = order.groupby("family")["mean"].agg(["mean", "min", "size"]).sort_values("mean")
    lines = [
        "# Every method on five sets",
        "",
        f"Frozen EfficientNet-Lite0 features, for crisis sentence embeddings; {len(order)} methods with their default",
        "hyperparameters, 300 steps, three seeds. Nothing was searched: this compares defaults, not the best settings.",
        "Pair averages on the test sets in %, means over the seeds. Written by `python examples/all_methods.py`.",
        "",
        text.text,
        "",
        f"![{chart.alternative}](../images/all-methods.png)",
        "",
        f"*{chart.note}*",
        "",
        "## What wins where",
        "",
    ]
    for name in sets:
        best = average[name].sort_values(ascending=False)
        first = listing([f"`{method}` {value:.1f}" for method, value in best.head(SHOWN).items()])
        rank = int((best > best["boda"]).sum()) + 1
        lines.append(
            f"- **{name}**: {first}; `erm` {best['erm']:.1f}, `boda` {best['boda']:.1f} (rank {rank} of {len(best)})."
        )
    lines += ["", "These are picked on the test set, so the first of each line is lucky as well as good.", ""]
    lines += ["| family | methods | mean of the mean ranks | best mean rank |", "|---|---:|---:|---:|"]
    for name, row in by_family.iterrows():
        best_of = order[order["family"] == name]["method"].iloc[0]
        lines.append(f"| {name} | {row['size']:.0f} | {row['mean']:.1f} | {row['min']:.1f} `{best_of}` |")
    lines += [
        "",
        "## All methods",
        "",
        f"| method | family | mean rank | {' | '.join(sets)} |",
        "|---|---|---:|" + "---:|" * len(sets),
    ]
    for _, row in order.iterrows():
        cells = [f"{average.loc[row['method'], name]:.1f} ({row[name]:g})" for name in sets]
        lines.append(f"| `{row['method']}` | {row['family']} | {row['mean']:.1f} | {' | '.join(cells)} |")
    lines += ["", "Pair average in %, and in brackets the rank on the set."]
    missing = sorted(set(methods()) - set(order["method"]))
    if missing:
        lines += ["", f"Not on all sets, for reasons that `crosstail race` gives: {listing(missing)}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the races and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets")
    parser.add_argument("--out", type=Path, default=Path("races"))
    parser.add_argument("--page-only", action="store_true", help="write the page from races that are finished")
    arguments = parser.parse_args()
    places = {name: arguments.out / name.partition(",")[0] for name in SETS}
    if not arguments.page_only:
        for name, words in SETS.items():
            race(arguments.data, words, places[name])
    (DOCS / "results/all-methods.md").write_text(page(summaries(places)), encoding="utf-8")


if __name__ == "__main__":
    main()

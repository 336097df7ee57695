"""Every algorithm and every second stage on several sets of features: docs/results/all-methods.md.

First a race on each set with default hyperparameters, in which nothing stops early. With `--search`, also the race of
`crosstail race`, which searches hyperparameters and stops weak methods early, and the same race to the end. About an
hour on two cores for each of the two, once the images are embedded; what is finished is not repeated:

    python -m studies.all_methods --data ../shared/data --out races
    python -m studies.all_methods --data ../shared/data --out races --search
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import pandas as pd

import crosstail
from crosstail import RunSpec, algorithms, discovery
from crosstail.reports.compare.method_runs import method_runs
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.tables import of_metric, summary_table
from crosstail.reports.compare.text_tables import effects
from crosstail.reports.wording import interval, several
from crosstail.storage import read_json
from crosstail.sweeps.race_result import RaceResult, Standing
from crosstail.training.resolve import canonical_method
from crosstail.training.spec import split_method

HAM10000 = {"domain": "source", "label": "diagnosis", "group": "lesion_id"}
SETS: dict[str, dict[str, Any]] = {
    "office-caltech10": {"dataset": "office-caltech10"},
    "ham10000": {"dataset": "ham10000/manifest.csv", "columns": HAM10000},
    "crisis": {"dataset": "crisis.npz"},
    "digits": {"dataset": "digits"},
    "digits-mlt, opposite tails": {"dataset": "digits-mlt.npz", "labels": ("forward:100", "backward:100")},
}
SEARCHED = ("office-caltech10", "ham10000", "crisis")
TO_THE_END = {"finalists": 1000}
RACES = {"default": {"trials": 1, **TO_THE_END}, "halving": {}, "full": TO_THE_END}
"""With default hyperparameters; as `crosstail race` does it; and with the same budget for every method."""

COMPARED = ("erm", "boda")  # methods named for each set
LEADING = 10  # methods whose families are counted
DOCS = Path(__file__).parents[1] / "docs"
Races = dict[str, dict[str, RaceResult]]
"""How races ended, by set and kind."""


def methods() -> list[str]:
    """All algorithms, and ERM with every second stage."""
    stages = discovery.names("crosstail.second_stages")
    names = [*(entry.name for entry in algorithms.catalogue()), *(f"erm:{stage}" for stage in stages)]
    return list(dict.fromkeys(map(canonical_method, names)))


def race(data: Path, fields: dict[str, Any], out: Path, kind: str) -> None:
    """Run or resume a race, and keep how it ended as OUT/KIND.json; all races on a set share their runs."""
    source = fields["dataset"]
    spec = RunSpec(**fields | {"dataset": source if source == "digits" else str(data / source)})
    crosstail.race(spec, out, algorithm=methods(), **RACES[kind])  # a method may have failed, which the page says
    shutil.copyfile(out / "race.json", out / f"{kind}.json")


def read_races(places: dict[str, Path]) -> Races:
    """The races that have ended."""
    return {
        name: {kind: read_json(file, RaceResult) for kind in RACES if (file := place / f"{kind}.json").exists()}
        for name, place in places.items()
    }


def summaries(places: dict[str, Path], races: Races) -> pd.DataFrame:
    """The numbers of the runs with default hyperparameters, with the names of the sets as they are here."""
    parts = []
    for name, place in places.items():
        keys = {key for row in races[name]["default"].leaderboard for own in row.runs.values() for key in own}
        table = read_runs([place]).table
        own = table[[run.folder.name in keys for run in table["run"]]]
        parts.append(summary_table(method_runs(own)[0]).assign(data=name))
    return pd.concat(parts, ignore_index=True)


def page(summary: pd.DataFrame, races: Races) -> str:
    """The page."""
    table = effects(summary)
    assert table is not None
    order = table.numbers  # by mean gain
    order["family"] = [_family(method) for method in order["method"]]
    average = of_metric(summary, ["pair average"]).pivot(index="method", columns="data", values="mean")
    (steps, seeds), *other = {(kinds["default"].steps, kinds["default"].seeds) for kinds in races.values()}
    assert not other, "the races differ in steps or seeds"
    lines = [
        f"# Every method on {several(len(races), 'set')}",
        "",
        f"Frozen EfficientNet-Lite0 features, for crisis sentence embeddings; {len(order)} methods with their default",
        f"hyperparameters, {steps} steps, {several(seeds, 'seed')}. Nothing was searched: this compares defaults,",
        "not the best settings. Accuracies are pair averages on the test sets in %, means over the seeds. Written by",
        "`python -m studies.all_methods`.",
        "",
        "Some had more than published defaults. The form of `blend` and `pooled` was chosen out of 25 by validation on",
        "splits of these sets, with test accuracies in view, and the split used here may be among them ([what was",
        "tried](../method.md#what-was-tried)); [the default](default.md) has results on splits that no form was chosen",
        "on. `iga`'s λ was chosen from five values by validation on crisis and digits, with one seed.",
        "",
        "## What wins where",
        "",
        winners(order, races),
        "",
        *set_table(average, races),
        "",
        "## Gains over all sets",
        "",
        f"{table.title}, with {several(len(races), 'set')} as the sample. {table.note}",
        "",
        *family_table(order),
        "",
        *halving(races),
        *method_table(order, average, list(races)),
        *left_out(order, races),
    ]
    return "\n".join(lines) + "\n"


def joined(words: list[str]) -> str:
    """A list in a sentence.

    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _family(method: str) -> str:
    algorithm, stage = split_method(method)
    return "second stage of ERM" if algorithm == "erm" and stage else algorithms.find(algorithm).family


def winners(order: pd.DataFrame, races: Races) -> str:
    """One paragraph: who is first where, how ERM does, and which families lead."""
    boards = {name: race["default"].leaderboard for name, race in races.items()}
    first: dict[str, list[str]] = {}
    for name, board in boards.items():
        first.setdefault(board[0].method, []).append(name)
    where = [f"`{method}` on {joined(names)}" for method, names in first.items()]
    said = [
        f"No method wins everywhere: best on validation are {joined(where)}."
        if len(first) > 1
        else f"`{next(iter(first))}` is best on validation on every set."
    ]
    level = [name for name, board in boards.items() if any(row.method == "erm" and row.level for row in board)]
    behind = [name for name in boards if name not in level]
    said.append(
        f"`erm` is within noise of the best on {len(level)} of {len(boards)} sets"
        + (f" and behind it on {joined(behind)}." if behind else ".")
    )
    ranked = list(order["method"])
    own = [f"`{m}` is number {ranked.index(m) + 1}" for m in COMPARED if m in ranked]
    said.append(
        f"By mean gain on the test sets, {joined([f'`{method}`' for method in ranked[:3]])} lead; of {len(ranked)}, "
        f"{joined(own)}."
    )
    leading = order["family"].head(LEADING).value_counts()
    counted = [f"{family} {number}" for family, number in leading.items()]
    said.append(f"The {leading.sum()} best by family: {', '.join(counted)}.")
    return " ".join(said)


def set_table(average: pd.DataFrame, races: Races) -> list[str]:
    """A row per set: the best on validation, its ties, and what the test set would have chosen."""
    lines = [
        "| set | test samples | best on validation | its test | within noise of it | highest on the test set | "
        + " | ".join(f"`{method}`" for method in COMPARED)
        + " |",
        "|---|---:|---|---:|---:|---|" + "---:|" * len(COMPARED),
    ]
    for name, kinds in races.items():
        first, *others = kinds["default"].leaderboard
        best = average[name].sort_values(ascending=False, kind="stable")
        own = [f"{best[m]:.1f} (rank {(best > best[m]).sum() + 1})" if m in best else "–" for m in COMPARED]
        cells = [
            *(name, f"{kinds['default'].samples:,}", f"`{first.method}`", f"{100 * first.test:.1f}"),
            *(f"{sum(row.level for row in others)} of {len(others)}", f"`{best.index[0]}` {best.iloc[0]:.1f}", *own),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    note = "The highest on the test set is picked on it, so it is lucky as well as good."
    return [*lines, "", f"{note} What is within noise: [race.md](../race.md)."]


def family_table(order: pd.DataFrame) -> list[str]:
    """A row per family: its methods, their mean rank, and the best of them."""
    lines = ["| family | methods | mean of the mean gains | best mean gain |", "|---|---:|---:|---:|"]
    by_family = order.groupby("family")["mean"].agg(["mean", "max", "size"]).sort_values("mean", ascending=False)
    for name, row in by_family.iterrows():
        best = order[order["family"] == name]["method"].iloc[0]
        lines.append(f"| {name} | {row['size']:.0f} | {row['mean']:+.1f} | {row['max']:+.1f} `{best}` |")
    return lines


def halving(races: Races) -> list[str]:
    """Whether a race that stops weak methods early ends with one that a full race cannot tell from its first."""
    both = {name: kinds for name, kinds in races.items() if {"halving", "full"} <= kinds.keys()}
    if not both:
        return []
    rows, level = [], []
    for name, kinds in both.items():
        short, full = kinds["halving"], kinds["full"]
        if (short.trials, short.seeds, short.steps) != (full.trials, full.seeds, full.steps) or full.stopped:
            raise ValueError(f"{name}: the two races differ in more than what stops early")
        place = [row.method for row in full.leaderboard].index(short.leaderboard[0].method)
        first, own = full.leaderboard[0], full.leaderboard[place]
        if own.level:
            level.append(name)
        cells = [
            *(name, f"{len(short.stopped) + len(short.leaderboard)}", f"{runs(short)} of {runs(full)}"),
            *(f"`{own.method}`", f"`{first.method}`", f"{place + 1}", _behind(own)),
            *("yes" if own.level else "no", f"{sum(row.level for row in full.leaderboard)}"),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    budget = next(iter(both.values()))["full"]
    left = sorted({len(kinds["halving"].leaderboard) for kinds in both.values()})
    missed = [name for name in both if name not in level]
    tied = f"{joined(level) if level else 'none of them'}, and not on {joined(missed)}" if missed else "all of them"
    return [
        "## Stopping weak methods early",
        "",
        "`crosstail race` gives another trial only to the better half on validation, until "
        f"{joined(list(map(str, left)))} methods are left ([how](../race.md)). On {several(len(both), 'set')} the same "
        f"race was also run to the end: {budget.trials} trials of every method, then {budget.seeds} seeds of its best. "
        f"The first of the race that stops early is in the full race's tied group on {tied}.",
        "",
        "| set | methods | runs | first, stopping early | first of the full race | rank on validation | "
        "behind on the test set | tied | size of the tied group |",
        "|---|---:|---:|---|---|---:|---:|---|---:|",
        *rows,
        "",
        "*Rank on validation*: where the full race puts the first of the race that stops early. *Behind on the test "
        "set*: points by which the full race's first is ahead of it, with a 95 % interval.",
        "",
    ]


def runs(race: RaceResult) -> int:
    """How many runs a race needs: the trials of those that stopped, and trials and further seeds of the others."""
    stopped = [_trials(one.method, one.trials) for one in race.stopped]
    return sum(stopped) + sum(_trials(row.method, race.trials) + race.seeds - 1 for row in race.leaderboard)


def _trials(method: str, trials: int) -> int:
    """All trials of a method without hyperparameters to search are one run."""
    return trials if algorithms.ranges(algorithms.find(split_method(method)[0]).Hparams) else 1


def _behind(row: Standing) -> str:
    lead = row.lead
    return (
        f"{100 * lead.estimate:+z.1f} ({100 * lead.low:+z.1f} to {100 * lead.high:+z.1f})" if lead else "is the first"
    )


def method_table(order: pd.DataFrame, average: pd.DataFrame, sets: list[str]) -> list[str]:
    """A row per method with its pair average on each set."""
    lines = [
        "## All methods",
        "",
        f"| method | mean gain | 95 % interval | {' | '.join(sets)} |",
        "|---|---:|---:|" + "---:|" * len(sets),
    ]
    for _, row in order.iterrows():
        cells = [f"{average.loc[row['method'], name]:.1f}" for name in sets]
        ends = interval(row["low"], row["high"], "+")
        lines.append(f"| `{row['method']}` | {row['mean']:+.1f} | {ends} | {' | '.join(cells)} |")
    return [*lines, "", "Gain in points, and pair average in %."]


def left_out(order: pd.DataFrame, races: Races) -> list[str]:
    """The methods that are not ranked, because they do not suit a set or failed on it."""
    lines = []
    for method in sorted(set(methods()) - set(order["method"])):
        why = []
        for name, kinds in races.items():
            failed = {one.method: one.error for one in kinds["default"].failed}
            if reason := (kinds["default"].left_out | failed).get(method):
                why.append(f"on {name}, {reason}")
        lines += ["", f"Not ranked: `{method}`; {'; '.join(why) or 'its race is not finished'}."]
    return lines


def main() -> None:
    """Run the races and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets")
    parser.add_argument("--out", type=Path, default=Path("races"))
    parser.add_argument("--search", action="store_true", help="also races with a search, stopping early and to the end")
    parser.add_argument("--page-only", action="store_true", help="write the page from races that are finished")
    arguments = parser.parse_args()
    places = {name: arguments.out / name.partition(",")[0] for name in SETS}
    for name, fields in () if arguments.page_only else SETS.items():
        for kind in RACES if arguments.search and name in SEARCHED else ("default",):
            race(arguments.data, fields, places[name], kind)
    races = read_races(places)
    text = page(summaries(places, races), races)
    (DOCS / "results/all-methods.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""How often the tests between methods are wrong, on real seeds: docs/results/false-alarms.md.

Without --data, the page is written from the records. With it, the runs that the records lack are done first, about
660 of them, which takes some hours of one core and may be stopped at any time:

    python -m studies.false_alarms --data ../shared/data --out runs/seeds
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from studies.false_alarms.runs import REFERENCE, Records, resume, settings
from studies.false_alarms.simulation import Pool, any_false_alarm, coverage, detectable, false_alarms, power

PAGE = Path(__file__).parents[2] / "docs/results/false-alarms.md"
NAMES = {
    "crisis": "crisis: sentence embeddings",
    "digits-frozen": "digits: frozen features",
    "digits-pixels": "digits-mlt: 16 × 16 pixels",
}
SEEDS = (2, 3, 5, 10)
MANY, FEW = 1000, 200  # draws of two methods, and of many


def page() -> str:
    """The page, from the records."""
    pools = {title: Pool(records) for name, title in NAMES.items() if (records := Records.read(name)).runs}
    parts = [_intro(pools), _same(pools), _several(pools), _different(pools), _intervals(pools), _seeds(pools)]
    return "\n".join(line for part in parts for line in part)


def _intro(pools: dict[str, Pool]) -> Iterator[str]:
    yield "# How often tests between methods are wrong"
    yield ""
    yield "Models of real seeds are drawn, and test samples within each pair, both with replacement, and compared by"
    yield "[`compare_methods`](../intervals.md). What is known is taken for all there is, so the truth is known too."
    yield f"Errors in %, of {MANY:,} draws unless the table says otherwise: nominal 5, and coverage 95. Written by"
    yield "`python -m studies.false_alarms`."
    yield ""
    yield "| data | test samples | pairs | seeds of ERM | of others | ERM, deviation over seeds |"
    yield "|---|---:|---:|---:|---|---:|"
    for title, pool in pools.items():
        each = sorted({len(own) for method, own in pool.seeds.items() if method != REFERENCE})
        own = f"{len(pool.seeds) - 1} × {' to '.join(map(str, dict.fromkeys((each[0], each[-1]))))}"
        cells = [f"{len(pool.truth_of[0]):,}", str(len(pool.pairs)), str(len(pool.seeds[REFERENCE])), own]
        deviation = 100 * pool.averages[REFERENCE].std(ddof=1)
        yield f"| {title} | {' | '.join(cells)} | {100 * pool.truth(REFERENCE):.1f} ± {deviation:.1f} |"
    yield ""


def _same(pools: dict[str, Pool]) -> Iterator[str]:
    yield "## The same method, trained again"
    yield ""
    yield "False alarms, with the coverage of 0 in brackets. *Groups*: each sample three times, in a group"
    yield f"({FEW} draws)."
    yield ""
    yield f"| data | {' | '.join(f'{n} seeds' for n in SEEDS)} | 3 seeds, groups |"
    yield "|---|" + "---:|" * (len(SEEDS) + 1)
    for title, pool in pools.items():
        found = [false_alarms(pool, n, MANY) for n in SEEDS] + [false_alarms(Pool(pool.records, copies=3), 3, FEW)]
        yield f"| {title} | {' | '.join(f'{wrong:.1f} ({covered:.0f})' for wrong, covered in found)} |"
    yield ""


def _several(pools: dict[str, Pool]) -> Iterator[str]:
    yield "## Several methods that are all the same"
    yield ""
    yield f"How often at least one of them is said to differ from the best on validation ({FEW} draws, 3 seeds each)."
    yield ""
    yield "| data | 3 methods | 6 | 20 |"
    yield "|---|---:|---:|---:|"
    for title, pool in pools.items():
        yield f"| {title} | {' | '.join(f'{any_false_alarm(pool, k, 3, FEW):.1f}' for k in (3, 6, 20))} |"
    yield ""


def _different(pools: dict[str, Pool]) -> Iterator[str]:
    yield "## Methods that differ"
    yield ""
    yield f"How often the difference from ERM is seen, and how often its interval covers the truth ({FEW} draws each);"
    yield "beside it Welch's test over seeds, which takes no account of the test samples that all seeds share."
    yield ""
    yield "| data | method | difference | seeds | seen | Welch | covered | Welch |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for title, pool in pools.items():
        found = [(n, power(pool, m, n, FEW)) for m in pool.seeds if m != REFERENCE for n in (3, 10)]
        for n, one in sorted(found, key=lambda of: (abs(of[1].truth), of[0])):
            shown = f"{one.seen:.0f} | {one.welch:.0f} | {one.covered:.0f} | {one.welch_covered:.0f}"
            yield f"| {title} | `{one.method}` | {one.truth:+.1f} | {n} | {shown} |"
    yield ""


def _intervals(pools: dict[str, Pool]) -> Iterator[str]:
    yield "## Intervals of an accuracy"
    yield ""
    yield "Coverage of the pair average of a model, and of the mean over three of a method, on all samples."
    yield ""
    yield "| data | one model | mean over three |"
    yield "|---|---:|---:|"
    for title, pool in pools.items():
        one, three = coverage(pool, MANY)
        yield f"| {title} | {one:.1f} | {three:.1f} |"
    yield ""


def _seeds(pools: dict[str, Pool]) -> Iterator[str]:
    yield "## How many seeds for which difference"
    yield ""
    yield "The difference in points that four of five tests would see, for the method that needs the least and the one"
    yield "that needs the most."
    yield ""
    yield f"| data | {' | '.join(f'{n} seeds' for n in SEEDS)} |"
    yield "|---|" + "---:|" * len(SEEDS)
    for title, pool in pools.items():
        cells = []
        for n in SEEDS:
            own = [detectable(pool, method, n) for method in pool.seeds if method != REFERENCE]
            cells.append(f"{min(own):.1f} to {max(own):.1f}")
        yield f"| {title} | {' | '.join(cells)} |"
    yield ""


def main() -> None:
    """Do the runs that are missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with crisis.npz and digits-mlt.npz: do the missing runs")
    parser.add_argument("--out", type=Path, default=Path("runs/seeds"), help="folder for data that are made")
    given = parser.parse_args()
    if given.data:
        torch.set_num_threads(1)
        for setting in settings(given.data, given.out):
            resume(setting)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

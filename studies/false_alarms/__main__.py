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
from studies.paper_claims.page import table

PAGE = Path(__file__).parents[2] / "docs/results/false-alarms.md"
NAMES = {
    "crisis": "crisis: sentence embeddings",
    "digits-frozen": "digits: frozen features",
    "digits-pixels": "digits-mlt: 16 × 16 pixels",
}
Pools = dict[str, Pool]
SEEDS = (2, 3, 5, 10)
MANY, FEW = 1000, 200  # draws of two methods, and of many


def page() -> str:
    """The page, from the records."""
    pools: Pools = {title: Pool(records) for name, title in NAMES.items() if (records := Records.read(name)).runs}
    parts = [_intro(pools), _same(pools), _several(pools), _different(pools), _intervals(pools), _seeds(pools)]
    return "\n".join(line for part in parts for line in part)


def _intro(pools: Pools) -> Iterator[str]:
    yield "# How often tests between methods are wrong"
    yield ""
    yield "Models of real seeds are drawn, and test samples within each pair, with replacement, and compared by"
    yield "[`compare_methods`](../intervals.md). What is known is taken for all there is, so the truth is known too."
    yield f"Errors in %, of {MANY:,} draws unless the table says otherwise: nominal 5, and coverage 95. Written by"
    yield "`python -m studies.false_alarms`."
    yield ""
    rows = []
    for title, pool in pools.items():
        each = sorted({len(own) for method, own in pool.seeds.items() if method != REFERENCE})
        others = f"{len(pool.seeds) - 1} × {' to '.join(map(str, dict.fromkeys((each[0], each[-1]))))}"
        own, average = pool.averages[REFERENCE], 100 * pool.truth(REFERENCE)
        cells = f"{len(pool.truth_of[0]):,}", str(len(pool.pairs)), str(len(own)), others
        rows.append([title, *cells, f"{average:.1f} ± {100 * own.std(ddof=1):.1f}"])
    yield from table(["data", "test samples", "pairs", "seeds of ERM", "of others", "ERM, deviation over seeds"], rows)


def _same(pools: Pools) -> Iterator[str]:
    yield "## The same method, trained again"
    yield ""
    yield "False alarms, with the coverage of 0 in brackets. *Groups*: each sample three times, in a group"
    yield f"({FEW} draws)."
    yield ""
    rows = []
    for title, pool in pools.items():
        found = [false_alarms(pool, n, MANY) for n in SEEDS] + [false_alarms(Pool(pool.records, copies=3), 3, FEW)]
        rows.append([title, *(f"{wrong:.1f} ({covered:.0f})" for wrong, covered in found)])
    yield from table(["data", *(f"{n} seeds" for n in SEEDS), "3 seeds, groups"], rows)


def _several(pools: Pools) -> Iterator[str]:
    yield "## Several methods that are all the same"
    yield ""
    yield f"How often at least one of them is said to differ from the best on validation ({FEW} draws, 3 seeds each)."
    yield ""
    rows = [[title, *(f"{any_false_alarm(pool, k, 3, FEW):.1f}" for k in (3, 6, 20))] for title, pool in pools.items()]
    yield from table(["data", "3 methods", "6", "20"], rows)


def _different(pools: Pools) -> Iterator[str]:
    yield "## Methods that differ"
    yield ""
    yield f"How often the difference from ERM is seen, and how often its interval covers the truth ({FEW} draws each);"
    yield "beside it Welch's test over seeds, which takes no account of the test samples that all seeds share."
    yield ""
    rows = []
    for title, pool in pools.items():
        found = [(n, power(pool, m, n, FEW)) for m in pool.seeds if m != REFERENCE for n in (3, 10)]
        for n, one in sorted(found, key=lambda of: (abs(of[1].truth), of[0])):
            shares = (f"{share:.0f}" for share in (one.seen, one.welch, one.covered, one.welch_covered))
            rows.append([title, f"`{one.method}`", f"{one.truth:+.1f}", str(n), *shares])
    yield from table(["data", "method", "difference", "seeds", "seen", "Welch", "covered", "Welch"], rows)


def _intervals(pools: Pools) -> Iterator[str]:
    yield "## Intervals of an accuracy"
    yield ""
    yield "Coverage of the pair average of a model, and of the mean over three of a method, on all samples."
    yield ""
    rows = [[title, *(f"{covered:.1f}" for covered in coverage(pool, MANY))] for title, pool in pools.items()]
    yield from table(["data", "one model", "mean over three"], rows)


def _seeds(pools: Pools) -> Iterator[str]:
    yield "## How many seeds for which difference"
    yield ""
    yield "The difference in points that four of five tests would see, for the method that needs the least and the one"
    yield "that needs the most."
    yield ""
    rows = []
    for title, pool in pools.items():
        own = {n: [detectable(pool, method, n) for method in pool.seeds if method != REFERENCE] for n in SEEDS}
        rows.append([title, *(f"{min(points):.1f} to {max(points):.1f}" for points in own.values())])
    yield from table(["data", *(f"{n} seeds" for n in SEEDS)], rows)


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

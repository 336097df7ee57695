"""The paper's claim on domain generalization, on Office-Caltech10: run what the records lack.

python -m studies.paper_claims.photos --data office-caltech10
python -m studies.paper_claims.page
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from studies.paper_claims.records import FOLDER, HERE, Records
from studies.paper_claims.series import Bench, plan_of, search

from crosstail.sweep.launchers._launcher import Resources, launcher
from crosstail.sweep.plan import Plan
from crosstail.sweep.store import Store
from crosstail.training import RunSpec
from crosstail.training.resolve import resolve

DATA = "office-caltech10"
DOMAINS = ("amazon", "caltech10", "dslr", "webcam")
ENTRIES = ("erm:retrain", "coral:retrain", "boda:retrain", "boda+coral:retrain")
NETWORK = resolve(
    RunSpec(
        dataset=DATA,
        algorithm="erm",
        backbone="efficientnet_lite0",
        freeze=True,
        augment=False,
        protocol="dg",
        steps=300,
        batch_size=24,
    )
)


def plan(trials: int = 8, seeds: int = 3) -> Plan:
    """The whole protocol: every domain is left out in turn."""
    return plan_of(NETWORK, ENTRIES, DOMAINS, trials, seeds)


def main(words: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data" / DATA)
    parser.add_argument("--records", type=Path, default=FOLDER)
    parser.add_argument("--runs", type=Path, default=HERE / "runs", help="where runs are stored")
    parser.add_argument("--launcher", default="local")
    parser.add_argument("--workers", type=int)
    given = parser.parse_args(words)
    store = Store(given.runs)
    with launcher(given.launcher, store, Resources(given.workers)) as crew:
        search(Bench(given.data, store, crew, Records(given.records / "photos.jsonl")), plan())


if __name__ == "__main__":
    main()

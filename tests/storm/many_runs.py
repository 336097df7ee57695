"""Times of `status` and `report` on sweeps of many runs: python -m tests.storm.many_runs 1000 10000."""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from crosstail.reports.compare.page import write_report
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.results import Results
from crosstail.sweeps import plan
from crosstail.sweeps.status import status
from crosstail.sweeps.store import Store
from crosstail.training import RunSpec
from crosstail.training.data_facts import DataFacts
from crosstail.training.resolve import resolve
from crosstail.training.result import RunResult, SplitAccuracy, Transferability

METHODS = ("erm", "boda", "bsoftmax", "ldam", "coral")


def fake_sweep(folder: Path, data: Path, runs: int) -> Store:
    """A sweep of so many finished runs, none of which was trained."""
    shared = resolve(RunSpec(dataset=str(data), algorithm="erm", width=8, steps=12, batch_size=4, evaluations=3))
    made = plan.make(shared, METHODS, trials=runs // len(METHODS), seeds=1)
    store = Store(folder)
    store.add(made)
    for method in METHODS:
        for number, trial in enumerate(made.drawn[method]):
            for spec in made.runs(method, trial):
                place = folder / "runs" / spec.key
                place.mkdir(parents=True, exist_ok=True)  # two trials may be the same
                result = fake_result(spec, number / runs)
                (place / "spec.json").write_bytes(msgspec.json.encode(spec))
                (place / "result.json").write_bytes(msgspec.json.encode(result))
    return store


def fake_result(spec: RunSpec, accuracy: float) -> RunResult:
    """A result with this accuracy on every split."""
    metrics = dict.fromkeys(("average", "worst_domain", "pair_average", "worst_pair"), accuracy)
    split = SplitAccuracy(**metrics, hits=[[1, 1], [1, 1]], totals=[[2, 2], [2, 2]])
    facts: dict[str, object] = {"versions": {}, "selected_step": 1, "selected_steps": [1], "seconds": 1.0}
    data = DataFacts(checksum="0", samples=1, notes=[])
    return RunResult(
        spec=spec,
        **facts,
        domains=["a", "b"],
        classes=["c", "d"],
        counts=[[9, 1], [1, 9]],
        validation=split,
        test=split,
        transferability=Transferability(alpha=None, beta=None, gamma=None),
        hparams=spec.hparams,
        input_shape=[2],
        weights=None,
        data=data,
    )


def times(folder: Path, data: Path, runs: int, clock: Callable[[], float] = time.perf_counter) -> dict[str, float]:
    """Seconds of each command's work on a sweep of so many runs."""
    fake_sweep(folder, data, runs)
    found = {}
    work = {
        "status, first": lambda: status(Store(folder)),
        "status, again": lambda: status(Store(folder)),
        "report": lambda: write_report(
            folder.with_name(f"report of {folder.name}"), Results(read_runs([folder])), files=False
        ),
    }
    for name, function in work.items():
        began = clock()
        function()
        found[name] = clock() - began
    return found


def main() -> None:
    from crosstail.testing import save_separable

    with tempfile.TemporaryDirectory(prefix="crosstail-many-runs-") as place:
        data = Path(place) / "vectors.npz"
        save_separable(data, [[30, 8, 2], [0, 9, 25]])
        for runs in map(int, sys.argv[1:]):
            found = times(Path(place) / str(runs), data, runs)
            print(
                f"{runs:,} runs:", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found.items()), flush=True
            )


if __name__ == "__main__":
    main()

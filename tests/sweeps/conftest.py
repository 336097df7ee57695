"""A small sweep on vectors, what it ends with when nothing disturbs it, and ways to run it."""

import os
import signal
import subprocess
from dataclasses import asdict, replace

import msgspec
import pytest

from crosstail.sweeps import drive, plan, select
from crosstail.sweeps.launchers._launcher import Resources, launcher
from crosstail.sweeps.store import Store
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.data_facts import DataFacts
from crosstail.training.folder import RunFolder
from crosstail.training.resolve import resolve
from crosstail.training.result import RunResult, SplitAccuracy, Transferability


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Vectors in 2 domains × 3 classes, one pair without training samples."""
    path = tmp_path_factory.mktemp("data") / "vectors.npz"
    save_separable(path, [[30, 8, 2], [0, 9, 25]])
    return path


@pytest.fixture(scope="session")
def shared(data):
    """What the runs have in common."""
    return resolve(RunSpec(dataset=str(data), algorithm="erm", width=8, steps=12, batch_size=4, evaluations=3))


@pytest.fixture(scope="session")
def small(shared):
    """Two methods, one of them with a second stage; 3 trials and 2 seeds of each, so 8 runs."""
    return plan.make(shared, ["erm", "boda:retrain"], trials=3, seeds=2)


@pytest.fixture(scope="session")
def undisturbed(small, tmp_path_factory, run, outcome_of):
    """What `small` ends with."""
    store = Store(tmp_path_factory.mktemp("undisturbed"))
    outcomes = run(small, store)
    assert set(outcomes.values()) == {"done"} and len(outcomes) == 8
    return outcome_of(store)


@pytest.fixture(scope="session")
def run():
    """Do a sweep to its end; how each run ended, by key."""

    def run(plan, store, name="inline", **resources):
        with launcher(name, store, Resources(**resources)) as crew:
            return {outcome.key: outcome.how for _, outcome in drive.sweep(plan, store, crew)}

    return run


@pytest.fixture(scope="session")
def outcome_of():
    """The choices, the table and the result of every run of a store, to the digit."""

    def outcome_of(store):
        results = Store(store.path).results()
        whole = {key: RunFolder(store.path / "runs" / key).result() for key in results}
        chosen = select.choices(store, results)
        return {
            "choices": [asdict(replace(choice, failed={})) for choice in chosen],
            "table": [asdict(row) for row in select.table(chosen, results)],
            "runs": {key: msgspec.structs.replace(result, seconds=0.0) for key, result in whole.items()},
        }

    return outcome_of


@pytest.fixture(scope="session")
def fake_result():
    """The result of a run that was never trained, with the same accuracy for every metric of a split."""

    def fake_result(spec, validation=0.5, test=0.0, seconds=1.0):
        def split(accuracy):
            metrics = dict.fromkeys(("average", "worst_domain", "pair_average", "worst_pair"), accuracy)
            return SplitAccuracy(**metrics, hits=[[1]], totals=[[2]])

        return RunResult(
            spec=spec,
            versions={},
            selected_step=1,
            selected_steps=[1],
            seconds=seconds,
            domains=["d"],
            classes=["c"],
            counts=[[1]],
            validation=split(validation),
            test=split(test),
            transferability=Transferability(alpha=None, beta=None, gamma=None),
            hparams=spec.hparams,
            input_shape=[2],
            weights=None,
            data=DataFacts(checksum="0", samples=1, notes=[]),
        )

    return fake_result


@pytest.fixture
def in_terminal():
    """Start a program as a terminal does; from tests in the background it would inherit that Ctrl-C is ignored."""
    started = []

    def start(command, **options):
        before = signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            started.append(subprocess.Popen(command, text=True, start_new_session=True, **options))
        finally:
            signal.signal(signal.SIGINT, before)
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:  # the test has failed
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


OWN = '''
import os
import signal
import sys
import time
import torch.nn.functional as F
from crosstail.algorithms._algorithm import Algorithm

def note(path):
    with open(path, "a") as file:
        file.write("one run\\n" if "torch._dynamo" not in sys.modules else "with torch's compiler\\n")

class Own(Algorithm):
    """Own (Nobody, 2024)."""

    def losses(self, z, batch):
        loss = F.cross_entropy(self.head(z), batch.y)
        {line}
        return {{"cross_entropy": loss}}
'''


@pytest.fixture
def own(tmp_path):
    """A user's own algorithm: ERM, and a line that is run at every step."""

    def own(name, line):
        path = tmp_path / f"{name}.py"
        path.write_text(OWN.format(line=line))
        return str(path)

    return own

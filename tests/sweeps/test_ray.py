"""Ray: workers and nodes are killed, runs hang, Ctrl-C; the tables end up the same."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from crosstail import ray_actors
from crosstail.sweeps import drive
from crosstail.sweeps import lease as leases
from crosstail.sweeps.launchers import _launcher
from crosstail.sweeps.launchers._launcher import Resources, launcher
from crosstail.sweeps.plan import make
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job
from crosstail.training.resolve import resolve

ray = pytest.importorskip("ray")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "sweep")


@pytest.fixture(autouse=True)
def own_cluster(monkeypatch):
    """Do not use a cluster of the user; the workers wait no longer for a processor than everyone else."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_worker_niceness", "0")


def workers():
    """The processes of actors that this process has started."""
    return [child for child in psutil.Process().children(recursive=True) if child.name().startswith("ray::RayWorker")]


def in_time(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.slow
def test_workers_that_are_killed_or_hang(small, shared, own, store, undisturbed, outcome_of, monkeypatch):
    killed, outcomes = [], {}
    before = set(psutil.Process().children(recursive=True))
    with launcher("ray", store, Resources(workers=2)) as crew:
        for _, outcome in drive.sweep(small, store, crew):
            if not outcomes:  # one worker has just finished a run, the other is amid one
                victim = random.Random().choice(workers())
                victim.kill()
                killed.append(victim.pid)
            outcomes[outcome.key] = outcome.how
        assert len(killed) == 1 and set(outcomes.values()) == {"done"} and len(outcomes) == 8
        assert outcome_of(store) == undisturbed
        assert in_time(lambda: len({worker.pid for worker in workers()} - set(killed)) == 2)

        monkeypatch.setattr(leases, "_machine", lambda: "another")  # so that this process cannot tell which have died
        crew.actors.time_limit = 3.0
        hangs = resolve(replace(shared, algorithm=own("hangs", "time.sleep(1000)")))
        (outcome,) = crew.run([Job(hangs)])
        assert outcome.how == "failed" and store.failures()[hangs.key].kind == "time limit"

        crew.actors.time_limit = None
        monkeypatch.setattr(_launcher, "DEATHS", 1)
        dies = resolve(replace(shared, algorithm=own("dies", "os.kill(os.getpid(), signal.SIGKILL)")))
        (outcome,) = crew.run([Job(dies)])
        assert outcome.how == "failed" and store.failures()[dies.key].kind == "died"
        started = set(psutil.Process().children(recursive=True)) - before
    assert started and psutil.wait_procs(started, timeout=10)[1] == []


@pytest.mark.slow
def test_a_node_that_is_killed(small, store, undisturbed, outcome_of, monkeypatch):
    from ray.cluster_utils import Cluster

    signs = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
    common = {"num_cpus": 1, "object_store_memory": ray_actors.MEMORY, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=common | {"_system_config": signs})
    try:
        node = cluster.add_node(**common)
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        outcomes = {}
        with launcher("ray", store, Resources()) as crew:
            assert crew.workers == 2
            for _, outcome in drive.sweep(small, store, crew):
                if not outcomes:
                    (raylet,) = node.all_processes["raylet"]
                    os.kill(raylet.process.pid, signal.SIGKILL)
                outcomes[outcome.key] = outcome.how
            assert in_time(lambda: sum(node["Alive"] for node in ray.nodes()) == 1)
        assert set(outcomes.values()) == {"done"} and len(outcomes) == 8
        assert outcome_of(store) == undisturbed
    finally:
        cluster.shutdown()


@pytest.mark.slow
def test_ctrl_c_ends_what_it_started_and_another_launcher_goes_on(
    shared, own, store, in_terminal, run, outcome_of, tmp_path
):
    methods = [own("paused", "time.sleep(float(os.environ.get('PAUSE', 0)))"), "boda:retrain"]
    plan = make(shared, methods, trials=3, seeds=2)
    options = {"out": store.path, "width": 8, "trials": 3, "seeds": 2}
    options |= {"steps": 12, "batch-size": 4, "evaluations": 3, "launcher": "ray", "workers": 2}
    arguments = [word for method in methods for word in ("--algorithm", method)]
    arguments += [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-c", "from crosstail.cli import main; main()", "sweep", shared.dataset, *arguments]
    slow = os.environ | {"PAUSE": "0.25"}  # for the signal to arrive before the last run ends
    process = in_terminal(command, stderr=subprocess.PIPE, env=slow)
    assert in_time(lambda: any((store.path / "runs").glob("*")))
    begun = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1 and "Traceback" not in error, error
    assert error.splitlines()[-1].startswith("stopped: "), error
    assert len(begun) > 3 and psutil.wait_procs(begun, timeout=10)[1] == []
    assert set(run(plan, store).values()) == {"kept", "done"}
    undisturbed = Store(tmp_path / "undisturbed")
    run(plan, undisturbed)
    assert outcome_of(store) == outcome_of(undisturbed)


def test_without_ray_one_line_says_what_to_install(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "crosstail.sweeps.launchers.ray", raising=False)
    monkeypatch.delitem(sys.modules, "crosstail.ray_actors")
    with pytest.raises(ValueError, match=r"pip install 'crosstail\[ray\]'"):
        launcher("ray", store, Resources())

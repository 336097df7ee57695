"""Job arrays: what is submitted, to a fake Slurm; and whole sweeps on a real one with one node."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from crosstail.sweeps import drive
from crosstail.sweeps.launchers import slurm
from crosstail.sweeps.launchers._launcher import DEATHS, Resources, launcher
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job
from crosstail.training.resolve import resolve

SCRIPT = """\
#!/bin/bash

# Parameters
#SBATCH --array=0-1%2
#SBATCH --cpus-per-task=1
#SBATCH --error={logs}/%A_%a_0_log.err
#SBATCH --job-name=crosstail
#SBATCH --nodes=1
#SBATCH --open-mode=append
#SBATCH --output={logs}/%A_%a_0_log.out
#SBATCH --signal=USR2@90
#SBATCH --wckey=submitit

# command
export SUBMITIT_EXECUTOR=slurm
srun --unbuffered --output {logs}/%A_%a_%t_log.out --error {logs}/%A_%a_%t_log.err \
{python} -u -m submitit.core._submit {logs}
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Fake commands that record their arguments; squeue prints the file `queue`."""
    place = tmp_path / "fake"
    place.mkdir()
    (place / "queue").write_text("")
    commands = {
        "srun": "",
        "sbatch": 'cp "$1" script; echo "Submitted batch job 17"',
        "squeue": "cat queue",
        "scancel": "",
    }
    for name, line in commands.items():
        (place / name).write_text(f'#!/bin/sh\ncd {place}\necho {name} "$@" >> calls\n{line}\n')
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(place), prepend=os.pathsep)
    monkeypatch.setattr(slurm, "CHECK", 0.0)
    return place


def jobs_of(plan):
    return [Job(spec) for trial in range(3) for spec in plan.runs("erm", plan.drawn["erm"][trial])]


def calls(place, name):
    return [line for line in (place / "calls").read_text().splitlines() if line.split()[0] == name]


def test_the_script_is_this(fake, small, tmp_path):
    store = Store(tmp_path / "sweep")
    with launcher("slurm", store, Resources(workers=2)) as crew:
        assert list(crew.run(jobs_of(small))) == []
    logs = tmp_path / "sweep" / "slurm"
    assert (fake / "script").read_text() == SCRIPT.format(logs=logs, python=sys.executable)
    assert calls(fake, "scancel") == ["scancel --quiet 17"]


def test_there_is_one_array_until_it_has_ended_or_there_are_new_jobs(fake, small, tmp_path):
    first, second, third = jobs_of(small)
    with launcher("slurm", Store(tmp_path / "sweep"), Resources()) as crew:
        list(crew.run([first, second]))
        (fake / "queue").write_text("17_0 all crosstail")
        list(crew.run([first, second]))
        list(crew.run([second]))
        list(crew.run([]))
        assert len(calls(fake, "sbatch")) == 1
        list(crew.run([second, third]))
        assert len(calls(fake, "sbatch")) == 2
        (fake / "queue").write_text("")
        list(crew.run([second]))
        assert len(calls(fake, "sbatch")) == 3


def test_a_controller_that_does_not_answer_is_no_end(fake, small, tmp_path):
    with launcher("slurm", Store(tmp_path / "sweep"), Resources()) as crew:
        list(crew.run(jobs_of(small)))
        for error, arrays in (("Unable to contact slurm controller", 1), ("Invalid job id specified", 2)):
            (fake / "squeue").write_text(f'#!/bin/sh\necho "slurm_load_jobs error: {error}" >&2\nexit 1\n')
            list(crew.run(jobs_of(small)))
            assert len(calls(fake, "sbatch")) == arrays


def test_runs_that_no_array_gets_done_have_failed(fake, small, tmp_path):
    store = Store(tmp_path / "sweep")
    jobs = jobs_of(small)
    with launcher("slurm", store, Resources()) as crew:
        for _ in range(DEATHS):
            assert list(crew.run(jobs)) == []
        assert [outcome.how for outcome in crew.run(jobs)] == ["failed"] * 3
    assert {failure.kind for failure in store.failures().values()} == {"died"} and len(store.failures()) == 3


def test_the_error_of_slurm_is_shown(fake, small, tmp_path):
    (fake / "sbatch").write_text('#!/bin/sh\necho "sbatch: error: invalid partition specified: gpus" >&2\nexit 1\n')
    with (
        launcher("slurm", Store(tmp_path), Resources()) as crew,
        pytest.raises(OSError, match="partition specified: gpus"),
    ):
        list(crew.run(jobs_of(small)))


def test_a_machine_without_slurm_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="sbatch and srun"):
        launcher("slurm", Store(tmp_path), Resources())


def test_without_submitit_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    monkeypatch.delitem(sys.modules, "crosstail.sweeps.launchers.slurm", raising=False)
    with pytest.raises(ValueError, match=r"pip install 'crosstail\[slurm\]'"):
        launcher("slurm", Store(tmp_path), Resources())


def test_a_task_passes_over_what_has_failed_since_it_was_submitted(small, shared, own, tmp_path):
    """Runs that had failed before are tried again, once."""
    raises = own("raises", "raise RuntimeError('no')")
    spec, other = (resolve(replace(shared, algorithm=raises, seed=seed)) for seed in (0, 1))
    store = Store(tmp_path / "sweep")
    store.fail(store.claim(spec), "error", ["before"])
    store.fail(store.claim(other), "error", ["since"])
    before = {signal.SIGTERM: signal.getsignal(signal.SIGTERM), signal.SIGUSR2: signal.getsignal(signal.SIGUSR2)}
    try:
        slurm.work(store.path, 60.0, [Job(spec), Job(other)], {spec.key: 1}, None)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert store.failures()[spec.key].attempts == 2
    assert store.failures()[other.key].error == ["since"]


CONFIGURATION = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="module")
def node():
    """A Slurm of one node, which listens to this machine only."""
    for command in ("munged", "slurmctld", "slurmd"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed (Debian: slurm-wlm)")
    if os.geteuid() != 0:
        pytest.skip("slurmd runs as root only")
    with ExitStack() as started:
        place = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))  # socket paths must be short
        place.chmod(0o755)
        ports = [free_port(), free_port()]
        host = socket.gethostname().partition(".")[0]
        (place / "slurm.conf").write_text(CONFIGURATION.format(place=place, ports=ports, host=host))
        (place / "key").write_bytes(os.urandom(64))
        (place / "key").chmod(0o400)
        for name in ("state", "spool"):
            (place / name).mkdir()
        patch = started.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("SLURM_CONF", str(place / "slurm.conf"))
        munge = [f"--{word}={place}/munge.{word}" for word in ("socket", "log-file", "pid-file", "seed-file")]
        for command in (
            ["munged", "--foreground", "--force", f"--key-file={place}/key", *munge],
            ["slurmctld", "-D", "-i"],
            ["slurmd", "-D"],
        ):
            with (place / f"{command[0]}.log").open("w") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log)
            started.callback(end, process)
        states = wait_for(lambda: "idle" in sinfo(), 60)
        assert states, "\n".join(file.read_text() for file in place.glob("*.log"))
        yield place


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def end(process):
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    process.kill()
    process.wait()


def sinfo():
    return subprocess.run(["sinfo", "--noheader", "--format=%t"], capture_output=True, text=True, check=False).stdout


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def queue():
    return subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_sweep_on_a_real_slurm_is_stopped_and_goes_on(node, small, run, outcome_of, undisturbed, tmp_path):
    store = Store(tmp_path / "sweep")
    with launcher("slurm", store, Resources(workers=2)) as crew:
        _, outcome = next(drive.sweep(small, store, crew))
        assert outcome.how == "done"
    assert wait_for(lambda: queue() == "", 30)
    assert set(run(small, store, "slurm", workers=1).values()) == {"kept", "done"}
    assert outcome_of(store) == undisturbed

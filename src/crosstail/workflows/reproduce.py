"""Reproduce a table or a figure of the paper: its plan, on each of its benchmarks, and one report."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from crosstail import discovery
from crosstail.progress import Progress, silent
from crosstail.training.spec import RunSpec
from crosstail.workflows._output import PLANS

QUICK: dict[str, Any] = {"steps": 4, "batch_size": 2, "evaluations": 1}
WRONG_SIZE = ("count", "release")  # findings that a quick run on a few images may have


class Job(NamedTuple):
    """One sweep: the name of its folder, what its runs share, and its methods, trials and seeds."""

    folder: str
    spec: RunSpec
    how: dict[str, Any]

    @property
    def data(self) -> str:
        return self.spec.dataset


@dataclass(frozen=True)
class Needs:
    """What a table takes on one benchmark."""

    data: str
    state: Literal["there", "incomplete", "missing"]
    problems: Sequence[str]
    """What is missing or wrong there; empty if the data are complete."""
    download: float
    """Bytes of its archives, as far as their sizes are known."""
    runs: int
    seconds: float
    """On one device."""
    size: float
    """Bytes of all runs."""
    full_passes: int
    """Forward passes for exact statistics, in all runs."""


@dataclass(frozen=True)
class Forecast:
    """What a table takes."""

    device: str
    per_image: Mapping[str, float]
    """Measured seconds of a forward and backward pass, by network."""
    needs: Sequence[Needs]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Reproduced:
    """A table that has been run."""

    page: Path
    failed: Sequence[str]
    """Sweeps with runs that failed, which the same command repeats."""


@cache
def tables() -> dict[str, dict[str, Any]]:
    """The tables and figures by name, each with its title."""
    return tomllib.loads((PLANS / "tables.toml").read_text(encoding="utf-8"))


def jobs(name: str, *, quick: bool = False, algorithm: Sequence[str] = (), **changes: Any) -> list[Job]:
    """The sweeps of a table; `algorithm` and other fields of a run replace those of its plan."""
    table = _table(name)
    plan = tomllib.loads((PLANS / f"{table['plan']}.toml").read_text(encoding="utf-8"))
    changes = {key: value for key, value in changes.items() if value is not None}
    changes |= ({"algorithm": list(algorithm)} if algorithm else {}) | (QUICK if quick else {})
    found, each = [], table.get("each", [{}])
    for data in table["data"]:
        for number, own in enumerate(each, 1):
            fields = plan | own | {"dataset": data} | changes | ({"trials": 1, "seeds": 1} if quick else {})
            how = {key: fields.pop(key, {}) for key in ("algorithm", "trials", "seeds", "hparams")}
            folder = data if len(each) == 1 else f"{data}-{number}"
            found.append(Job(folder, msgspec.convert(fields, RunSpec), how))
    return found


def problems(data: str, *, quick: bool = False) -> list[str]:
    """What a benchmark's folder lacks, by names and numbers; images are not read."""
    from crosstail.data.benchmarks._check_folder import check_folder
    from crosstail.data.benchmarks._image_folders import ENVIRONMENT, find_root

    if ENVIRONMENT not in os.environ:
        return [f"no folder given: use --data or set {ENVIRONMENT}; `crosstail data` shows how to get the benchmarks"]
    module = discovery.find("crosstail.data.benchmarks", data, "benchmark")
    folder = find_root(module.SHEET)
    if not folder.exists():
        return [f"{folder}: there is no such folder"]
    own = getattr(module, "check", None)
    report = own(folder) if own else check_folder(module.SHEET, folder, decode=False, duplicates=False)
    found = [finding for finding in report.problems if not (quick and finding.kind in WRONG_SIZE)]
    return [f"{folder}: {finding.message}" for finding in found]


def reproduce(
    name: str,
    *,
    out: Path,
    data: Path | None = None,
    quick: bool = False,
    algorithm: Sequence[str] = (),
    backbone: str | None = None,
    resolution: int | None = None,
    launcher: str = "local",
    workers: int | None = None,
    progress: Progress = silent,
    watch: Any = None,
) -> Reproduced:
    """Run a table or a figure of the paper: its plan on each of its benchmarks, and one report.

    The folders are checked first. A run that fails does not stop the others, and the same command repeats it.

    Args:
        name: A table or a figure, such as table2 or figure4.
        out: Folder of the sweeps and the report; running the same again resumes it.
        data: Folder with one folder per benchmark; default: $CROSSTAIL_DATA.
        quick: One trial, one seed and a few steps of small batches, to see that everything works.
        algorithm: Methods instead of the plan's.
        backbone: A network instead of the plan's.
        resolution: Image size in pixels instead of the network's.
        launcher: local: processes on this machine; inline: this process; ray or slurm: a cluster.
        workers: Runs at a time; default: one per GPU, or one per core.
        progress: Called while the data are loaded and the report is written.
        watch: Told every run and its outcome, as by `sweep`.
    """
    from crosstail.workflows.report import report
    from crosstail.workflows.sweep import sweep

    chosen = jobs(name, quick=quick, algorithm=algorithm, backbone=backbone, resolution=resolution)
    _use(data)
    wrong = [each for source in _data(chosen) for each in problems(source, quick=quick)]
    if wrong:
        more = f" (and {len(wrong) - 1:,} more; --dry-run lists them)" if len(wrong) > 1 else ""
        raise ValueError(f"{wrong[0]}{more}")
    failed, models = [], list[Path]()
    for job in chosen:
        how = {**job.how, "launcher": launcher, "workers": workers} | ({"watch": watch} if watch else {})
        swept = sweep(job.spec, out / job.folder, **how)
        if not swept.complete:
            failed.append(job.folder)
        finals = [keys[0] for choice in swept.chosen for keys in choice.finals()[:1]]
        places = [out / job.folder / "runs" / key for key in finals if _table(name).get("graphs")]
        models += [place for place in places if (place / "result.json").exists()]
    how = {"graphs": models, "published": True, "progress": progress}
    return Reproduced(report([out / job.folder for job in chosen], out=out / "report", **how).page, failed)


def forecast(
    name: str, *, data: Path | None = None, quick: bool = False, progress: Progress = silent, **changes: Any
) -> Forecast:
    """What a table takes: data, device hours from one measured step of each network, and disk; no data are needed."""
    from crosstail.data.benchmarks._image_folders import ENVIRONMENT, find_root
    from crosstail.data.benchmarks._load import sheet_of
    from crosstail.sweeps import plan as planning
    from crosstail.sweeps.without_data import Measured, measure, price
    from crosstail.training.devices import ONE

    _use(data)
    chosen, measured, found = jobs(name, quick=quick, **changes), dict[str, Measured](), list[Needs]()
    for done, source in enumerate(_data(chosen)):
        sheet = sheet_of(source)
        assert sheet is not None
        prices = []
        for job in (job for job in chosen if job.data == source):
            how = dict(job.how)
            plan = planning.make(job.spec, how.pop("algorithm"), domains=sheet.domains, **how)
            network = str(plan.shared.backbone)
            if network not in measured:
                progress(f"measuring a step of {network}", done, len(_data(chosen)))
                measured[network] = measure(plan.shared, sheet)
            prices += price(plan, sheet, measured[network])
        wrong = problems(source, quick=quick)
        exists = ENVIRONMENT in os.environ and find_root(sheet).exists()
        state: Any = "there" if not wrong else "incomplete" if exists else "missing"
        size = sum(archive.size or 0 for archive in sheet.archives if not archive.optional)
        runs, seconds, disk = (sum(getattr(one, key) for one in prices) for key in ("runs", "seconds", "size"))
        full = sum(one.runs * one.full_passes for one in prices)
        found.append(Needs(source, state, wrong, size, runs, seconds, disk, full))
    return Forecast(ONE.kind, {network: one.seconds for network, one in measured.items()}, found)


def _table(name: str) -> dict[str, Any]:
    if name not in tables():
        raise ValueError(f"unknown table {name!r}: {discovery.suggestion(name, list(tables()))}")
    table = tables()[name]
    return _table(table["same"]) if "same" in table else table


def _data(chosen: Sequence[Job]) -> list[str]:
    return list(dict.fromkeys(job.data for job in chosen))


def _use(data: Path | None) -> None:
    """Let this process, and those that it starts, find the benchmarks below a folder."""
    if data is not None:
        os.environ["CROSSTAIL_DATA"] = str(data.absolute())

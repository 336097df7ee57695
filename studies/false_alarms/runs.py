"""The runs of the study, and what is kept of each: which test samples it classifies correctly."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from studies.paper_claims.series import halved

from crosstail.storage import write_whole
from crosstail.sweeps.worker import inputs
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.resolve import resolve

RECORDS = Path(__file__).parent / "records"
REFERENCE, MANY, SOME = "erm", 60, 20
OTHERS = ("bsoftmax", "boda", "coral", "focal", "resample", "mixup", "group_dro", "erm:retrain")
OPPOSITE = ("forward:100", "backward:100")


@dataclass(frozen=True)
class Setting:
    """Data, and how all methods are trained on them."""

    name: str
    spec: RunSpec
    others: tuple[str, ...] = OTHERS
    many: int = MANY

    def runs(self) -> Iterator[tuple[str, int]]:
        """Methods and seeds: some of every method first, then more of the reference."""
        for seed in range(SOME):
            yield from ((method, seed) for method in (REFERENCE, *self.others))
        yield from ((REFERENCE, seed) for seed in range(SOME, self.many))


def settings(data: Path, made: Path) -> list[Setting]:
    """Features of tweets, features of digits, and digits from pixels, whose data are written to a folder."""
    small = made / "digits-mlt-16.npz"
    if not small.exists():
        arrays = dict(np.load(data / "digits-mlt.npz"))
        made.mkdir(parents=True, exist_ok=True)
        np.savez(small, **arrays | {"x": halved(arrays["x"])})
    crisis = RunSpec(dataset=str(data / "crisis.npz"), steps=1000, evaluations=5)
    frozen: dict[str, Any] = {"backbone": "efficientnet_lite0", "tune": "none"}
    pixels: dict[str, Any] = {"backbone": "small_cnn", "width": 16, "tune": "all", "augment": False, "batch_size": 24}
    return [
        Setting("crisis", crisis),
        Setting("digits-frozen", RunSpec(dataset="digits", steps=300, evaluations=5, **frozen)),
        Setting(
            "digits-pixels",
            RunSpec(
                dataset=str(small),
                labels=OPPOSITE,
                steps=1000,
                evaluations=5,
                **pixels,
            ),
        ),
    ]


@dataclass
class Records:
    """What is kept of the runs of a setting, one line of JSON each, after one on the test samples."""

    file: Path
    truth: dict[str, Any] = field(default_factory=dict)
    runs: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str) -> "Records":
        """The records of a setting so far."""
        file = RECORDS / f"{name}.jsonl"
        truth, *lines = map(json.loads, file.read_text().splitlines()) if file.exists() else [{}]
        return cls(file, truth, {(line["method"], line["seed"]): line for line in lines})

    def correct(self, method: str, seed: int) -> NDArray[np.bool_]:
        """Whether a run classifies each test sample correctly (N,)."""
        packed = np.frombuffer(base64.b85decode(self.runs[method, seed]["correct"]), np.uint8)
        return np.unpackbits(packed, count=len(self.samples("y"))).astype(bool)

    def samples(self, name: str) -> NDArray[np.int64]:
        """The class or the domain of each test sample (N,)."""
        return np.frombuffer(base64.b85decode(self.truth[name]), np.uint8).astype(np.int64)

    def add(self, method: str, seed: int, run: dict[str, Any]) -> None:
        """Keep a run."""
        self.runs[method, seed] = {"method": method, "seed": seed, **run}
        lines = [self.truth, *(self.runs[key] for key in sorted(self.runs))]
        write_whole(self.file, "".join(json.dumps(line) + "\n" for line in lines).encode())


def packed(values: NDArray[Any]) -> str:
    """Bits or small numbers as text."""
    return base64.b85encode(
        (np.packbits(values) if values.dtype == bool else values.astype(np.uint8)).tobytes()
    ).decode()


def resume(setting: Setting) -> None:
    """Do the runs that the records lack."""
    records, shared = Records.read(setting.name), inputs(resolve(setting.spec))
    for method, seed in setting.runs():
        if (method, seed) in records.runs:
            continue
        algorithm, _, second = method.partition(":")
        spec = replace(setting.spec, algorithm=algorithm, second_stage=second or None, seed=seed)
        with TemporaryDirectory() as folder:
            run = train_run(spec, Path(folder) / "run", inputs=shared, keep=False)
        assert run.test is not None
        if not records.truth:
            names = {"domains": list(run.test.domains), "classes": list(run.test.classes)}
            records.truth = names | {"y": packed(run.test.y), "domain": packed(run.test.domain)}
        validation = run.result.validation.pair_average
        records.add(method, seed, {"validation": validation, "correct": packed(run.test.correct)})
        print(setting.name, method, seed, f"{100 * (run.result.test.pair_average or 0):.1f}", flush=True)

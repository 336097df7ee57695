"""A run's folder: what is written, in which order, so that a kill at any moment loses nothing."""

import io
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.metrics._calibration import Calibration
from crosstail.storage import decode, naming, read_json, write_json, write_whole
from crosstail.training.data_facts import DataFacts
from crosstail.training.existing import no_run
from crosstail.training.result import Evaluation, RunResult
from crosstail.training.spec import RunSpec, differences

MODEL, RESULT = "model.pt", "result.json"
AGAIN = "run the `crosstail fit` command of this run again"  # whichever command has found the damage
INTEGERS = (torch.uint8, torch.int32, torch.int64)


class RunFolder:
    """`spec.json` and `data.json` first, `records.jsonl` and `checkpoint.pt` along the way, `result.json` last.

    Every file but the records is written beside its place and moved there, so readers see all of it or nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def holds(self, spec: RunSpec) -> bool:
        """Whether this run was started here; a folder that holds another run is refused."""
        if not (self.path / "spec.json").exists():
            return False
        found, wanted = self.spec().identity(), spec.identity()
        changed = [name for name, value in wanted.items() if found[name] != value]
        if changed:
            raise ValueError(
                f"{self.path} holds another run: its {differences(changed, found, wanted)}. Choose another --out, "
                f"or remove the folder"
            )
        return True

    def open(self, spec: RunSpec, facts: DataFacts) -> None:
        """Start or continue a run on these data; data that have changed since it was started are refused."""
        if not self.holds(spec):
            self.path.mkdir(parents=True, exist_ok=True)
            write_json(self.path / "spec.json", spec)
        self.check_data(facts)
        if not (self.path / "data.json").exists():
            write_json(self.path / "data.json", facts)

    def check_data(self, facts: DataFacts) -> None:
        """Refuse to continue or report a run whose data have changed: test samples may have been trained on."""
        before = self.data()
        if before is not None:
            before.check_unchanged(facts, self.spec().dataset, self.path)

    def spec(self) -> RunSpec:
        return self._read("spec.json", RunSpec)

    def data(self) -> DataFacts | None:
        """The data that the run was started on, or None before it was."""
        return self._read("data.json", DataFacts) if (self.path / "data.json").exists() else None

    def result(self) -> RunResult | None:
        return self._read(RESULT, RunResult) if (self.path / RESULT).exists() else None

    def finished_result(self) -> RunResult:
        return self._read(RESULT, RunResult)

    def weights(self) -> dict[str, Any]:
        state = self.load(MODEL)
        if state is None:
            raise ValueError(
                f"{self.path} has no {MODEL}: remove its result.json, if any, and run its `crosstail fit` command"
            )
        return state

    def calibrate(self, calibration: Calibration) -> None:
        write_json(self.path / "calibration.json", calibration)

    def calibration(self) -> Calibration | None:
        """How scores become probabilities; None for a run that was not calibrated."""
        if not (self.path / "calibration.json").exists():
            return None
        found: Calibration = self._read("calibration.json", Calibration)
        classes = len(self.finished_result().classes)
        if any(len(one.bias) != classes for one in found.corrections):
            raise self.damaged("calibration.json")
        return found

    def _read(self, name: str, kind: type[Any]) -> Any:
        try:
            return read_json(self.path / name, kind)
        except FileNotFoundError:
            raise ValueError(no_run(self.path)) from None
        except ValueError as error:
            raise ValueError(f"{error}. Remove the file and {AGAIN}") from None

    def save(self, name: str, state: dict[str, Any]) -> memoryview:
        """Write tensors and plain values whole or not at all; returns the content of the file."""
        # Into memory first: on a full disk torch.save's error does not mention the disk.
        content = io.BytesIO()
        torch.save(state, content)
        write_whole(self.path / name, content.getbuffer())
        return content.getbuffer()

    def load(self, name: str) -> dict[str, Any] | None:
        """What `save` wrote, without running any code in it; None if there is no such file."""
        file = self.path / name
        if not file.exists():
            return None
        try:
            with ZipFile(file) as archive:
                if archive.testzip() is not None:  # torch does not verify the checksums that it wrote
                    raise ValueError
            state: dict[str, Any] = torch.load(file, weights_only=True, map_location="cpu")
            if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
                raise ValueError
        except Exception:
            raise self.damaged(name) from None
        return state

    def vectors(
        self, name: str, required: Sequence[str], optional: Sequence[str] = ()
    ) -> dict[str, NDArray[Any]] | None:
        """The vectors of integers in a file that `save` wrote; None if there is no such file."""
        stored = self.load(name)
        if stored is None:
            return None
        whole = all(
            isinstance(v, Tensor) and v.layout == torch.strided and v.ndim == 1 and v.dtype in INTEGERS
            for v in stored.values()
        )
        if not whole or not set(required) <= stored.keys() <= {*required, *optional}:
            raise self.damaged(name)
        return {key: values.numpy() for key, values in stored.items()}

    def check_samples(
        self, name: str, classes: Sequence[NDArray[Any]], domains: NDArray[Any], width: int | None = None
    ) -> None:
        """Refuse a file whose samples are not of the domains and classes of the result, with `width` scores of each."""
        result = self.finished_result()
        of = [*((numbers, len(result.classes)) for numbers in classes), (domains, len(result.domains))]
        odd = any(len(n) != len(domains) or np.any((n < 0) | (n >= limit)) for n, limit in of)
        if odd or width not in (None, len(result.classes)):
            raise self.damaged(name)

    def damaged(self, name: str) -> ValueError:
        """Error that names the damaged file and what to do."""
        return ValueError(f"{self.path / name} is damaged. Remove it and run the same command again")

    def records(self) -> list[Evaluation]:
        """The evaluations so far; an incomplete last line does not count."""
        return list(self._records)

    @cached_property
    def _records(self) -> list[Evaluation]:
        file = self.path / "records.jsonl"
        found: list[Evaluation] = []
        for line in file.read_bytes().splitlines() if file.exists() else ():
            try:
                msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError):
                break  # cut short by a kill; what follows is repeated
            try:
                found.append(decode(line, Evaluation, f"{file}, line {len(found) + 1}"))
            except ValueError as error:
                raise ValueError(f"{error}. Remove the folder and {AGAIN}") from None
        return found

    def recorded(self) -> int:
        """Size of the records on disk in bytes, to see whether there are more."""
        file = self.path / "records.jsonl"
        return file.stat().st_size if file.exists() else 0

    def append_record(self, record: Evaluation) -> None:
        file, records = self.path / "records.jsonl", self._records
        with naming(file), file.open("ab") as stream:
            stream.write(msgspec.json.encode(record) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())  # a checkpoint must not outlive the records before it
        records.append(record)

    def keep_records(self, stage: int, step: int) -> None:
        """Drop the evaluations after the point from which the run continues."""
        self._records[:] = [r for r in self._records if (r.stage, r.step) <= (stage, step)]
        write_whole(self.path / "records.jsonl", b"".join(msgspec.json.encode(r) + b"\n" for r in self._records))

    def begin_after(self, other: "RunFolder") -> dict[str, Any]:
        """The first stage of a run, taken from another one that is nothing else: its evaluations, step and weights."""
        first = {"weights": other.weights(), "step": other.finished_result().selected_step}
        self._records[:] = other.records()
        self.keep_records(2, -1)
        self.save("stage_one.pt", first)
        return first

    def finish(self, result: RunResult) -> None:
        """Write the result, then remove what is no longer needed."""
        write_json(self.path / RESULT, result)
        self.clear()

    def clear(self) -> None:
        """Remove what a finished run no longer needs, and files that a kill left incomplete."""
        for file in (self.path / "checkpoint.pt", self.path / "stage_one.pt", *self.path.glob(".*.part.*")):
            file.unlink(missing_ok=True)

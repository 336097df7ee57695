"""A run's folder: what is written, in which order, so that a kill at any moment loses nothing."""

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch

from crosstail.training.spec import RunSpec


class RunFolder:
    """`spec.json` first, `records.jsonl` and `checkpoint.pt` along the way, `result.json` last.

    Every file but the records is written beside its place and moved there, so a reader sees all of it or nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def holds(self, spec: RunSpec) -> bool:
        """Whether this run was started here; a folder that holds another one is refused."""
        if not (self.path / "spec.json").exists():
            return False
        found = self.spec()
        if found != spec:
            changed = [k for k, v in spec.to_json().items() if found.to_json().get(k) != v]
            raise ValueError(
                f"{self.path} holds another run: its {', '.join(changed)} differs. Choose another --out, "
                f"or remove the folder"
            )
        return True

    def open(self, spec: RunSpec) -> None:
        """Start or continue this run."""
        if not self.holds(spec):
            self.path.mkdir(parents=True, exist_ok=True)
            self.write_json("spec.json", spec.to_json())

    def spec(self) -> RunSpec:
        """What this folder is a run of."""
        return RunSpec.from_json(self.read_json("spec.json"))

    def result(self) -> dict[str, Any] | None:
        """The result, or None while there is none."""
        return self.read_json("result.json") if (self.path / "result.json").exists() else None

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON file of this folder."""
        file = self.path / name
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(record, dict):
                raise ValueError
        except FileNotFoundError:
            raise ValueError(f"{self.path} is no run: it has no {name}") from None
        except ValueError:
            raise ValueError(f"{file} is damaged: it is not JSON. Remove it and run the same command again") from None
        return record

    def write_json(self, name: str, record: dict[str, Any]) -> None:
        """Write a JSON file whole or not at all."""
        self.write(name, (json.dumps(record, indent=1) + "\n").encode())

    def save(self, name: str, state: dict[str, Any]) -> None:
        """Write tensors and plain values whole or not at all."""
        # Into memory first: where a disk is full, torch.save speaks of positions and not of the disk.
        content = io.BytesIO()
        torch.save(state, content)
        self.write(name, content.getbuffer())

    def load(self, name: str) -> dict[str, Any] | None:
        """What `save` wrote, without running any code in it; None if there is no such file."""
        file = self.path / name
        if not file.exists():
            return None
        try:
            with ZipFile(file) as archive:
                if archive.testzip() is not None:  # torch does not look at the checksums that it wrote
                    raise ValueError
            state: dict[str, Any] = torch.load(file, weights_only=True, map_location="cpu")
        except Exception:
            raise ValueError(f"{file} is damaged. Remove it and run the same command again") from None
        return state

    def records(self) -> list[dict[str, Any]]:
        """The evaluations so far; a last line that a kill cut short does not count."""
        file = self.path / "records.jsonl"
        if not file.exists():
            return []
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        found = []
        for line in lines:
            try:
                found.append(json.loads(line))
            except ValueError:
                break
        return found

    def recorded(self) -> int:
        """How many bytes the records have, to see whether there are more."""
        file = self.path / "records.jsonl"
        return file.stat().st_size if file.exists() else 0

    def append_record(self, record: dict[str, Any]) -> None:
        """Add one evaluation."""
        file = self.path / "records.jsonl"
        with _named(file), file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            os.fsync(stream.fileno())  # a checkpoint must not outlive the records before it

    def keep_records(self, stage: int, step: int) -> None:
        """Drop the evaluations after a point from which the run goes on."""
        kept = [r for r in self.records() if (r["stage"], r["step"]) <= (stage, step)]
        self.write("records.jsonl", "".join(json.dumps(r) + "\n" for r in kept).encode())

    def clean(self) -> None:
        """Remove what a finished run needs no more, and what a kill left half written."""
        for file in (self.path / "checkpoint.pt", self.path / "stage_one.pt", *self.path.glob(".*.part")):
            file.unlink(missing_ok=True)

    def write(self, name: str, content: bytes | memoryview) -> None:
        """Write a file whole or not at all."""
        partial = self.path / f".{name}.{os.getpid()}.part"
        try:
            with _named(self.path / name), partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            partial.unlink(missing_ok=True)  # a full disk needs the room
            raise
        partial.replace(self.path / name)


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Say which file could not be written: a full disk is reported without it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None

"""A run: its folder, and all that is known of it."""

import hashlib
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from crosstail.algorithms import Algorithm
from crosstail.data import DomainDataset
from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration
from crosstail.training.folder import MODEL, RunFolder
from crosstail.training.held_out import HeldOut, load_predictions
from crosstail.training.model import load_data, load_model
from crosstail.training.result import Evaluation, RunResult
from crosstail.training.run_data import Inputs


class Run:
    """A finished run in its folder. Training hands over what is in memory; the rest is read when it is asked for."""

    def __init__(self, path: Path, **known: Any) -> None:
        self.path = path
        vars(self).update(known)  # a cached property that is there is not computed

    @cached_property
    def folder(self) -> RunFolder:
        """Its files."""
        return RunFolder(self.path)

    def knowing(self, **known: Any) -> "Run":
        """The same run with more that is known of it."""
        return Run(**vars(self) | known)

    @cached_property
    def result(self) -> RunResult:
        """The content of result.json."""
        return self.folder.finished_result()

    @cached_property
    def records(self) -> list[Evaluation]:
        """The evaluations during training."""
        return self.folder.records()

    @cached_property
    def test(self) -> Answers | None:
        """Every test sample with its predicted class; None if they are not stored."""
        return load_predictions(self.folder, self.result)

    @cached_property
    def held_out(self) -> HeldOut | None:
        """Validation and test samples with their log probabilities; None if these are not kept."""
        return HeldOut.load(self.folder, self.result)

    @cached_property
    def calibration(self) -> Calibration | None:
        """How scores become probabilities; None for a run that was not calibrated."""
        return self.folder.calibration()

    @cached_property
    def checksum(self) -> str | None:
        """SHA-256 of model.pt; None if the model is not there."""
        with suppress(FileNotFoundError), (self.path / MODEL).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        return None

    @cached_property
    def inputs(self) -> Inputs | None:
        """The data; None if they are gone or have changed since."""
        with suppress(OSError, ValueError):
            found = load_data(self.folder)
            if found.samples.checksum == self.result.data.checksum:
                return found
        return None

    @property
    def dataset(self) -> DomainDataset | None:
        """The data as loaded and split, before any embedding; None if they are gone or have changed since."""
        return self.inputs.samples if self.inputs else None

    def model(self, trust: bool = False) -> Algorithm:
        """The trained model, for inputs as a frozen backbone embeds them; `trust` allows running code of the run."""
        if self.inputs is None:
            raise ValueError(f"{self.path}: its data are gone or have changed, and the model is for inputs like those")
        return load_model(self.folder, self.inputs.embedded(), trust)

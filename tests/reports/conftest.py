"""Hand-made runs, in memory and in folders; and every chart that a test makes is valid Vega-Lite."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from jsonschema import Draft7Validator

from crosstail.metrics import Answers, PairAccuracy
from crosstail.reports.vega_lite import Drawing
from crosstail.storage import write_json
from crosstail.training import RunSpec
from crosstail.training.data_facts import DataFacts
from crosstail.training.result import Evaluation, KnownDomain, RunResult, SplitAccuracy, Transferability
from crosstail.training.run import Run

COUNTS = [[150, 40], [7, 0]]
TOTALS = [[10, 10], [10, 10]]
SPEC = {"algorithm": "erm", "backbone": "small_cnn", "tune": "all", "augment": False, "steps": 10, "batch_size": 24}


@pytest.fixture(scope="session", autouse=True)
def valid_charts() -> Iterator[None]:
    """Compare every specification with the schema of Vega-Lite, which Altair contains."""
    schema = files("altair.vegalite.v6.schema") / "vega-lite-schema.json"
    validator, made = Draft7Validator(json.loads(schema.read_text(encoding="utf-8"))), Drawing.to_dict

    def checked(drawing: Drawing) -> dict[str, Any]:
        found = made(drawing)
        validator.validate(found | {"datasets": {}})  # a table of JSON values is always valid
        json.dumps(found, allow_nan=False)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Drawing, "to_dict", checked)
        yield


@pytest.fixture(scope="session")
def make_result() -> Callable[..., RunResult]:
    """A result with these hits of the tested samples per pair, and `known` with the domain known; the rest is spec."""

    def make(
        hits: Any,
        *,
        totals: Any = TOTALS,
        squares: Any = None,
        counts: Any = COUNTS,
        alpha: float | None = 2.0,
        known: Any = None,
        **spec: Any,
    ) -> RunResult:
        counts = np.asarray(counts)
        tables = hits, totals, *[squares] * (squares is not None)
        accuracy = SplitAccuracy.of(PairAccuracy(*map(np.asarray, tables)), counts)
        told = SplitAccuracy.of(PairAccuracy(*map(np.asarray, (known, totals))), counts) if known else None
        return RunResult(
            spec=RunSpec(**{"dataset": "photos", **SPEC, **spec}),
            versions={"crosstail": "0.0.7", "torch": "2.0"},
            hparams={"lr": 0.01, "weight_decay": 0.0},
            selected_step=5,
            selected_steps=[5],
            seconds=1.5,
            domains=[f"d{d}" for d in range(len(counts))],
            classes=[f"c{c}" for c in range(counts.shape[1])],
            counts=counts.tolist(),
            validation=accuracy,
            test=accuracy,
            known=KnownDomain(validation=told, test=told) if told else None,
            transferability=Transferability(alpha=alpha, beta=3.0, gamma=4.0),
            input_shape=[4],
            weights=None,
            data=DataFacts(checksum="a" * 64, samples=80, notes=[]),
        )

    return make


@pytest.fixture
def finished(make_result: Callable[..., RunResult], tmp_path: Path) -> Callable[..., Run]:
    """A finished run in memory, without data."""

    def make(hits: Any, **spec: Any) -> Run:
        result = make_result(hits, **spec)
        told = {name: values.numpy() for name, values in predictions(result).items()}
        known = told.pop("known", None)
        test = Answers(**result.answered, **told)
        if known is not None:
            test = replace(test, informed=replace(test, predicted=known))
        return Run(tmp_path, result=result, records=evaluations(result), test=test, inputs=None)

    return make


@pytest.fixture
def make_run(make_run_in: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """Write a finished run with these hits of ten tested per pair."""
    return partial(make_run_in, tmp_path)


@pytest.fixture(scope="session")
def make_run_in(make_result: Callable[..., RunResult]) -> Callable[..., Path]:
    """The same in any folder."""

    def make(root: Path, place: str, hits: Any, **spec: Any) -> Path:
        folder = root / place
        folder.mkdir(parents=True)
        result = make_result(hits, **spec)
        write_json(folder / "spec.json", result.spec)
        write_json(folder / "result.json", result)
        lines = (msgspec.json.encode(record) + b"\n" for record in evaluations(result))
        (folder / "records.jsonl").write_bytes(b"".join(lines))
        torch.save(predictions(result), folder / "predictions.pt")
        return folder

    return make


def evaluations(result: RunResult) -> list[Evaluation]:
    """Three with the accuracies of the result."""
    accuracies = {"validation": result.validation, "test": result.test}
    losses = {0: {}, 5: {"cross_entropy": 0.2}, 10: {"cross_entropy": 0.1}}
    return [Evaluation(stage=1, step=step, seconds=0.1, losses=terms, **accuracies) for step, terms in losses.items()]


def predictions(result: RunResult) -> dict[str, torch.Tensor]:
    """The first `hits` of each pair are right, also with the domain known; a wrong answer is the next class."""
    known = [] if result.known is None else [result.known.test.pairs()]
    parts, totals = [result.test.pairs(), *known], result.test.pairs().totals
    rows = [
        (c, d, *(c if i < part.hits[d, c] else (c + 1) % len(result.classes) for part in parts))
        for d, c in np.ndindex(totals.shape)
        for i in range(totals[d, c])
    ]
    columns = torch.tensor(rows, dtype=torch.int64).reshape(-1, 2 + len(parts)).T
    return dict(zip(("y", "domain", "predicted", "known"), columns, strict=False))

"""Export a run's model, from inputs to probabilities, as one file that works without Crosstail."""

import copy
import importlib.util
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from crosstail import __version__
from crosstail.data import DomainDataset
from crosstail.data.images.files import Samples
from crosstail.metrics._link import probabilities
from crosstail.prediction.critical import Alarms
from crosstail.prediction.decision import Decided, Decision, decide
from crosstail.prediction.familiar import Familiar
from crosstail.prediction.predictor import UNKNOWN, Predictor
from crosstail.prediction.sets import Per, require_coverage
from crosstail.progress import Progress
from crosstail.storage import naming, replacing, write_json

TOLERANCE = 1e-4
SUFFIXES = {"onnx": ".onnx", "torch": ".pt2"}
BATCH = 16  # inputs compared at a time: an exported network holds the activations of many layers at once
MOST = 1000  # training samples that are compared where there are no test samples
Given = dict[str, NDArray[Any]]
"""Inputs (N, ...) and sites (N,) by name."""
Function = Callable[[Given], list[NDArray[Any]]]
"""From what is given to what `_Whole.outputs` names."""


class Differs(Exception):
    """An exported file and its run predict different things."""


@dataclass(frozen=True)
class Check:
    """Comparison of the exported file with the run."""

    inputs: str
    samples: int
    largest_difference: float
    notes: Sequence[str] = ()
    """On sites and thresholds, as `predict` has them."""


class _Whole(nn.Module):
    """From inputs and sites, if these are not fixed, to all that `predict` answers: a `Decision` as a network."""

    sharpness: Tensor  # (D + 1, 1)
    bias: Tensor | None  # (C,)
    shares: Tensor | None  # (D + 1, C), as the next ones, which are thresholds
    least: Tensor | None
    alarm: Tensor | None
    limits: Tensor | None  # (D + 1,)

    def __init__(self, predictor: Predictor, decision: Decision, familiar: Familiar | None, site: int | None) -> None:
        super().__init__()
        self.scaled = predictor.kind.scaled
        self.embedder = copy.deepcopy(predictor.embedder.backbone).cpu() if predictor.embedder else nn.Identity()
        self.algorithm, self.site, self.last = predictor.algorithm, site, len(decision.domains)
        sharpness = decision.calibration.sharpness_of(decision.domains)[:, None]
        tables: dict[str, Any] = {"sharpness": sharpness, "bias": None, "shares": None, "least": None, "alarm": None}
        if decision.shares is not None and (given := decision.correction) is not None:
            tables |= {"sharpness": np.full_like(sharpness, given.sharpness), "bias": given.bias}
            tables |= {"shares": decision.shares}
        tables["limits"] = None if familiar is None else familiar.limits
        if decision.sets is not None:
            tables["least"] = decision.sets.least
        if decision.alarms is not None:
            tables["alarm"] = np.full((self.last + 1, len(predictor.classes)), np.inf)
            tables["alarm"][:, decision.alarms.classes] = decision.alarms.least
        for name, table in tables.items():
            if table is None:
                setattr(self, name, None)
            else:
                self.register_buffer(name, torch.tensor(table, dtype=torch.float32))

    def forward(self, x: Tensor, site: Tensor | None = None) -> tuple[Tensor, ...]:
        """Images (N, H, W, 3) in uint8 or vectors (N, F) in float32 → what `outputs` names."""
        if site is None:
            site = torch.full(x.shape[:1], UNKNOWN if self.site is None else self.site)
        z = self.algorithm.embed(self.embedder(self.scaled(x)))
        scores = self._told(self.algorithm.scores, z, site)
        row = torch.where(site < 0, self.last, site)
        scores = scores * self.sharpness[row]
        p = probabilities(scores if self.bias is None else scores + self.bias)
        if self.shares is not None:
            p = p * self.shares[row]
            p = p / p.sum(1, keepdim=True).clamp(min=torch.finfo(p.dtype).tiny)
        found, look = [p], torch.zeros_like(p[:, 0], dtype=torch.bool)
        alarms = None if self.alarm is None else self._possible(p >= self.alarm[row], row)
        if self.least is not None:
            best = F.one_hot(p.argmax(1), p.shape[1]).bool()
            members = self._possible((p >= self.least[row]) | best, row)
            found.append(members if alarms is None else members | alarms)
            look = found[-1].sum(1) != 1
        if alarms is not None:
            found.append(alarms)
            look = look | alarms.any(1)
        found += [look] * (len(found) > 1)
        if self.limits is not None:
            found.append(self._told(self.algorithm.distance_to_training, z, site) > self.limits[row])
        return tuple(found)

    def _told(self, of: Callable[[Tensor, Tensor | None], Any], z: Tensor, site: Tensor) -> Tensor:
        """Scores (N, C) or distances (N,) of features, with the site where it is known."""
        if self.site is not None:
            return of(z, None if self.site == UNKNOWN else site)
        known, unknown = of(z, site.clamp(min=0)), of(z, None)
        return torch.where((site < 0).view(-1, *[1] * (known.ndim - 1)), unknown, known)

    def _possible(self, found: Tensor, row: Tensor) -> Tensor:
        return found if self.shares is None else found & (self.shares[row] > 0)

    @property
    def outputs(self) -> list[str]:
        """Probabilities, members of sets and alarms (N, C), whether a person should look (N,), unknown objects (N,)."""
        named = {"set": self.least, "alarm": self.alarm}
        more = [name for name, table in named.items() if table is not None]
        return ["probabilities", *more, *["review"] * bool(more), *["unlike_training"] * (self.limits is not None)]


def export(
    run: Path,
    out: Path,
    format: str,
    *,
    dataset: DomainDataset | None = None,
    site: str | None = None,
    prior: str | None = None,
    coverage: float | None = None,
    per: Per = "pair",
    trust: bool = False,
    progress: Progress | None = None,
) -> Check:
    """Write the model of a run to `out` and its card to `out`.json, if the file predicts the same as the run.

    With a `site`, the file predicts for that domain; without one, it takes the site of each input. The two are compared
    on the test samples of `dataset`, on some training samples if it has none, or on random inputs without a data set.
    """
    if format not in WRITERS:
        raise ValueError(f"unknown format {format!r}: there are {', '.join(WRITERS)}")
    if format == "onnx" and not has_onnx():
        raise ValueError("--format onnx needs extra packages: pip install 'crosstail[export]'")
    if coverage is not None:
        require_coverage(coverage)
    if prior == "estimate":
        raise ValueError("--prior estimate needs inputs to estimate from: export with another --prior, such as train")
    _require_apart(run, out)
    if out.suffix.lower() != SUFFIXES[format]:
        known = ", ".join(f"{suffix} for --format {name}" for name, suffix in SUFFIXES.items())
        raise ValueError(f"--out {out}: the suffix is {out.suffix or 'missing'!r}, expected {known}")
    predictor = Predictor(run, trust=trust)
    domain = predictor.site(site)
    if site is not None and domain == UNKNOWN:
        raise ValueError(f"--site: {predictor.site_note(site)}")
    sites = np.array([domain] if site else [*predictor.sites.values(), UNKNOWN])
    nothing = np.empty((0, len(predictor.classes)), np.float32)
    decision = decide(predictor, nothing, sites, prior=prior, coverage=coverage, per=per)
    familiar = Familiar.of(predictor)
    whole = (
        _Whole(predictor, decision, familiar, domain if site else None).eval().to(memory_format=torch.contiguous_format)
    )
    example = given(predictor, _random_inputs(predictor, 2), None if site else sites)
    tensors = [torch.from_numpy(value) for value in example.values()]
    _drop_unused(whole, _traced(whole, tensors))
    program, about = _traced(whole, tensors), _about(predictor, decision, site, whole.outputs)
    write, read = WRITERS[format]
    with replacing(out) as partial:
        with naming(out), _without_warnings():
            write(program, about, partial)
        check = _compare(predictor, decision, whole, sites, read(partial), dataset, progress)
    check = replace(check, notes=[*filter(None, [predictor.site_note(site)]), *decision.notes])
    write_json(out.with_name(f"{out.name}.json"), _card(predictor, about, format, check))
    return check


def given(predictor: Predictor, x: NDArray[Any], sites: NDArray[np.int64] | None = None) -> Given:
    """What a file takes: inputs and, unless the site is fixed in it, their sites, of which there may be fewer."""
    return {"x": x} if sites is None else {"x": x, "site": np.resize(sites, len(x)).astype(np.int64)}


def example_of(run: Path, number: int, trust: bool = False) -> Given:
    """Random inputs, of unknown site, for a file without a fixed one."""
    return given(predictor := Predictor(run, trust=trust), _random_inputs(predictor, number), np.array([UNKNOWN]))


def has_onnx() -> bool:
    """Whether the packages of the extra `export` are installed."""
    return all(map(importlib.util.find_spec, ("onnx", "onnxscript", "onnxruntime")))


def suggested_suffix() -> str:
    """Of a file for other programs: ONNX where this installation can write it."""
    return SUFFIXES["onnx" if has_onnx() else "torch"]


def _require_apart(run: Path, out: Path) -> None:
    """Refuse to overwrite a file of the run; an earlier export, which has its card beside it, may be replaced."""
    written = [out, out.with_name(f"{out.name}.json"), out.with_name(f"{out.name}.md")]
    if out.exists() and written[1].exists():
        return
    for file in written:
        if file.exists() and file.resolve().is_relative_to(run.resolve()):
            raise ValueError(f"--out {out}: would overwrite {file}, which belongs to the run: choose another --out")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Writing prints what the optimiser leaves as it is; what counts is that the file predicts the same as the run."""
    loggers = [logging.getLogger(name) for name in ("onnxscript", "torch.onnx")]
    before = [logger.level for logger in loggers]
    try:
        with warnings.catch_warnings(action="ignore"):
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _traced(whole: nn.Module, example: list[Tensor]) -> ExportedProgram:
    batch = Dim("batch")
    return torch.export.export(whole, tuple(example), dynamic_shapes=tuple({0: batch} for _ in example))


def _drop_unused(whole: nn.Module, program: ExportedProgram) -> None:
    """Remove tensors that only training uses, such as a discriminator or statistics of the training data."""
    signature = program.graph_signature
    tensors = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    for node in program.graph.nodes:
        if node.name in tensors and not node.users:
            owner, _, name = tensors[node.name].rpartition(".")
            delattr(whole.get_submodule(owner), name)


def _write_onnx(program: ExportedProgram, about: dict[str, Any], file: Path) -> None:
    inputs, outputs = ["x", "site"][: len(program.graph_signature.user_inputs)], about["outputs"]
    names: dict[str, Any] = {"input_names": inputs, "output_names": outputs}
    made = torch.onnx.export(
        program, **names, dynamic_shapes=tuple({0: "batch"} for _ in inputs), dynamo=True, verbose=False
    )
    assert made is not None
    made.model.metadata_props["crosstail"] = json.dumps(about)
    made.save(file, external_data=False)


def _read_onnx(file: Path) -> Function:
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return lambda given: session.run(None, given)


def _write_torch(program: ExportedProgram, about: dict[str, Any], file: Path) -> None:
    content = io.BytesIO()  # on a full disk, the error of torch.export.save does not mention the disk
    torch.export.save(program, content, extra_files={"crosstail.json": json.dumps(about)})
    file.write_bytes(content.getbuffer())


def _read_torch(file: Path) -> Function:
    model = torch.export.load(file).module()

    @torch.no_grad()  # else the activations of a whole batch stay in memory
    def said(given: Given) -> list[NDArray[Any]]:
        return [value.numpy() for value in model(*map(torch.from_numpy, given.values()))]

    return said


Writer = Callable[[ExportedProgram, dict[str, Any], Path], None]
WRITERS: dict[str, tuple[Writer, Callable[[Path], Function]]] = {
    "onnx": (_write_onnx, _read_onnx),
    "torch": (_write_torch, _read_torch),
}


def _random_inputs(predictor: Predictor, number: int) -> NDArray[Any]:
    return predictor.kind.example(np.random.default_rng(0), (number, *predictor.input_shape))


def _compare(
    predictor: Predictor,
    decision: Decision,
    whole: _Whole,
    sites: NDArray[np.int64],
    said: Function,
    dataset: DomainDataset | None,
    progress: Progress | None,
) -> Check:
    """Require the same class for every sample, the same probabilities up to TOLERANCE, and the same sets and alarms.

    A probability that is so close to a threshold may be on either side of it.
    """
    inputs: Samples
    what, inputs = "random inputs", _random_inputs(predictor, 4 * BATCH + 1)
    if dataset is not None:
        rows, of = dataset.rows("test"), "test"
        if not len(rows):  # a model that was trained on every sample
            rows, of = dataset.rows("train")[:: 1 + len(dataset) // MOST], "training"
        what, inputs = f"the {of} samples of {dataset.name}", predictor.inputs(dataset.keep(rows))
        if whole.site is None:
            sites = np.array([predictor.site(name) for name in dataset.domains])[dataset.domain[rows]]
    largest, number = 0.0, len(inputs)
    sites = np.resize(sites, number)
    for start in range(0, number, BATCH):
        some = np.arange(start, min(start + BATCH, number))
        x, site = np.ascontiguousarray(inputs[some]), sites[some]
        z = predictor.features(x)
        (one,) = decision.chunks(predictor.scored(z, site), site)
        theirs = dict(
            zip(whole.outputs, said(given(predictor, x, None if whole.site is not None else site)), strict=True)
        )
        difference = float(np.abs(one.probabilities - theirs["probabilities"]).max())
        largest = max(largest, difference)
        same = difference <= TOLERANCE and (one.probabilities.argmax(1) == theirs["probabilities"].argmax(1)).all()
        if whole.limits is not None:
            far, limit = predictor.distances(z, site), whole.limits.numpy()[site]
            same &= bool((((far > limit) == theirs["unlike_training"]) | (np.abs(far / limit - 1) <= TOLERANCE)).all())
        if not same or not _same_flags(one, theirs, whole, decision.alarms, site):
            how = f"by {largest:.2g} in a probability, or in a class, a set or an alarm"
            raise Differs(f"the exported model differs from the run on {what}: {how}")
        if progress:
            progress("comparing", int(some[-1]) + 1, number)
    return Check(what, number, largest)


def _same_flags(one: Decided, theirs: Given, whole: _Whole, given: Alarms | None, site: NDArray[np.int64]) -> bool:
    close = np.zeros(one.probabilities.shape, bool)
    for table in (whole.least, whole.alarm):
        if table is not None:
            close |= np.abs(one.probabilities - table.numpy()[site]) <= TOLERANCE
    alarms = None
    if given is not None:
        alarms = np.zeros_like(close)
        alarms[:, given.classes] = one.alarms
    ours = {"set": (one.members, close), "alarm": (alarms, close), "review": (one.review, close.any(1))}
    return all(found is None or ((found == theirs[name]) | near).all() for name, (found, near) in ours.items())


def _about(predictor: Predictor, decision: Decision, site: str | None, outputs: list[str]) -> dict[str, Any]:
    """What the file carries: names in the order of its numbers, and what has become of its numbers."""
    names, at = [*predictor.run.result.domains, "unknown"], list(predictor.run.result.domains)
    alarms, sharpness = decision.alarms, decision.calibration.sharpness_of(at)
    if decision.correction is not None:
        sharpness = np.full_like(sharpness, decision.correction.sharpness)
    recalls = (
        {}
        if alarms is None
        else dict(zip(alarms.classes.tolist(), zip(alarms.recall.tolist(), alarms.least.T, strict=True), strict=True))
    )
    return {
        "classes": list(predictor.classes),
        "site": site,
        "sites": at,
        "outputs": outputs,
        "temperature": dict(zip(names, (1 / sharpness).tolist(), strict=True)),
        "shares": None if decision.shares is None else dict(zip(names, decision.shares.tolist(), strict=True)),
        "coverage": None if decision.sets is None else decision.sets.coverage,
        "alarms": {
            predictor.classes[c]: {"recall": recall, "from": dict(zip(names, least.tolist(), strict=True))}
            for c, (recall, least) in recalls.items()
        },
    }


def _card(predictor: Predictor, about: dict[str, Any], format: str, check: Check) -> dict[str, Any]:
    """What a user of the file should know: its input and output, training data, and accuracy."""
    result = predictor.run.result
    x, how = _random_inputs(predictor, 1), predictor.kind.prepared(predictor.input_shape)
    site = "int64 (batch): the number of the site in `sites`, −1 where it is unknown"
    return {
        "format": format,
        "input": {"name": "x", "type": str(x.dtype), "shape": ["batch", *x.shape[1:]], "how": how},
        **({} if about["site"] else {"input_site": {"name": "site", "how": site}}),
        "output": {"name": "probabilities", "type": "float32", "shape": ["batch", len(predictor.classes)]},
        **about,
        "compared": asdict(check),
        "trained": {"domains": result.domains, "counts": result.counts, "spec": result.spec},
        "estimate" if result.estimate else "test": result.estimate or result.test,
        **({"known": result.known} if result.known else {}),
        "crosstail": __version__,
    }

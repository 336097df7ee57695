"""Export a run's model, from inputs to probabilities, as one file that works without Crosstail."""

import copy
import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from crosstail import __version__
from crosstail.data import DomainDataset
from crosstail.data.images.files import Samples
from crosstail.metrics._link import probabilities, training_shares
from crosstail.prediction.predictor import UNKNOWN, Predictor
from crosstail.progress import Progress
from crosstail.storage import naming, replacing, write_json

TOLERANCE = 1e-4
SUFFIXES = {"onnx": ".onnx", "torch": ".pt2"}
BATCH = 16  # inputs compared at a time: an exported network holds the activations of many layers at once
MOST = 1000  # training samples that are compared where there are no test samples
Function = Callable[[NDArray[Any]], NDArray[np.float32]]
"""From inputs (N, ...) to probabilities (N, C)."""


class Differs(Exception):
    """An exported file and its run predict different things."""


@dataclass(frozen=True)
class Check:
    """Comparison of the exported file with the run."""

    inputs: str
    samples: int
    largest_difference: float


class _Whole(nn.Module):
    """Scaling, the frozen backbone if there is one, the trained model for one or an unknown site, and the softmax."""

    def __init__(self, predictor: Predictor, site: int) -> None:
        super().__init__()
        self.scaled = predictor.kind.scaled
        self.embedder = copy.deepcopy(predictor.embedder.backbone).cpu() if predictor.embedder else nn.Identity()
        self.algorithm, self.site = predictor.algorithm, site
        self.sharpness = float(predictor.calibration.sharpness_of(predictor.run.result.domains)[site])

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, H, W, 3) in uint8 or vectors (N, F) in float32 → (N, C)."""
        domain = None if self.site == UNKNOWN else torch.full(x.shape[:1], self.site)
        return probabilities(self.sharpness * self.algorithm(self.embedder(self.scaled(x)), domain))


def export(
    run: Path,
    out: Path,
    format: str,
    *,
    dataset: DomainDataset | None = None,
    site: str | None = None,
    trust: bool = False,
    progress: Progress | None = None,
) -> Check:
    """Write the model of a run to `out` and its card to `out`.json, if the file predicts the same as the run.

    With a `site`, the file predicts for that domain; without one, the domain is unknown. The two are compared on the
    test samples of `dataset`, on some training samples if it has none, or on random inputs without a data set.
    """
    if format not in WRITERS:
        raise ValueError(f"unknown format {format!r}: there are {', '.join(WRITERS)}")
    if format == "onnx" and not has_onnx():
        raise ValueError("--format onnx needs extra packages: pip install 'crosstail[export]'")
    _require_apart(run, out)
    if out.suffix.lower() != SUFFIXES[format]:
        known = ", ".join(f"{suffix} for --format {name}" for name, suffix in SUFFIXES.items())
        raise ValueError(f"--out {out}: the suffix is {out.suffix or 'missing'!r}, expected {known}")
    predictor = Predictor(run, trust=trust)
    domain = predictor.site(site)
    if site is not None and domain == UNKNOWN:
        raise ValueError(f"--site: {predictor.site_note(site)}")
    whole = _Whole(predictor, domain).eval().to(memory_format=torch.contiguous_format)
    example = torch.from_numpy(_random_inputs(predictor, 2))
    _drop_unused(whole, _traced(whole, example))
    program = _traced(whole, example)
    write, read = WRITERS[format]
    with replacing(out) as partial:
        with naming(out), _without_warnings():
            write(program, partial)
        check = _compare(predictor, domain, read(partial), dataset, progress)
    write_json(out.with_name(f"{out.name}.json"), _card(predictor, site, format, check))
    return check


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


def _traced(whole: nn.Module, example: Tensor) -> ExportedProgram:
    return torch.export.export(whole, (example,), dynamic_shapes=({0: Dim("batch")},))


def _drop_unused(whole: nn.Module, program: ExportedProgram) -> None:
    """Remove tensors that only training uses, such as a discriminator or statistics of the training data."""
    signature = program.graph_signature
    tensors = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    for node in program.graph.nodes:
        if node.name in tensors and not node.users:
            owner, _, name = tensors[node.name].rpartition(".")
            delattr(whole.get_submodule(owner), name)


def _write_onnx(program: ExportedProgram, file: Path) -> None:
    names: dict[str, Any] = {"input_names": ["x"], "output_names": ["probabilities"], "dynamic_shapes": ({0: "batch"},)}
    made = torch.onnx.export(program, **names, dynamo=True, verbose=False)
    assert made is not None
    made.save(file, external_data=False)


def _read_onnx(file: Path) -> Function:
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return lambda x: session.run(["probabilities"], {"x": x})[0]


def _write_torch(program: ExportedProgram, file: Path) -> None:
    content = io.BytesIO()  # on a full disk, the error of torch.export.save does not mention the disk
    torch.export.save(program, content)
    file.write_bytes(content.getbuffer())


def _read_torch(file: Path) -> Function:
    model = torch.export.load(file).module()

    @torch.no_grad()  # else the activations of a whole batch stay in memory
    def said(x: NDArray[Any]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = model(torch.from_numpy(x)).numpy()
        return found

    return said


WRITERS: dict[str, tuple[Callable[[ExportedProgram, Path], None], Callable[[Path], Function]]] = {
    "onnx": (_write_onnx, _read_onnx),
    "torch": (_write_torch, _read_torch),
}


def _random_inputs(predictor: Predictor, number: int) -> NDArray[Any]:
    return predictor.kind.example(np.random.default_rng(0), (number, *predictor.input_shape))


def _compare(
    predictor: Predictor, site: int, said: Function, dataset: DomainDataset | None, progress: Progress | None
) -> Check:
    """Require the same class for every sample, and the same probabilities up to TOLERANCE."""
    inputs: Samples
    what, inputs = "random inputs", _random_inputs(predictor, 4 * BATCH + 1)
    if dataset is not None:
        rows, of = dataset.rows("test"), "test"
        if not len(rows):  # a model that was trained on every sample
            rows, of = dataset.rows("train")[:: 1 + len(dataset) // MOST], "training"
        what, inputs = f"the {of} samples of {dataset.name}", predictor.inputs(dataset.keep(rows))
    largest, number = 0.0, len(inputs)
    for start in range(0, number, BATCH):
        x = np.ascontiguousarray(inputs[np.arange(start, min(start + BATCH, number))])
        ours, theirs = predictor.probabilities(x, site), said(x)
        largest = max(largest, float(np.abs(ours - theirs).max()))
        if not largest <= TOLERANCE or (ours.argmax(1) != theirs.argmax(1)).any():
            how = f"by {largest:.2g} in a probability, or in a class"
            raise Differs(f"the exported model differs from the run on {what}: {how}")
        if progress:
            progress("comparing", min(start + BATCH, number), number)
    return Check(what, number, largest)


def _as_they_come(predictor: Predictor, site: str | None) -> dict[str, Any]:
    """How probabilities of the file become those for classes as frequent as given, as in `predict --prior`."""
    given, names = predictor.calibration, predictor.run.result.domains
    sharpness = float(given.sharpness_of(names)[predictor.site(site)])
    shares = training_shares(np.array(predictor.run.result.counts))
    return {
        "how": "normalise probabilities ** power * factors * shares, where shares say how frequent each class is",
        "power": given.prevalence.sharpness / sharpness,
        "factors": np.exp(given.prevalence.bias).tolist(),
        "training_shares": {name: shares[d].tolist() for name, d in predictor.sites.items() if site in (None, name)},
    }


def _card(predictor: Predictor, site: str | None, format: str, check: Check) -> dict[str, Any]:
    """What a user of the file should know: its input and output, training data, and accuracy."""
    result = predictor.run.result
    x, how = _random_inputs(predictor, 1), predictor.kind.prepared(predictor.input_shape)
    return {
        "format": format,
        "input": {"name": "x", "type": str(x.dtype), "shape": ["batch", *x.shape[1:]], "how": how},
        "output": {"name": "probabilities", "type": "float32", "shape": ["batch", len(predictor.classes)]},
        "classes": list(predictor.classes),
        "site": site if predictor.algorithm.uses_domain else None,
        "as_they_come": _as_they_come(predictor, site),
        "compared": asdict(check),
        "trained": {"domains": result.domains, "counts": result.counts, "spec": result.spec},
        "estimate" if result.estimate else "test": result.estimate or result.test,
        **({"known": result.known} if result.known else {}),
        "crosstail": __version__,
    }

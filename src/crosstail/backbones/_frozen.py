"""Run a frozen backbone the fastest way on this machine: on an accelerator, in ONNX Runtime, or in PyTorch."""

import hashlib
import logging
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crosstail.backbones import Backbone
from crosstail.backbones._feature_store import Features
from crosstail.cache import cache_folder, write_atomically

WORTH = 500  # images; embedding them in PyTorch takes as long as the export to ONNX, done once per backbone
TOLERANCE = 1e-3


class FrozenNetwork:
    """A backbone in evaluation mode, from inputs (B, ...) to features (B, F), or to all of several `outputs`.

    On a CPU it runs in ONNX Runtime (the extra `[export]`) if the exported network is in the cache, or once enough
    inputs have been seen, or are `expected`, to justify the export, unless the features differ from PyTorch's.
    """

    def __init__(self, backbone: Backbone, expected: int = 0) -> None:
        accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        self.device = accelerator or torch.device("cpu")
        self.backbone = backbone.eval().to(self.device)
        self.expected, self.seen = expected, 0
        self._session: Any = None
        self._given_up = self.device.type != "cpu"

    def __call__(self, x: Tensor) -> Features:
        return self.outputs(x)[0]

    def outputs(self, x: Tensor) -> list[Features]:
        """Every output of the backbone."""
        with torch.inference_mode():
            if not self._given_up and self._session is None:
                path = exported_file(self.backbone)
                if path.exists() or max(self.expected, self.seen) >= WORTH:
                    self._session = onnx_session(self.backbone, self.backbone.prepare(x[:1]), path)
                    self._given_up = self._session is None
            self.seen += len(x)
            if self._session is None:
                return [one.float().cpu().numpy() for one in _several(self.backbone(x.to(self.device)))]
            return run(self._session, self.backbone.prepare(x))


def exported_file(backbone: Backbone) -> Path:
    """Path of the exported network in the cache."""
    key = f"{backbone.signature} {torch.__version__}"
    return cache_folder() / "onnx" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.onnx"


def onnx_session(backbone: Backbone, sample: Tensor, path: Path) -> Any:
    """ONNX Runtime with a backbone's layers, exported if needed; None if not installed or not equal to PyTorch."""
    try:
        runtime: Any = import_module("onnxruntime")
        if not path.exists():
            _export(backbone, sample, path)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # leave the cores to image decoding
        session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        probe = torch.randn(2, *sample.shape[1:], generator=torch.Generator().manual_seed(0))
        expected = [one.numpy() for one in _several(backbone.layers(probe))]
        found = run(session, probe)
        if all(np.abs(a - b).max() <= TOLERANCE * np.abs(b).max() for a, b in zip(found, expected, strict=True)):
            return session
    except Exception:  # not installed, not exportable or damaged: fall back to PyTorch
        pass
    path.unlink(missing_ok=True)
    return None


def run(session: Any, x: Tensor) -> list[Features]:
    """Features (B, F), and any other outputs, of prepared inputs."""
    found: list[Features] = session.run(None, {session.get_inputs()[0].name: x.contiguous().numpy()})
    return found


def _several(made: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return made if isinstance(made, tuple) else (made,)


def _export(backbone: Backbone, sample: Tensor, path: Path) -> None:
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    batch = torch.export.Dim("batch", min=1)
    with warnings.catch_warnings(), torch.inference_mode(False):
        warnings.simplefilter("ignore")
        # A batch of one would be traced as a constant.
        two = sample[:1].clone().expand(2, *sample.shape[1:]).contiguous()
        program = torch.onnx.export(backbone.layers, (two,), dynamo=True, dynamic_shapes=({0: batch},), verbose=False)
        assert program is not None
        write_atomically(path, lambda file: program.save(file, external_data=False))

"""The fastest way to run a frozen backbone on this machine: on an accelerator, in ONNX Runtime, or in PyTorch."""

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

WORTH = 500  # images: PyTorch needs as long for them as for the export to ONNX, which is done once for a backbone
TOLERANCE = 1e-3


class FrozenNetwork:
    """Features (B, F) of inputs (B, ...) as a backbone has them in evaluation mode.

    On a CPU with ONNX Runtime (the extra `[export]`) it runs there if the exported network is in the cache, or once as
    many inputs have been seen as make the export worth its time; not if the two differ.
    """

    def __init__(self, backbone: Backbone) -> None:
        accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        self.device = accelerator or torch.device("cpu")
        self.backbone = backbone.eval().to(self.device)
        self.seen = 0
        self._session: Any = None
        self._given_up = self.device.type != "cpu"

    def __call__(self, x: Tensor) -> Features:
        with torch.inference_mode():
            if not self._given_up and self._session is None:
                path = exported_file(self.backbone)
                if path.exists() or self.seen >= WORTH:
                    self._session = onnx_session(self.backbone, self.backbone.prepare(x[:1]), path)
                    self._given_up = self._session is None
            self.seen += len(x)
            if self._session is None:
                return self.backbone(x.to(self.device)).float().cpu().numpy()
            return run(self._session, self.backbone.prepare(x))


def exported_file(backbone: Backbone) -> Path:
    """Where the exported network is kept."""
    key = f"{backbone.signature} {torch.__version__}"
    return cache_folder() / "onnx" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.onnx"


def onnx_session(backbone: Backbone, sample: Tensor, path: Path) -> Any:
    """ONNX Runtime with the layers of a backbone, exported if need be; None where it is not installed or not equal."""
    try:
        runtime: Any = import_module("onnxruntime")
        if not path.exists():
            _export(backbone, sample, path)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the cores are also to decode images
        session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        probe = torch.randn(2, *sample.shape[1:], generator=torch.Generator().manual_seed(0))
        expected = backbone.layers(probe).numpy()
        if np.abs(run(session, probe) - expected).max() <= TOLERANCE * np.abs(expected).max():
            return session
    except Exception:  # not installed, not exportable, damaged: PyTorch can do it all the same
        pass
    path.unlink(missing_ok=True)
    return None


def run(session: Any, x: Tensor) -> Features:
    """Features (B, F) of prepared inputs."""
    return session.run(None, {session.get_inputs()[0].name: x.contiguous().numpy()})[0]


def _export(backbone: Backbone, sample: Tensor, path: Path) -> None:
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    batch = torch.export.Dim("batch", min=1)
    with warnings.catch_warnings(), torch.inference_mode(False):
        warnings.simplefilter("ignore")
        two = sample[:1].clone().expand(2, *sample.shape[1:]).contiguous()  # one would be taken for a constant
        program = torch.onnx.export(backbone.layers, (two,), dynamo=True, dynamic_shapes=({0: batch},), verbose=False)
        assert program is not None
        write_atomically(path, lambda file: program.save(file, external_data=False))

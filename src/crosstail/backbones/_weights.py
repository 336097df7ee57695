"""Pretrained weights as tensors by name: from a file of one's own or from the Hugging Face Hub, never running code."""

import hashlib
import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import torch
from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
from safetensors.torch import load_file
from torch import Tensor, nn

State = dict[str, Tensor]

RANDOM = "random"  # what a user writes instead of a file to start from random numbers
WRAPPERS = ("state_dict", "model")  # under which training scripts keep the weights
HUB_FILE = "model.safetensors"
SHOWN = 2  # names of tensors in a message


def read_weights(path: Path) -> State:
    """The tensors of a .safetensors file or one of `torch.save`, without what training scripts wrap around them."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file (--weights takes a .safetensors or .pth file)")
    found: Any = _read(path)
    while wrapper := next(
        (key for key in WRAPPERS if isinstance(found, dict) and isinstance(found.get(key), dict)), ""
    ):
        found = found[wrapper]
    named = found.items() if isinstance(found, dict) else ()
    state = {str(name).removeprefix("module."): value for name, value in named if isinstance(value, Tensor)}
    if not state:
        raise ValueError(f"{path}: holds no tensors by name; expected the state_dict() of a network")
    return state


def _read(path: Path) -> Any:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # whatever the bytes lead the decoders to
        code = re.search(r"GLOBAL (\S+)", str(error)) if isinstance(error, pickle.UnpicklingError) else None
        if code is None:
            reason = " ".join(str(error).split())[:80] or type(error).__name__
            raise ValueError(f"{path}: cannot be read as weights ({reason})") from None
        raise ValueError(
            f"{path}: is not loaded, for it would run code ({code[1]}); expected tensors only: save the network's "
            f"state_dict() alone, or as .safetensors"
        ) from None


def hub_file(name: str, hub_id: str | None) -> Path:
    """The file of a timm model's weights, from this machine's cache or else from the network."""
    ways = "--weights FILE, --weights random, or --backbone efficientnet_lite0, whose weights are installed"
    if not hub_id:
        raise ValueError(f"timm has no pretrained weights for {name}; choose {ways}")
    cached = try_to_load_from_cache(hub_id, HUB_FILE, cache_dir=constants.HF_HUB_CACHE)
    if isinstance(cached, str):
        return Path(cached)
    try:
        _reach(constants.ENDPOINT)
        return Path(hf_hub_download(hub_id, HUB_FILE, endpoint=constants.ENDPOINT, cache_dir=constants.HF_HUB_CACHE))
    except Exception as error:  # of the network, of the hub, of the disk: whatever it raises
        reason = " ".join(str(getattr(error, "reason", error)).split())[:100] or type(error).__name__
        raise ValueError(
            f"the weights of {name} are not here and cannot be fetched ({reason}); choose {ways}"
        ) from None


def _reach(address: str) -> None:
    """Fail at once where there is no network: the hub's own client tries for a minute."""
    try:
        with urlopen(Request(address, method="HEAD"), timeout=10):
            pass
    except HTTPError:  # an answer, of whatever kind
        pass


def load_file_into(network: nn.Module, path: Path, name: str, classifier: str | Sequence[str] | None) -> None:
    """Give a network without a classifier the weights of a file, whose own classifier does not matter."""
    wanted = network.state_dict()
    heads = {part.partition(".")[0] for part in ([classifier] if isinstance(classifier, str) else classifier or ())}
    state = {
        key: value for key, value in read_weights(path).items() if key in wanted or key.partition(".")[0] not in heads
    }
    shapes, found = ({key: tuple(value.shape) for key, value in tensors.items()} for tensors in (wanted, state))
    odd = {
        "missing": [f"{key} {shape}" for key, shape in shapes.items() if key not in found],
        "unexpected": [f"{key} {shape}" for key, shape in found.items() if key not in shapes],
        "of another shape": [
            f"{key} {found[key]}, expected {shape}" for key, shape in shapes.items() if found.get(key, shape) != shape
        ],
    }
    problems = [
        f"{len(keys)} {kind} ({', '.join(keys[:SHOWN])}{', …' if len(keys) > SHOWN else ''})"
        for kind, keys in odd.items()
        if keys
    ]
    if problems:
        raise ValueError(f"{path} does not fit {name}: of its tensors, {'; '.join(problems)}")
    network.load_state_dict(state)


def checksum(network: nn.Module) -> str:
    """Sixteen hexadecimal digits of a network's tensors, whatever kind of file they came from."""
    digest = hashlib.sha256()
    for name, value in network.state_dict().items():
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.contiguous().numpy().data)
    return digest.hexdigest()[:16]

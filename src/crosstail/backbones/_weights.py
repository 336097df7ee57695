"""Pretrained weights as named tensors, from a user's file or from the Hugging Face Hub; loading them runs no code."""

import hashlib
import pickle
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from torch import Tensor, nn

from crosstail.backbones._open_clip import add_projection

State = dict[str, Tensor]

RANDOM = "random"  # given instead of a file: random initialisation
HUB_FILE = "model.safetensors"
SHOWN = 2  # names of tensors in a message


def read_weights(path: Path) -> State:
    """The tensors of a .safetensors or .pth file, without what training scripts wrap around them; runs no code."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file (--weights takes a .safetensors or .pth file)")
    from timm.models import load_state_dict  # here, because it takes seconds

    try:
        found = load_state_dict(str(path), use_ema=False, weights_only=True)
        state = {str(name): value for name, value in found.items() if isinstance(value, Tensor)}
    except Exception as error:  # damaged files raise anything
        cause = error.__cause__  # timm rewords what the unpickler refused
        code = re.search(r"GLOBAL (\S+)", str(cause)) if isinstance(cause, pickle.UnpicklingError) else None
        if code is None:
            reason = " ".join(str(error).split())[:80] or type(error).__name__
            raise ValueError(f"{path}: cannot be read as weights ({reason})") from None
        raise ValueError(
            f"{path}: was not loaded because it would run code ({code[1]}); expected tensors only: save the network's "
            f"state_dict() alone, or as .safetensors"
        ) from None
    if not state:
        raise ValueError(f"{path}: contains no named tensors; expected the state_dict() of a network")
    return state


def hub_file(name: str, hub_id: str | None, file: str = HUB_FILE) -> Path:
    """A file of a timm model, by default its weights, from the local cache or else downloaded."""
    ways = "--weights FILE, --weights random, or --backbone efficientnet_lite0, whose weights are installed"
    if not hub_id:
        raise ValueError(f"timm has no pretrained weights for {name}; choose {ways}")
    from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache

    cached = try_to_load_from_cache(hub_id, file, cache_dir=constants.HF_HUB_CACHE)
    if isinstance(cached, str):
        return Path(cached)
    try:
        _reach(constants.ENDPOINT)
        return Path(hf_hub_download(hub_id, file, endpoint=constants.ENDPOINT, cache_dir=constants.HF_HUB_CACHE))
    except Exception as error:  # network, hub or disk
        reason = " ".join(str(getattr(error, "reason", error)).split())[:100] or type(error).__name__
        problem = f"the weights of {name} are not in the cache and cannot be downloaded ({reason})"
        raise ValueError(f"{problem}; choose {ways}") from None


def _reach(address: str) -> None:
    """Fail at once where there is no network: the hub's own client retries for a minute."""
    try:
        with urlopen(Request(address, method="HEAD"), timeout=10):
            pass
    except HTTPError:  # any answer will do
        pass


def load_file_into(
    network: nn.Module, path: Path, name: str, classifier: str | Sequence[str] | None, projected: bool = False
) -> list[str]:
    """Load the weights of a file into a network without a classifier; a note if more is left out than a classifier.

    Names of other programs become timm's: those of DINOv2, CLIP and open_clip, and whatever else timm can convert.
    """
    given = read_weights(path)
    if projected:
        add_projection(network, given)
    wanted = network.state_dict()
    convert = getattr(sys.modules[type(network).__module__], "checkpoint_filter_fn", None)
    if convert and not wanted.keys() <= given.keys():
        with suppress(Exception):  # a file that it cannot convert is reported as it is
            given = convert(dict(given), network)
    heads = {part.partition(".")[0] for part in ([classifier] if isinstance(classifier, str) else classifier or ())}
    state = {key: value for key, value in given.items() if key in wanted or key.partition(".")[0] not in heads}
    extra = [key for key in state if key not in wanted]
    shapes, found = ({key: tuple(value.shape) for key, value in tensors.items()} for tensors in (wanted, state))
    changed = [key for key, shape in shapes.items() if found.get(key, shape) != shape]
    odd = {
        "missing": [f"{key} {shape}" for key, shape in shapes.items() if key not in found],
        "unexpected": [f"{key} {shape}" for key, shape in found.items() if key not in shapes],
        "of another shape": [f"{key} {found[key]}, expected {shapes[key]}" for key in changed],
    }
    # A decoder or a token for masked patches does no harm; what the network could have, but has not, does.
    if odd["missing"] or changed or any(hasattr(network, key.partition(".")[0]) for key in extra):
        shown = {kind: ", ".join(keys[:SHOWN]) + ", …" * (len(keys) > SHOWN) for kind, keys in odd.items() if keys}
        problems = "; ".join(f"{len(odd[kind])} {kind} ({keys})" for kind, keys in shown.items())
        raise ValueError(f"{path} does not fit {name}: of its tensors, {problems}")
    network.load_state_dict({key: state[key] for key in wanted})
    if not extra:
        return []
    left = f"{len(extra)} tensors of {path} have" if len(extra) > 1 else f"one tensor of {path} has"
    return [f"{left} no place in {name}, and left out: {', '.join(extra[:SHOWN])}{', …' * (len(extra) > SHOWN)}"]


def checksum(network: nn.Module) -> str:
    """Sixteen hexadecimal digits that identify a network's tensors, whatever file they came from."""
    digest = hashlib.sha256()
    for name, value in network.state_dict().items():
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.contiguous().numpy().data)
    return digest.hexdigest()[:16]

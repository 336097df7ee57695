"""Any image model of timm, with pretrained weights and its own resizing and normalisation."""

import json
import math
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from crosstail import discovery
from crosstail.backbones._backbone import Backbone, Cut, Divided
from crosstail.backbones._cuts import WithOutput, cut
from crosstail.backbones._weights import RANDOM, checksum, hub_file, load_file_into

PREFIX, HUB = "timm:", "hf-hub:"
"""A model of timm, and one on the Hugging Face Hub, with a config.json of timm."""


@dataclass(frozen=True)
class Pretrained:
    """A model of timm by name, and where its weights are."""

    name: str
    installed: Callable[[], Iterable[Tensor]] | None = None  # weights from a package, in timm's order
    small: int = 0  # pixels; images up to this size are resized to it instead of `size`

    @property
    def size(self) -> int:
        """Resolution in pixels that it was trained on."""
        if not (found := self._config.input_size):
            raise ValueError(f"{self.name}: its configuration has no input_size: add --resolution, such as 224")
        return int(found[-1])

    @property
    def _hub(self) -> tuple[dict[str, Any], str, dict[str, Any]]:
        """Of a model on the hub: its configuration, architecture and arguments."""
        file = hub_file(self.name, self.name.removeprefix(HUB), "config.json")
        found = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or "architecture" not in found:
            raise ValueError(f"{self.name}: {file} is not of timm: it names no architecture")
        return found | found.get("pretrained_cfg", {}), found["architecture"], found.get("model_args", {})

    @property
    def _config(self) -> Any:
        import timm  # here, because it takes seconds, and vectors do not need it
        from timm.models import PretrainedCfg

        if self.name.startswith(HUB):
            known = PretrainedCfg.__dataclass_fields__
            return PretrainedCfg(**{name: value for name, value in self._hub[0].items() if name in known})
        architecture, _, tag = self.name.partition(".")
        if not timm.is_model(architecture):
            near = discovery.suggestion(architecture, timm.list_models()) if architecture else ""
            near = near if len(near) < 100 else "timm.list_models() has their names"
            raise ValueError(f"timm has no model {architecture!r}: {near}")
        tags = [name.partition(".")[2] for name in timm.list_pretrained(f"{architecture}.*")]
        if tag and tag not in tags:
            raise ValueError(f"timm has no weights {tag!r} of {architecture}: there are {', '.join(tags) or 'none'}")
        return timm.get_pretrained_cfg(self.name)

    def build(
        self, input_shape: tuple[int, ...], weights: str | None, resolution: int | None, projected: bool = False
    ) -> "TimmBackbone":
        """The network for images (3, H, W), with its own weights, weights from a file, or random ones.

        Features are `projected` if the file has a tower of CLIP with its projection.
        """
        config = self._config
        if not (config.mean and config.std):
            raise ValueError(f"{self.name}: its configuration has no mean and std of the pixels")
        network, notes = self._network(config, weights, projected)
        size = resolution or (self.small if max(input_shape[1:]) <= self.small else self.size)
        if config.fixed_input_size and size != self.size:
            try:
                network.set_input_size(img_size=size)
            except Exception:  # the method is missing, or refuses the size
                raise ValueError(f"{self.name} takes {self.size} pixels, not {size}: remove --resolution") from None
        built = TimmBackbone(self.name, network, size, config.mean, config.std, pretrained=weights != RANDOM)
        built.notes = notes
        return built

    def _network(self, config: Any, weights: str | None, projected: bool) -> tuple[Any, list[str]]:
        """With notes on what was left out of a file of weights."""
        import timm

        if self.name.startswith(HUB):
            _, architecture, more = self._hub
            network: Any = timm.create_model(architecture, **(more | {"num_classes": 0}))
            weights = weights or str(hub_file(self.name, self.name.removeprefix(HUB)))
        elif weights is None and self.installed is None:
            given = {"file": str(hub_file(self.name, config.hf_hub_id)), "custom_load": False}
            return timm.create_model(self.name, num_classes=0, pretrained=True, pretrained_cfg_overlay=given), []
        else:
            network = timm.create_model(self.name, num_classes=0)
        if weights is None:
            assert self.installed is not None
            network.load_state_dict(dict(zip(network.state_dict(), self.installed(), strict=False)))
        elif weights != RANDOM:
            return network, load_file_into(network, Path(weights), self.name, config.classifier, projected)
        return network, []


class TimmBackbone(Backbone):
    """A timm network with resizing and normalisation; pretrained batch norm statistics stay fixed in training."""

    mean: Tensor
    std: Tensor
    part = ""  # if the layers are not those of the whole network

    def __init__(
        self, name: str, network: Any, size: int, mean: Iterable[float], std: Iterable[float], *, pretrained: bool
    ) -> None:
        width = network.num_classes or getattr(network, "head_hidden_size", network.num_features)
        super().__init__(network.to(memory_format=torch.channels_last), width, _early_maps(network))
        self.name = name
        self.size = size
        self.channels_first = getattr(network, "output_fmt", "NCHW") == "NCHW"
        self.stages = _stages(network)
        self.register_buffer("mean", torch.tensor(tuple(mean)).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(tuple(std)).view(3, 1, 1), persistent=False)
        self.weights = checksum(network) if pretrained else ""

    @property
    def signature(self) -> str:
        scaling = f"{self.mean.flatten().tolist()} {self.std.flatten().tolist()}"
        return f"{self.name} {self.weights} {self.size} px {scaling}{self.part}"

    @property
    def cuts(self) -> list[Cut]:
        found: dict[str, Tensor] = {}
        layers = {name: self.layers.get_submodule(name) for name in self.stages[:-1]}
        hooks = [
            layer.register_forward_hook(lambda _layer, _inputs, output, name=name: found.update({name: output}))
            for name, layer in layers.items()
        ]
        with torch.no_grad():
            self.eval()(torch.zeros(1, 3, self.size, self.size))
        for hook in hooks:
            hook.remove()
        return [self._cut(name, x) for name, x in reversed(found.items()) if isinstance(x, Tensor)]

    def _cut(self, module: str, activations: Tensor) -> Cut:
        shape = tuple(activations.shape[1:])
        return Cut(module, shape, len(shape) == 3 and self.channels_first)

    def divided(self, stages: int) -> Divided:
        if stages >= len(self.stages):
            raise ValueError(f"{self.name} has {len(self.stages)} stages: --tune last:{stages} is too many, use all")
        module = self.stages[-1 - stages]
        try:
            front, tail = cut(self.eval().layers, module)
            first, both = self._with(front, f"up to {module}"), self._with(WithOutput(front, tail), f"and {module}")
            with torch.no_grad():
                found = self._cut(module, first(torch.zeros(1, 3, self.size, self.size)))
        except Exception as error:  # whatever the network does that cannot be traced
            reason = str(error).partition("\n")[0][:100]
            raise ValueError(
                f"{self.name} cannot be cut behind {module} ({reason}): use --tune all, or another backbone"
            ) from None
        first.num_features = math.prod(found.shape)
        last = _Tail(tail, self.num_features)
        last.weights = self.weights
        return Divided(found, first, last, both)

    def _with(self, layers: nn.Module, part: str) -> "TimmBackbone":
        """The same preparation with other layers."""
        other = copy(self)
        other._modules, other.part, other.maps = {"layers": layers}, f" {part}", ()
        return other

    def prepare(self, x: Tensor) -> Tensor:
        if x.shape[-2:] != (self.size, self.size):
            smaller = max(x.shape[-2:]) > self.size
            x = F.interpolate(x, size=(self.size, self.size), mode="bilinear", antialias=smaller)
        return (x - self.mean) / self.std

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(self.prepare(x).contiguous(memory_format=torch.channels_last))


class _Tail(Backbone):
    """The last stages of a network, on its own activations."""

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x)


def _stages(network: Any) -> list[str]:
    """The modules that timm calls stages, or, where these are some of a sequence of equals such as `blocks`, all."""
    known = dict(network.named_modules())
    names = [stage["module"] for stage in getattr(network, "feature_info", None) or () if stage["module"] in known]
    parent = names[-1].rpartition(".")[0] if names else ""
    every = {f"{parent}.{name}": type(one) for name, one in known[parent].named_children()} if parent else {}
    return list(every) if names and set(names) <= set(every) and len(set(every.values())) == 1 else names


def _early_maps(network: Any) -> tuple[str, ...]:
    if getattr(network, "output_fmt", "NCHW") != "NCHW":
        return ()
    return tuple(stage["module"] for stage in network.feature_info if stage["reduction"] in (4, 8))

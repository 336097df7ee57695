"""Devices, processes and machines of a run; none of them changes what is computed."""

import logging
import os
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from crosstail import machine
from crosstail.training.spec import Accelerator

if TYPE_CHECKING:  # an extra: importing it takes seconds, and one device does not need it
    from lightning_fabric import Fabric

PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed"}


@dataclass(frozen=True)
class Devices:
    """`number` processes on each of `nodes` machines share every batch."""

    accelerator: Accelerator = "auto"
    number: int = 1
    nodes: int = 1
    chunks: int = 1  # parts of a batch that the backbone processes in turn, to save memory
    compile: bool = False

    def __post_init__(self) -> None:
        for name in ("number", "nodes", "chunks"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} of devices is {getattr(self, name)}, expected 1 or more")
        if self.several and find_spec("lightning_fabric") is None:
            raise ValueError("several devices or nodes need Lightning Fabric: pip install 'crosstail[devices]'")
        if self.number > 1 and self.kind != "cpu":
            there = torch.cuda.device_count() if self.kind == "cuda" else 1
            if self.number > there:
                has = f"this machine has {there} GPU{'s' * (there > 1)}"
                raise ValueError(f"--devices {self.number}: {has}; use --devices {there}, or --accelerator cpu")

    @property
    def several(self) -> bool:
        return self.number * self.nodes > 1

    @property
    def kind(self) -> str:
        """The kind of device in torch's words: the one that was named, if it is there, or the best available."""
        there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
        if self.accelerator == "auto":
            return next(name for name, found in there.items() if found)
        if not there.get(self.accelerator):
            usable = " or ".join(name for name, found in there.items() if found)
            raise ValueError(
                f"--accelerator {self.accelerator}: torch finds no such device on this machine; use {usable}, or auto"
            )
        return self.accelerator


ONE = Devices()


class OneDevice:
    """One process on one device, as the loop uses it: the part of Fabric that a single device needs."""

    global_rank, world_size, is_global_zero = 0, 1, True
    backward = staticmethod(Tensor.backward)

    def __init__(self, kind: str, precision: str) -> None:
        self.device = torch.device(kind)
        self.low_precision = precision == "bf16"

    def to_device(self, module: nn.Module) -> None:
        module.to(self.device)

    def setup_optimizers(self, optimizer: Optimizer) -> Optimizer:
        return optimizer

    def autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.low_precision else nullcontext()

    def all_reduce(self, values: Tensor, reduce_op: str) -> Tensor:
        return values

    def barrier(self) -> None:
        """No other process to wait for."""


AnyFabric: TypeAlias = "Fabric | OneDevice"


@cache
def fabric_of(devices: Devices, precision: str) -> AnyFabric:
    """Cached: creating it scans all installed packages, and processes are kept from run to run."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}, expected {' or '.join(PRECISIONS)}")
    torch.backends.cudnn.benchmark = True  # every batch has the same shape, so that it pays to try all algorithms once
    if not devices.several:
        return OneDevice(devices.kind, precision)
    if devices.nodes > 1 and not {"MASTER_ADDR", "SLURM_PROCID"} & os.environ.keys():
        raise ValueError(f"--nodes {devices.nodes}: start the command on each machine with torchrun, or srun of Slurm")
    from lightning_fabric import Fabric

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `srun` command is available")  # on machines with Slurm
        fabric = Fabric(
            accelerator=devices.kind,
            devices=devices.number,
            num_nodes=devices.nodes,
            strategy="ddp",
            precision=PRECISIONS[precision],  # type: ignore[arg-type]
        )
    fabric.launch()
    machine.use(machine.cores() // devices.number)
    if fabric.device.type == "cpu":
        torch.set_num_threads(machine.cores())
    return fabric


def fuse(groups: Sequence[dict[str, Any]], device: torch.device) -> None:
    """Let Adam update a group of weights in one kernel on a GPU, and tensor by tensor on the CPU."""
    for group in groups:
        if "fused" in group:
            group["fused"] = True if device.type == "cuda" else None


def spare_compiler() -> None:
    """Spare optimizers the import of torch's compiler: two seconds, only to keep it away from their own methods."""
    if "torch._dynamo" in sys.modules:
        return
    for name in ("add_param_group", "zero_grad", "state_dict", "load_state_dict"):
        plain: Any = getattr(getattr(Optimizer, name), "__wrapped__", None)
        if plain is not None:
            plain.__dynamo_disable = plain  # where torch keeps what the compiler made of the method
    step = getattr(Adam.step, "__wrapped__", None)
    if step is not None:
        Adam.step = torch.no_grad()(step)  # type: ignore[method-assign]


def wait_for(file: Path) -> None:
    """Wait until the main process has written a file, however long that takes; a barrier of GPUs would time out."""
    parent = os.getppid()
    while not file.exists():
        if os.getppid() != parent:  # the main process has ended, or what started both
            sys.exit(1)
        time.sleep(0.1)


def is_main_process() -> bool:
    """Whether this process writes and prints; with several, the others run the same command."""
    return dist.get_rank() == 0 if dist.is_initialized() else os.environ.get("LOCAL_RANK", "0") == "0"

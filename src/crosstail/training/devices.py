"""Devices, processes and machines of a run; none of them changes what is computed."""

import logging
import os
import warnings
from dataclasses import dataclass
from functools import cache

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment

PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed"}


@dataclass(frozen=True)
class Devices:
    """`number` processes on each of `nodes` machines share every batch."""

    accelerator: str = "auto"
    number: int = 1
    nodes: int = 1
    chunks: int = 1  # parts of a batch that the backbone processes in turn, to save memory
    compile: bool = False

    def __post_init__(self) -> None:
        for name in ("number", "nodes", "chunks"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} of devices is {getattr(self, name)}, expected 1 or more")

    @property
    def several(self) -> bool:
        return self.number * self.nodes > 1


@cache
def fabric_of(devices: Devices, precision: str) -> Fabric:
    """Cached: creating it scans all installed packages, and processes are kept from run to run."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}, expected {' or '.join(PRECISIONS)}")
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `srun` command is available")  # on machines with Slurm
        fabric = Fabric(
            accelerator=devices.accelerator,
            devices=devices.number,
            num_nodes=devices.nodes,
            strategy="ddp" if devices.several else "auto",
            precision=PRECISIONS[precision],  # type: ignore[arg-type]
            # A single device is a single process, even in a cluster job that has more.
            plugins=None if devices.several else LightningEnvironment(),
        )
    if devices.several:
        fabric.launch()
        if fabric.device.type == "cpu":
            torch.set_num_threads(max(1, (os.cpu_count() or 1) // devices.number))
    return fabric


def is_main_process() -> bool:
    """Whether this process writes and prints; with several, the others run the same command."""
    return dist.get_rank() == 0 if dist.is_initialized() else os.environ.get("LOCAL_RANK", "0") == "0"

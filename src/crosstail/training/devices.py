"""Where a run is computed: processors, processes and machines; none of it changes what is computed."""

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
    chunks: int = 1  # parts of a batch that the backbone sees one after the other, to save memory
    compile: bool = False

    def __post_init__(self) -> None:
        for name in ("number", "nodes", "chunks"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} of devices is {getattr(self, name)}, expected 1 or more")

    @property
    def several(self) -> bool:
        """Whether there is more than one process."""
        return self.number * self.nodes > 1


@cache
def fabric_of(devices: Devices, precision: str) -> Fabric:
    """Made once, for it looks through all installed packages; several processes also stay from run to run."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}, expected {' or '.join(PRECISIONS)}")
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `srun` command is available")  # on a machine that has Slurm
        fabric = Fabric(
            accelerator=devices.accelerator,
            devices=devices.number,
            num_nodes=devices.nodes,
            strategy="ddp" if devices.several else "auto",
            precision=PRECISIONS[precision],  # type: ignore[arg-type]
            # One device is one process, also within a job of a cluster that has more.
            plugins=None if devices.several else LightningEnvironment(),
        )
    if devices.several:
        fabric.launch()
        if fabric.device.type == "cpu":
            torch.set_num_threads(max(1, (os.cpu_count() or 1) // devices.number))
    return fabric


def is_main_process() -> bool:
    """Whether this process writes and prints: with several, the others run the same command beside it."""
    return dist.get_rank() == 0 if dist.is_initialized() else os.environ.get("LOCAL_RANK", "0") == "0"

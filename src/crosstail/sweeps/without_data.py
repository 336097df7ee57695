"""What a plan costs, from a benchmark's data sheet and one measured step, so that its images need not be there."""

import time
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from crosstail import algorithms, backbones, second_stages
from crosstail.data import DomainBatch, protocols
from crosstail.data.benchmarks._sheet import DataSheet
from crosstail.second_stages import TrainedStage
from crosstail.sweeps.plan import Plan
from crosstail.training.devices import ONE
from crosstail.training.model import build_algorithm
from crosstail.training.resolve import all_hparams, steps_of_stages
from crosstail.training.spec import RunSpec, split_method

ON_CPU = 4  # images per domain in the step that is measured on a CPU; a GPU takes a batch of the plan
FORWARD = 1 / 3  # of a forward and backward pass


@dataclass(frozen=True)
class Measured:
    """A network on this machine."""

    seconds: float  # of a forward and backward pass, per image
    size: float  # bytes of its weights


@dataclass(frozen=True)
class MethodPrice:
    """All runs of a method on one benchmark."""

    method: str
    runs: int
    seconds: float  # of them on one device
    size: float  # bytes
    full_passes: int  # forward passes of one run for exact statistics


def measure(spec: RunSpec, sheet: DataSheet) -> Measured:
    """Time a step of ERM on random images; the weights are random too, so that nothing is downloaded."""
    assert spec.batch_size is not None and spec.backbone is not None
    network = backbones.pretrained(spec.backbone)
    side = spec.resolution or (32 if sheet.inputs == "images" else 224 if network is None else network.size)
    erm = replace(spec, algorithm="erm", second_stage=None, hparams={}, weights=backbones.RANDOM if network else None)
    model = build_algorithm(erm, (3, side, side), np.ones((2, len(sheet.classes)), np.int64)).to(ONE.kind).train()
    n = 2 * (spec.batch_size if ONE.kind == "cuda" else min(ON_CPU, spec.batch_size))
    y, domain = torch.zeros(n, dtype=torch.int64), torch.arange(n) * 2 // n
    batch, optimizers, times = DomainBatch(torch.rand(n, 3, side, side), y, domain).to(ONE.kind), model.optimizers(), []
    for _ in range(3):
        began = time.perf_counter()
        next(iter(model.update(batch, optimizers, Tensor.backward).values())).item()  # waits for the device
        times.append(time.perf_counter() - began)
    return Measured(min(times) / n, sum(4.0 * p.numel() for p in model.parameters()))


def price(plan: Plan, sheet: DataSheet, of: Measured) -> list[MethodPrice]:
    """One row per method."""
    shared, found = plan.shared, []
    domains = len(sheet.domains) - shared.unseen_domains
    train, val, test = _sizes(shared, sheet)
    assert shared.steps and shared.batch_size and shared.evaluations
    due = protocols.find(shared.protocol).due(shared.steps, shared.evaluations)
    for method in plan.methods:
        name, stage = split_method(method)
        spec = replace(shared, algorithm=name, second_stage=stage, hparams=all_hparams(shared, name, shared.hparams))
        refresh = spec.hparams.get("refresh", 0)
        full = train * (steps_of_stages(spec)[0] // refresh) if refresh else 0
        trained = steps_of_stages(spec)[0] * shared.batch_size * domains * algorithms.find(name).passes
        seen = len(due) * (val + test) + full + (train + val + test if stage else 0)
        kept = 2 if stage and isinstance(second_stages.find(stage), TrainedStage) else 1
        runs, seconds = plan.runs_per_method, (trained + FORWARD * seen) * of.seconds
        found.append(MethodPrice(method, runs, runs * seconds, runs * kept * of.size, int(full)))
    return found


def _sizes(spec: RunSpec, sheet: DataSheet) -> tuple[float, float, float]:
    """Images for training, validation and test; with dg, the mean over the unseen domains."""
    if not spec.unseen_domains and sheet.paper_totals:
        return sheet.paper_totals
    images, share = sheet.images or 0, 1 / len(sheet.domains)
    return 0.8 * (1 - share) * images, 0.2 * (1 - share) * images, 0.8 * share * images

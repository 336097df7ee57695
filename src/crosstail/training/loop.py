"""The training loop: batches in, named loss terms out, evaluations and checkpoints along the way."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor

from crosstail.algorithms import Algorithm
from crosstail.algorithms._processes import backward_of, merged
from crosstail.data import Augment, DomainBatches, DomainDataset
from crosstail.losses.distances import NotFinite
from crosstail.metrics import PairAccuracy
from crosstail.training.average import averaged_copy
from crosstail.training.evaluation import pair_accuracy, stream_statistics
from crosstail.training.folder import RunFolder
from crosstail.training.progress import Progress
from crosstail.training.result import Averaged, Evaluation, SplitAccuracy, Trace

SMALLER = "Try a smaller learning rate (--hp lr=...), or look for extreme values in the data"
EVALUATED = {"validation": "val", "test": "test"}

Tracer = Callable[[Algorithm, DomainDataset], Trace]
"""What is recorded of the features at every evaluation."""

Limits = Mapping[tuple[int, int], float]
"""The validation accuracy that a run must have reached to go on, by stage and step."""


class Diverged(RuntimeError):
    """Training diverged: a loss became NaN or infinite."""


class Pruned(Exception):
    """A run was stopped early because others were better at this point."""


@dataclass
class Selected:
    """The evaluation with the best validation accuracy so far, and its weights."""

    score: float = -1.0
    step: int = 0
    weights: dict[str, Any] = field(default_factory=dict)


def train(
    algorithm: Algorithm,
    dataset: DomainDataset,
    *,
    steps: int,
    batch_size: int,
    seed: int,
    evaluations: int,
    stage: int,
    folder: RunFolder,
    fabric: Fabric,
    class_balanced: bool = False,
    average: bool = False,
    augment: Augment | None = None,
    progress: Progress | None = None,
    trace: Tracer | None = None,
    limits: Limits | None = None,
) -> Selected:
    """Train for `steps` steps and return the evaluation that is best on validation (pair average, the first of equals).

    With `average`, the averaged weights are evaluated too, and it is those that are selected and traced. A run below
    one of the `limits` raises Pruned.

    Batches are a function of the seed and the step, and all other state is in the checkpoint, so a resumed run ends
    with the same result as one that was never stopped.
    """
    fabric.to_device(algorithm)
    optimizers = algorithm.optimizers()
    wrapped: list[Any] = [fabric.setup_optimizers(optimizer) for optimizer in optimizers]
    several, main = fabric.world_size > 1, fabric.is_global_zero
    share = fabric.global_rank, fabric.world_size
    backward = backward_of(algorithm, fabric.backward)
    batches = DomainBatches(
        dataset,
        batch_size=batch_size,
        class_balanced=class_balanced or algorithm.class_balanced,
        seed=seed,
        augment=augment,
        share=share,
    )
    averaged = averaged_copy(algorithm) if average else None
    evaluated: Any = averaged.module if averaged else algorithm  # what is selected and traced
    selected, start, seconds = Selected(), 0, 0.0
    checkpoint = folder.load("checkpoint.pt")
    resumed = checkpoint is not None and checkpoint["stage"] == stage
    if resumed:
        assert checkpoint is not None
        algorithm.load_state_dict(checkpoint["algorithm"])
        for optimizer, state in zip(optimizers, checkpoint["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        if averaged:
            averaged.load_state_dict(checkpoint["averaged"])
        torch.set_rng_state(checkpoint["random"])
        torch.cuda.set_rng_state_all(checkpoint["random_cuda"])
        selected = Selected(**checkpoint["selected"])
        start, seconds = checkpoint["step"], checkpoint["seconds"]
    fabric.barrier()  # all have read what one now writes
    if main:
        folder.keep_records(stage, start if resumed else -1)

    # At 0 the model is evaluated as it starts; the last evaluation is always at the end.
    due = {round(steps * k / evaluations) for k in range(evaluations + 1)}
    sums: dict[str, tuple[Tensor | float, int]] = {}
    since, began = start, time.perf_counter()
    algorithm.train()
    stream = batches.stream(start, steps)
    for step in range(start, steps + 1):
        if step in due and not (resumed and step == start):
            terms = _means(sums, since, step)
            accuracies = _evaluate(algorithm, dataset, fabric)
            passed = seconds + time.perf_counter() - began
            raw = {split: SplitAccuracy.of(accuracy) for split, accuracy in accuracies.items()}
            if averaged:
                accuracies = _evaluate(evaluated, dataset, fabric)
            traced = trace(evaluated, dataset) if trace and main else None
            if main:
                smooth = {split: SplitAccuracy.of(accuracy) for split, accuracy in accuracies.items()}
                folder.append_record(
                    Evaluation(
                        stage=stage,
                        step=step,
                        seconds=round(passed, 3),
                        losses=terms,
                        **raw,
                        averaged=Averaged(**smooth) if averaged else None,
                        trace=traced,
                    )
                )
            score = accuracies["validation"].pair_average
            if score is None or score > selected.score:  # without validation samples the last evaluation counts
                weights = {k: v.detach().cpu().clone() for k, v in evaluated.state_dict().items()}
                selected = Selected(-1.0 if score is None else score, step, weights)
            sums, since = {}, step
            state = {
                "stage": stage,
                "step": step,
                "seconds": passed,
                "algorithm": algorithm.state_dict(),
                "averaged": averaged.state_dict() if averaged else None,
                "optimizers": [optimizer.state_dict() for optimizer in optimizers],
                "random": torch.get_rng_state(),
                "random_cuda": torch.cuda.get_rng_state_all(),
                "selected": vars(selected),
            }
            if main:
                folder.save("checkpoint.pt", state)
        if step == steps:
            break
        if limits and step in due:
            _prune(limits, folder.records(), stage, step)
        algorithm.step, algorithm.steps = step, steps
        try:
            if algorithm.refresh_due(step):
                own = stream_statistics(algorithm, dataset, algorithm.statistics(), share)
                algorithm.refresh(merged(own) if several else own)
            with fabric.autocast():
                losses = algorithm.update(next(stream).to(fabric.device), wrapped, backward)
        except NotFinite as error:
            _means(sums, since, step)  # a term that is already NaN is the better explanation
            raise Diverged(f"step {step}: {error}. {SMALLER}") from error
        if averaged:
            averaged.update_parameters(algorithm)
        for name, value in losses.items():
            total, number = sums.get(name, (0.0, 0))
            sums[name] = total + value.detach(), number + 1
        if progress:
            progress(f"stage {stage}", step + 1, steps)
    return selected


def _evaluate(algorithm: Algorithm, dataset: DomainDataset, fabric: Fabric) -> dict[str, PairAccuracy]:
    """Each process has its share of the samples; hits and totals are added up."""
    share = fabric.global_rank, fabric.world_size
    found = {}
    for name, split in EVALUATED.items():
        own = pair_accuracy(algorithm, dataset, split, share)
        both: Any = fabric.all_reduce(torch.from_numpy(np.stack([own.hits, own.totals])), reduce_op="sum")
        hits, totals = both.cpu().numpy()
        found[name] = PairAccuracy(hits, totals)
    return found


def _prune(limits: Limits, records: list[Evaluation], stage: int, step: int) -> None:
    """End a run that is not good enough to go on."""
    limit = limits.get((stage, step), 0.0)
    best = max(record.validation.pair_average or 0.0 for record in records if record.stage == stage)
    if best < limit:
        raise Pruned(f"stage {stage}, step {step}: validation {100 * best:.1f} %, others {100 * limit:.1f} %")


def _means(sums: dict[str, tuple[Tensor | float, int]], first: int, last: int) -> dict[str, float]:
    """Mean loss terms over the steps that had them since the last evaluation; a non-finite one ends the run."""
    means = {name: float(total) / number for name, (total, number) in sums.items()}
    for name, value in means.items():
        if not math.isfinite(value):
            raise Diverged(f"the loss term {name!r} became {value} between steps {first} and {last}. {SMALLER}")
    return means

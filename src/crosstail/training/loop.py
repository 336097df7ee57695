"""The training loop: batches in, named loss terms out, evaluations and checkpoints along the way."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from lightning_fabric import Fabric

from crosstail.algorithms import Algorithm
from crosstail.data import Augment, DomainBatches, DomainDataset
from crosstail.losses.distances import NotFinite
from crosstail.training.evaluation import pair_accuracy, stream_statistics
from crosstail.training.folder import RunFolder

SMALLER = "Try a smaller learning rate (--hp lr=...), or look for extreme values in the data"
EVALUATED = {"validation": "val", "test": "test"}

Progress = Callable[[str, int, int], None]
"""Called with a word for what is done, how much is done, and of how much."""


class Diverged(RuntimeError):
    """A run that was right to start but ended in numbers that are none."""


@dataclass
class Selected:
    """The evaluation with the best validation figure so far, and its weights."""

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
    class_balanced: bool = False,
    augment: Augment | None = None,
    progress: Progress | None = None,
) -> Selected:
    """Train for `steps` steps and return the evaluation that is best on validation (pair average, the first of equals).

    The batches are a function of the seed and the step, and all other state is in the checkpoint, so a run that is
    resumed from it ends with the same figures as one that was never stopped.
    """
    fabric = Fabric(accelerator="auto", devices=1)
    optimizers = algorithm.optimizers()
    module, *wrapped = fabric.setup(algorithm, *optimizers, move_to_device=True)
    module.mark_forward_method("update")
    batches = DomainBatches(
        dataset,
        batch_size=batch_size,
        class_balanced=class_balanced or algorithm.class_balanced,
        seed=seed,
        augment=augment,
    )
    selected, start, seconds = Selected(), 0, 0.0
    checkpoint = folder.load("checkpoint.pt")
    resumed = checkpoint is not None and checkpoint["stage"] == stage
    if resumed:
        assert checkpoint is not None
        algorithm.load_state_dict(checkpoint["algorithm"])
        for optimizer, state in zip(optimizers, checkpoint["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        torch.set_rng_state(checkpoint["random"])
        selected = Selected(**checkpoint["selected"])
        start, seconds = checkpoint["step"], checkpoint["seconds"]
    folder.keep_records(stage, start if resumed else -1)

    # At 0 the model is evaluated as it starts; the last evaluation is always at the end.
    due = {round(steps * k / evaluations) for k in range(evaluations + 1)}
    sums: dict[str, torch.Tensor] = {}
    since, began = start, time.perf_counter()
    algorithm.train()
    stream = batches.stream(start, steps)
    for step in range(start, steps + 1):
        if step in due and not (resumed and step == start):
            terms = _means(sums, step - since, since, step)
            accuracies = {name: pair_accuracy(algorithm, dataset, split) for name, split in EVALUATED.items()}
            passed = seconds + time.perf_counter() - began
            record: dict[str, Any] = {"stage": stage, "step": step, "seconds": round(passed, 3), "losses": terms}
            folder.append_record(record | {name: accuracy.to_json() for name, accuracy in accuracies.items()})
            score = accuracies["validation"].pair_average
            if score is None or score > selected.score:  # without validation samples the last evaluation counts
                weights = {k: v.detach().cpu().clone() for k, v in algorithm.state_dict().items()}
                selected = Selected(-1.0 if score is None else score, step, weights)
            sums, since = {}, step
            folder.save(
                "checkpoint.pt",
                {
                    "stage": stage,
                    "step": step,
                    "seconds": passed,
                    "algorithm": algorithm.state_dict(),
                    "optimizers": [optimizer.state_dict() for optimizer in optimizers],
                    "random": torch.get_rng_state(),
                    "selected": vars(selected),
                },
            )
        if step == steps:
            break
        algorithm.step, algorithm.steps = step, steps
        try:
            if algorithm.refresh_due(step):
                algorithm.refresh(stream_statistics(algorithm, dataset, algorithm.statistics()))
            losses = module.update(next(stream).to(fabric.device), wrapped, fabric.backward)
        except NotFinite as error:
            _means(sums, step - since, since, step)  # a term that is no number already is the better explanation
            raise Diverged(f"step {step}: {error}. {SMALLER}") from error
        for name, value in losses.items():
            sums[name] = sums.get(name, 0) + value.detach()
        if progress:
            progress(f"stage {stage}", step + 1, steps)
    return selected


def _means(sums: dict[str, torch.Tensor], count: int, first: int, last: int) -> dict[str, float]:
    """Mean loss terms since the last evaluation; a term that is no number ends the run."""
    means = {name: float(value) / count for name, value in sums.items()}
    for name, value in means.items():
        if not math.isfinite(value):
            raise Diverged(f"the loss term {name!r} became {value} between steps {first} and {last}. {SMALLER}")
    return means

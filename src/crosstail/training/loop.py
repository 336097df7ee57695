"""The training loop: batches in, named loss terms out, evaluations and checkpoints along the way."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from crosstail import algorithms, discovery
from crosstail.algorithms import Algorithm
from crosstail.algorithms._processes import backward_of
from crosstail.data import Augment, DomainBatch, DomainBatches, DomainDataset, protocols
from crosstail.losses.host import NotFinite
from crosstail.losses.processes import merged
from crosstail.progress import Progress
from crosstail.training.average import Swad, WeightAverage
from crosstail.training.devices import AnyFabric, fuse
from crosstail.training.evaluation import EVALUATED, on_unseen, split_accuracies, split_answers, stream_statistics
from crosstail.training.folder import RunFolder
from crosstail.training.optimizers import factors_of, optimizers_of
from crosstail.training.result import Averaged, Evaluation, Trace, selection_score
from crosstail.training.spec import RunSpec
from crosstail.training.written import unwritten

SMALLER = "Try a smaller learning rate (--hp lr=...), or look for extreme values in the data"

Tracer = Callable[[Algorithm, DomainDataset, AnyFabric], Trace | None]
"""Records the transferability graph at every evaluation."""


class Diverged(RuntimeError):
    """Training diverged: a loss became NaN or infinite."""


@dataclass
class Selected:
    """The evaluation that is best on validation so far, and its weights."""

    score: float = -math.inf
    step: int = 0
    weights: dict[str, Any] = field(default_factory=dict)


def train(
    algorithm: Algorithm,
    dataset: DomainDataset,
    spec: RunSpec,
    *,
    stage: int,
    last: int,
    folder: RunFolder,
    fabric: AnyFabric,
    class_balanced: bool = False,
    augment: Augment | None = None,
    trace: Tracer | None = None,
    progress: Progress | None = None,
    checkpoint: Mapping[str, Any] | None = None,
) -> Selected:
    """Train one stage of a spec and return the evaluation that is best on validation (the first of ties).

    The stage ends after step `last`; all that depends on the number of steps of the spec stays as it is. With averaged
    weights, those are evaluated too, and it is they that are selected and traced; SWAD's window needs no selection.
    Nor does `--tune last`: the samples that choose how far to tune must not have chosen the step. A `checkpoint` of
    this stage is where it goes on.

    Batches are a function of the seed and the step, and all other state is in the checkpoint, so a resumed run ends
    with the same result as one that was never stopped.
    """
    assert spec.steps is not None and spec.batch_size is not None and spec.evaluations is not None
    protocol = protocols.find(spec.protocol)
    balanced, share = class_balanced or algorithm.class_balanced, (fabric.global_rank, fabric.world_size)
    how: dict[str, Any] = {"class_balanced": balanced, "replacement": protocol.replacement, "augment": augment}
    how |= {"seed": spec.seed, "share": share, "device": fabric.device}
    batches = DomainBatches(dataset, batch_size=spec.batch_size, **how)
    loop = _Loop(algorithm, dataset, spec, folder, fabric, stage, learns=last > 0)
    start = loop.resume(checkpoint)
    due = protocol.due(spec.steps, min(spec.evaluations, spec.steps)) | {last}
    algorithm.train()
    stream = batches.stream(start, last)
    for step in range(start, last + 1):
        if step in due and not (loop.resumed and step == start):
            loop.evaluate(step, trace, last)
        if step == last:
            break
        algorithm.step, algorithm.steps = step, spec.steps
        loop.update(step, stream)
        if progress:
            progress(f"stage {stage}", step + 1, last)
    return loop.selected


class _Loop:
    def __init__(
        self,
        algorithm: Algorithm,
        dataset: DomainDataset,
        spec: RunSpec,
        folder: RunFolder,
        fabric: AnyFabric,
        stage: int,
        learns: bool,
    ) -> None:
        self.algorithm, self.dataset, self.folder, self.fabric, self.stage = algorithm, dataset, folder, fabric, stage
        self.spec, self.selected_on = spec, spec.selected_on
        self.named = "+".join(discovery.own_files(spec.algorithm)) or spec.algorithm
        self.users = bool(discovery.own_files(spec.algorithm) or discovery.own_files(spec.backbone or ""))
        self.tunes = stage == 1 and spec.stages > 0
        assert spec.steps is not None
        kind = Swad if spec.average == "swad" else WeightAverage
        self.averaged = kind(algorithm, spec.average, spec.steps) if spec.average else None
        self.evaluated: Any = self.averaged.module if self.averaged else algorithm  # what is selected and traced
        # None where there are no steps: an optimizer imports torch's compiler, which takes two seconds.
        self.optimizers = optimizers_of(algorithm, spec) if learns else []
        self.factors = factors_of(spec) if learns else []
        for optimizer in self.optimizers:
            fuse(optimizer.param_groups, fabric.device)
        self.wrapped: list[Any] = [fabric.setup_optimizers(optimizer) for optimizer in self.optimizers]
        self.backward = backward_of(algorithm, fabric.backward)
        self.selected, self.resumed = Selected(), False
        self.seconds, self.began = 0.0, 0.0  # before this process, and when it began
        self.since = 0
        self.sums: dict[str, tuple[Tensor | float, int]] = {}

    def resume(self, checkpoint: Mapping[str, Any] | None) -> int:
        """Restore the checkpoint, if it is of this stage; the step from which to go on."""
        if checkpoint is not None and checkpoint["stage"] == self.stage:
            self.resumed = True
            self.algorithm.load_state_dict(checkpoint["algorithm"])
            for optimizer, state in zip(self.optimizers, checkpoint["optimizers"], strict=True):
                fuse(state["param_groups"], self.fabric.device)  # as here, not as where the run began
                optimizer.load_state_dict(state)
            if self.averaged:
                self.averaged.load_state_dict(checkpoint["averaged"])
            torch.set_rng_state(checkpoint["random"])
            # There may be fewer GPUs now than there were.
            for device, state in zip(range(torch.cuda.device_count()), checkpoint["random_cuda"], strict=False):
                torch.cuda.set_rng_state(state, device)
            self.selected = Selected(**checkpoint["selected"])
            self.since, self.seconds = checkpoint["step"], checkpoint["seconds"]
        self.fabric.barrier()  # every process has read what one of them now writes
        if self.fabric.is_global_zero:
            self.folder.keep_records(self.stage, self.since if self.resumed else -1)
        self.began = time.perf_counter()
        return self.since

    def evaluate(self, step: int, trace: Tracer | None, last: int) -> None:
        """Record the accuracies at a step, select, and write a checkpoint."""
        losses = _means(self.sums, self.since, step)
        raw = _evaluate(self.algorithm, self.dataset, self.fabric, self.selected_on)
        seconds = self.seconds + time.perf_counter() - self.began
        averaged: Averaged | None = None
        if self.averaged:
            steps = self.averaged.at_evaluation(step, raw["validation"].log_loss)
            averaged = Averaged(**_evaluate(self.evaluated, self.dataset, self.fabric, self.selected_on), steps=steps)
        score = selection_score(averaged.validation if averaged else raw["validation"], self.selected_on)
        # Without validation samples the last evaluation counts, and where they choose how far to tune.
        latest = self.tunes or (self.averaged and self.averaged.selects_itself)
        if score is None or latest or score > self.selected.score:
            weights = {k: v.detach().cpu().clone() for k, v in self.evaluated.state_dict().items()}
            self.selected = Selected(-math.inf if score is None else score, step, weights)
        self.sums, self.since = {}, step
        unseen = on_unseen(self.evaluated, self.dataset, self.spec, self.fabric) if step == last else None
        traced = trace(self.evaluated, self.dataset, self.fabric) if trace else None
        if self.fabric.is_global_zero:
            now: dict[str, Any] = {"stage": self.stage, "step": step}
            more: dict[str, Any] = {"averaged": averaged, "trace": traced, "unseen": unseen}
            record = Evaluation(**now, seconds=round(seconds, 3), losses=losses, **raw, **more)
            self.folder.append_record(record)
            state = {
                "seconds": seconds,
                "algorithm": self.algorithm.state_dict(),
                "averaged": self.averaged.state_dict() if self.averaged else None,
                "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
                "random": torch.get_rng_state(),
                "random_cuda": torch.cuda.get_rng_state_all(),
                "selected": vars(self.selected),
            }
            self.folder.save("checkpoint.pt", now | state)

    def update(self, step: int, stream: Iterator[DomainBatch]) -> None:
        """One step, after a full pass over the training set where the algorithm asks for one."""
        algorithm, fabric = self.algorithm, self.fabric
        for group in (group for one in self.optimizers for group in one.param_groups if self.factors):
            group["lr"] *= self.factors[step] / (self.factors[step - 1] if step else 1)
        try:
            if algorithm.refresh_due(step):
                share = fabric.global_rank, fabric.world_size
                own = stream_statistics(algorithm, self.dataset, algorithm.statistics(), share)
                algorithm.refresh(merged(own) if fabric.world_size > 1 else own)
            batch = next(stream)

            def update() -> dict[str, Tensor]:
                with fabric.autocast():
                    return algorithm.update(batch, self.wrapped, self.backward)

            with unwritten(batch, update) if self.users else nullcontext():
                losses = update()
            algorithms.check_terms(losses)
        except algorithms.WrongTerms as error:
            raise ValueError(f"{self.named}: {error}") from error
        except NotFinite as error:
            _means(self.sums, self.since, step)  # a term that is already NaN is the better explanation
            raise Diverged(f"step {step}: {error}. {SMALLER}") from error
        if self.averaged:
            self.averaged.add(algorithm)
        for name, value in losses.items():
            if step == 0 and not bool(value.isfinite()):  # not caused by the learning rate
                found = f"the loss term {name!r} is {value.item()} at the first step, before the weights have changed"
                raise Diverged(f"{self.named}: {found}. Look for a division by zero, a log of zero or extreme inputs")
            total, number = self.sums.get(name, (0.0, 0))
            self.sums[name] = total + value.detach(), number + 1


def _evaluate(algorithm: Algorithm, dataset: DomainDataset, fabric: AnyFabric, on: str) -> dict[str, Any]:
    said = {name: split_answers(algorithm, dataset, split, on, fabric) for name, split in EVALUATED.items()}
    return split_accuracies(said, on)


def _means(sums: dict[str, tuple[Tensor | float, int]], first: int, last: int) -> dict[str, float]:
    means = {name: float(total) / number for name, (total, number) in sums.items()}
    for name, value in means.items():
        if not math.isfinite(value):
            raise Diverged(f"the loss term {name!r} became {value} between steps {first} and {last}. {SMALLER}")
    return means

"""From a spec to a result: data, stage one, second stage, test accuracy, transferability."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from crosstail.data import Augment
from crosstail.metrics import Answers, value_on
from crosstail.metrics._calibration import Calibration, calibrated
from crosstail.progress import Progress
from crosstail.storage import only_process
from crosstail.training import user_file
from crosstail.training.devices import ONE, Devices, fabric_of, wait_for
from crosstail.training.evaluation import graph_features, graph_of, traced, transferability
from crosstail.training.folder import MODEL, RESULT, RunFolder
from crosstail.training.held_out import held_out, predictions, save_predictions
from crosstail.training.loop import train
from crosstail.training.memory import explain_out_of_memory
from crosstail.training.model import build_algorithm, load_model
from crosstail.training.resolve import first_stage_learns, resolve, steps_of_stages, unreached_phases
from crosstail.training.result import make_result
from crosstail.training.run import Run
from crosstail.training.run_data import Inputs, input_shape, load_inputs
from crosstail.training.second_stage import run_second_stage, scoring
from crosstail.training.spec import RunSpec
from crosstail.training.tuned_share import TunedPart
from crosstail.training.used_samples import UsedSamples


def train_run(
    spec: RunSpec,
    out: Path,
    *,
    progress: Progress | None = None,
    inputs: Inputs | None = None,
    devices: Devices = ONE,
    keep: bool = True,
    leased: bool = False,
    after: Path | None = None,
) -> Run:
    """Train in a folder; a finished run returns at once, an unfinished one resumes.

    `inputs` is what `load_inputs` returns, if it is in memory already. With several devices, the other processes
    run the same program up to here and then join in. Without `keep`, the probabilities of held-out samples, by far the
    largest file, are not stored; fitting again with it adds them. A folder in which another process trains is refused,
    unless the caller has a lease on it, as in a sweep. A second stage begins `after` the finished run of its first one,
    if there is one.
    """
    spec, folder = resolve(spec), RunFolder(out)
    started = folder.holds(spec)
    with explain_out_of_memory(
        f"--batch-size (now {spec.batch_size} per domain), --width, --resolution, or --accumulate 4"
    ):
        inputs = load_inputs(spec) if inputs is None else inputs
        if started:
            folder.check_data(inputs.facts())
            user_file.keep(spec, folder)
            finished = folder.result()
            if finished is not None:
                folder.clear()  # a kill may have come right after the result
                UsedSamples.keep(inputs.samples, folder)
                run = Run(out, result=finished, inputs=inputs)
                if run.held_out is None and keep and spec.stop_at is None:
                    model = load_model(folder, inputs.embedded(progress), trust=True)
                    informed = finished.known is not None
                    _, run.held_out = held_out(model, inputs.embedded(), informed=informed, shots=finished.shots)
                    run.held_out.save(folder)
                if run.held_out is not None and run.calibration is None:
                    run.calibration = run.held_out.calibration()
                    folder.calibrate(run.calibration)
                return run
        with threads(1 if inputs.embedded(progress).kind.light else None), ExitStack() as held:
            return _train_stages(spec, inputs, folder, None if leased else held, progress, devices, keep, after)


def _train_stages(
    spec: RunSpec,
    inputs: Inputs,
    folder: RunFolder,
    held: ExitStack | None,
    progress: Progress | None,
    devices: Devices,
    keep: bool,
    after: Path | None,
) -> Run:
    dataset = inputs.embedded()
    algorithm = build_algorithm(spec, input_shape(dataset), dataset.counts("train"))
    part = TunedPart(spec, algorithm) if spec.stages else None
    if devices.several and algorithm.unshared:
        raise ValueError(f"{spec.algorithm} cannot be trained by several processes: {algorithm.unshared}")
    fabric = fabric_of(devices, spec.precision)
    algorithm.chunks = devices.chunks
    if devices.compile:
        algorithm.backbone.compile()
    fabric.to_device(algorithm)
    if fabric.is_global_zero:
        folder.open(spec, inputs.facts())  # only now: a mistake in the spec must not leave a folder behind
        if held is not None:
            held.enter_context(only_process(folder.path))
        user_file.keep(spec, folder)
        UsedSamples.keep(inputs.samples, folder)
    fabric.barrier()
    common: dict[str, Any] = {"folder": folder, "fabric": fabric, "progress": progress}

    common["checkpoint"] = folder.load("checkpoint.pt")
    first = folder.load("stage_one.pt")
    if not first_stage_learns(spec):
        first = {"weights": algorithm.state_dict(), "step": 0}
    if first is None and after is not None:
        first = folder.begin_after(RunFolder(after))
        common["checkpoint"] = None
    if first is None:
        drawn = spec.augment and not spec.stages  # kept activations are mirrored as views
        augment = Augment(resolution=dataset.x.shape[1], seed=spec.seed) if drawn else None
        # Only in stage one: the second stage does not move the features.
        trace = traced if spec.trace else None
        last = steps_of_stages(spec)[0]
        first = vars(train(algorithm, dataset, spec, stage=1, last=last, augment=augment, trace=trace, **common))
        if fabric.is_global_zero:
            folder.save("stage_one.pt", first)
        common["checkpoint"] = None  # overwritten since
    algorithm.load_state_dict(first["weights"])
    tuned = part.trained() if part else None
    steps, shared = [first["step"]], True
    if spec.second_stage:
        algorithm, step, scored, chosen, shared = run_second_stage(spec, algorithm, dataset, part, **common)
        steps.append(step)
        tuned = chosen or tuned
    else:
        scored = held_out(algorithm, dataset, **scoring(spec, algorithm), fabric=fabric)
    own = shared or fabric.is_global_zero
    z = graph_features(algorithm, dataset, fabric if shared else None) if own else None
    if scored is None or not fabric.is_global_zero:
        wait_for(folder.path / RESULT)
        return Run(folder.path, inputs=inputs)
    every, kept = scored
    checksum = hashlib.sha256(folder.save(MODEL, algorithm.state_dict())).hexdigest()
    if keep:
        kept.save(folder)
    calibration, test = kept.calibration(), predictions(every.test)
    folder.calibrate(calibration)
    save_predictions(test, folder)
    result = make_result(
        spec,
        dataset,
        folder.records(),
        selected_steps=steps,
        informed=every if every.test.informed is not None else None,
        others=_as_they_come(kept.validation, calibration),
        tuned=tuned,
        transferability=transferability(graph_of(algorithm, dataset, kept=z)),
        hparams=spec.hparams,
        input_shape=list(input_shape(inputs.samples)),
        weights=inputs.frozen.weights if inputs.frozen else None,
        data=inputs.facts(),
        notes=[*(inputs.frozen or algorithm.backbone).notes, *inputs.notes(), *unreached_phases(spec)],
    )
    folder.finish(result)
    known = {"held_out": kept if keep else None, "calibration": calibration, "test": test, "inputs": inputs}
    return Run(folder.path, result=result, records=folder.records(), checksum=checksum, **known)


def _as_they_come(validation: Answers, given: Calibration) -> dict[str, float | None]:
    """The accuracy on validation where every pair is as frequent as in training, so that sweeps can select on it."""
    name = "as_they_come"
    return {name: value_on(calibrated(validation, given), name)} if len(validation) else {}


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Limit torch to a number of threads.

    A step on vectors takes a millisecond, and several threads on a busy machine wait for each other ten times as long.
    With one, results do not depend on the number of cores either.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)

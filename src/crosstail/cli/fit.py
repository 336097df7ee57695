"""crosstail fit: train one model."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.console import Console

from crosstail import discovery
from crosstail.cli._checks import check_spec, known_source
from crosstail.cli._imports import import_torch
from crosstail.cli._next import free, inputs_of, say_next
from crosstail.cli._own_folder import require_own
from crosstail.cli._parameters import Json
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import Data, RunOptions
from crosstail.training.spec import Accelerator

if TYPE_CHECKING:
    from crosstail.training import RunSpec


def fit(
    dataset: Data,
    /,
    *,
    out: Path,
    options: Annotated[RunOptions, Parameter(name="*")] = RunOptions(),  # noqa: B008 - immutable
    selected: Annotated[Path | None, Parameter(name="--hparams")] = None,
    accelerator: Accelerator = "auto",
    devices: int = 1,
    nodes: int = 1,
    accumulate: int = 1,
    compiled: Annotated[bool, Parameter(name="--compile")] = False,
    log: str | None = None,
    refit: bool = False,
    as_json: Json = False,
) -> None:
    """Train a model that works for every (domain, class) pair.

    Example: `crosstail fit photos/ --algorithm boda --second-stage retrain --out run`

    Args:
        out: Folder of the run; the same command again resumes it or shows the result.
        selected: Hyperparameters from a file that `crosstail select` wrote; --hp overrides them.
        accelerator: cpu, cuda, mps, or auto for the best available.
        devices: Number of processes per machine that share every batch, one device each.
        nodes: Number of machines; start the command on each with torchrun or srun.
        accumulate: Split each batch into this many parts to save memory.
        compiled: Compile the network with torch.compile.
        log: Also write a log: csv (RUN/log.csv), tensorboard (RUN/tensorboard) or mlflow.
        refit: Afterwards, train the final model on every sample, in OUT/refit, for the median of the selected steps.
    """
    typed = options.spec(dataset=known_source(dataset), hparams={})
    check_spec(typed)
    if log is not None:
        log = discovery.known("crosstail.training.logs", log, "log")
    if selected is not None and not selected.is_file():
        raise FileNotFoundError(f"{selected}: there is no such file")
    import_torch()

    from crosstail import data
    from crosstail.data import protocols
    from crosstail.reports.document import terminal
    from crosstail.reports.run.command import options as options_of
    from crosstail.reports.run.how_trained import stopped
    from crosstail.reports.run.page import write_folds_page, write_page
    from crosstail.reports.run.reported import ReportedRun, reported
    from crosstail.reports.run.summary import folds_summary, result_summary
    from crosstail.reports.wording import estimate_note
    from crosstail.training.devices import Devices, is_main_process, spare_compiler
    from crosstail.training.fit import fit as fit_run
    from crosstail.training.folder import RunFolder
    from crosstail.training.inputs import load_inputs
    from crosstail.training.logs import logged
    from crosstail.training.probabilities import Probabilities
    from crosstail.training.refit import refit_spec, with_estimate
    from crosstail.training.resolve import resolve
    from crosstail.training.result import mean_counts, pooled_accuracy
    from crosstail.training.spec import RunSpec

    if not compiled:
        spare_compiler()
    chosen = _selected(selected, resolve(typed)) if selected else {}
    spec = resolve(replace(typed, hparams=chosen | options.hparams))
    if refit and spec.part:
        raise ValueError("--refit follows all runs of a protocol: remove --unseen, --fold and --stop-at")
    if refit:
        replace(spec, stop_at=())  # which is refused where a model on every sample is impossible
    machine = Devices(accelerator, devices, nodes, accumulate, compiled)
    with progress_bar(Console(stderr=True)) as progress:
        source = data.load_source(spec, progress)
    specs = protocols.parts(spec, source)
    places = [out] if len(specs) == 1 else [out / (one.unseen or f"fold-{one.fold}") for one in specs]
    require_own(out, own=all((place / "spec.json").exists() for place in places))

    def train(one: RunSpec, place: Path, after: Sequence[ReportedRun] = ()) -> ReportedRun:
        with ExitStack() as stack:
            progress = stack.enter_context(progress_bar(Console(stderr=True), f"{one.part}:" if one.part else ""))
            if log and is_main_process():
                progress = stack.enter_context(logged(log, one, place, progress))
            shown = progress if is_main_process() else None
            run = fit_run(one, place, progress=shown, inputs=load_inputs(one, source), devices=machine)
        if after:
            kept = [part for before in after if (part := before.probabilities)]
            held_out = Probabilities.pooled(kept) if len(kept) == len(after) else None
            run = with_estimate(run, [before.result for before in after], held_out)
        found = reported(run)
        if is_main_process():
            write_page(found)
        return found

    runs = [train(one, place) for one, place in zip(specs, places, strict=True)]
    results = [run.result for run in runs]
    final = train(refit_spec(results), out / "refit", runs).result if refit else None
    if not is_main_process():
        return
    if len(results) > 1:
        write_folds_page(out, runs)
    if as_json:
        counts = mean_counts(results)
        several: dict[str, Any] = {"test": pooled_accuracy(results, counts), "runs": results, "refit": final}
        if any(result.known for result in results):
            several["known"] = {"test": pooled_accuracy(results, counts, known=True)}
        print(msgspec.json.encode(results[0] if len(results) == 1 and final is None else several).decode())
        return
    console = Console(markup=False, highlight=False)
    for note in dict.fromkeys(note for result in results for note in (*result.data.notes, *result.notes)):
        console.print(f"note: {note}", soft_wrap=True)
    if spec.trace and not any(record.trace for record in RunFolder(places[0]).records()):
        console.print("note: this run was finished before without --trace; use another --out to train it with a trace")
    terminal.show([result_summary(results[0])] if len(results) == 1 else folds_summary(results), console)
    if final is not None:
        console.print(f"\n{out / 'refit'}: {estimate_note(final)} {stopped(final)}")
    console.print(f"The page is in {out / 'report.html'}.", soft_wrap=True)
    tested = final is None and any(any(row) for row in results[0].test.totals)
    if len(results) > 1 and final is None:  # the same again, and a final model
        words = [*options_of(replace(typed, hparams=options.hparams)), *(["--hparams", selected] if selected else [])]
        say_next(console, "fit", typed.dataset, *words, "--refit", "--out", out)
    elif tested:
        read = options_of(typed, only=("columns", "group_by", "skip_broken"))
        say_next(console, "evaluate", out, typed.dataset, *read, "--split", "test")
    elif inputs := inputs_of(typed.dataset, source, typed.columns):
        say_next(console, "predict", out / "refit" if final else out, *inputs, "--out", free("classes.csv"))


def _selected(file: Path, spec: "RunSpec") -> dict[str, Any]:
    """The hyperparameters in a file {method: {name: value}}; with dg, for the unseen domain and seed if it has them."""
    from crosstail.storage import read_json
    from crosstail.sweeps.plan import search_name
    from crosstail.training.resolve import resolve

    found, own = read_json(file, dict[str, dict[str, Any]]), search_name(spec.method, spec)
    for name in (own, spec.method):
        if name in found:
            try:
                resolve(replace(spec, hparams=found[name]))
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from None
            return found[name]
    raise ValueError(f"{file} has no hyperparameters for {own}, only for {'; '.join(found)}")

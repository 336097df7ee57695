"""crosstail fit: train one model."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.console import Console

from crosstail import discovery
from crosstail.cli._checks import check_spec, known_source
from crosstail.cli._next import say_all, say_next, say_predict
from crosstail.cli._progress import after_notes, progress_bar
from crosstail.cli._run_options import Data, RunOptions, options
from crosstail.cli._verb import Json, described, import_torch
from crosstail.training.spec import Accelerator
from crosstail.workflows._output import unused_path


@described
def fit(
    dataset: Data,
    /,
    *,
    out: Path,
    options: Annotated[RunOptions, options()] = RunOptions(),  # noqa: B008 - immutable
    hparams: Path | None = None,
    critical: tuple[str, ...] = (),
    accelerator: Accelerator = "auto",
    devices: int = 1,
    nodes: int = 1,
    accumulate: int = 1,
    compiled: Annotated[bool, Parameter(name="--compile")] = False,
    log: str | None = None,
    refit: bool = False,
    dry_run: bool = False,
    as_json: Json = False,
) -> None:
    """Example: `crosstail fit photos/ --algorithm boda --second-stage retrain --out run`

    Args:
        hparams: Hyperparameters from a file that `crosstail select` wrote; --hp overrides them.
        critical: A class that must not be missed, such as mel: pages show its recall at each site first; repeatable.
            With a recall (mel=0.95), `predict` flags as many inputs as it takes to find this share of them.
        accelerator: cpu, cuda, mps, or auto for the best available.
        devices: Number of processes per machine that share every batch, one device each.
        nodes: Number of machines; start the command on each with torchrun or srun.
        accumulate: Split each batch into this many parts to save memory.
        compiled: Compile the network with torch.compile.
        dry_run: Only estimate time, memory and disk space."""
    spec = options.spec(dataset=known_source(dataset))
    check_spec(spec)
    if log is not None:
        log = discovery.known("crosstail.training.logs", log, "log")
    if hparams is not None and not hparams.is_file():
        raise FileNotFoundError(f"{hparams}: there is no such file")
    import_torch()

    from crosstail.reports.document import terminal
    from crosstail.reports.run.command import inputs_of
    from crosstail.reports.run.command import options as options_of
    from crosstail.reports.run.command import words as words_of
    from crosstail.reports.run.critical import critical_tables, flags_of_run
    from crosstail.reports.run.how_trained import stopped
    from crosstail.reports.run.summary import folds_summary, result_summary
    from crosstail.reports.run.tested import Tested
    from crosstail.reports.run.two_questions import summary
    from crosstail.reports.run.verdict import FOLDS, wants_folds
    from crosstail.reports.wording import estimate_note
    from crosstail.training.devices import Devices, is_main_process, spare_compiler
    from crosstail.workflows.fit import fit

    if not compiled:
        spare_compiler()
    machine = Devices(accelerator, devices, nodes, accumulate, compiled)
    early, untold, told = Console(stderr=True), list[str](), list[str]()
    with progress_bar(early) as shown:
        progress = after_notes(early, untold, told, shown)
        how: dict[str, Any] = {"hparams": hparams, "critical": critical, "refit": refit, "log": log}
        fitted = fit(spec, out, **how, dry_run=dry_run, devices=machine, progress=progress, tell=untold.append)
    if not is_main_process():
        return
    if dry_run:
        print(untold.pop())
        return
    if as_json:
        print(msgspec.json.encode(fitted.to_json()).decode())
        return
    console = Console(markup=False, highlight=False)
    say_all(console, "note", (note for note in fitted.notes if note not in told))
    results, final = fitted.results, fitted.final
    questions = fitted.questions
    tables = [result_summary(results[0])] if len(results) == 1 else folds_summary(results)
    flags = flags_of_run(fitted.run)[:1] if final or len(results) == 1 else []
    tables = [*critical_tables(Tested.of_results(results), questions, flags, narrow=True), *tables]
    terminal.show([*tables, *([summary(questions)] if questions else [])], console)
    if final is not None:
        console.print(f"\n{final.path}: {estimate_note(final.result)} {stopped(final.result)}")
    console.print(f"The page is in {out / 'report.html'}.", soft_wrap=True)
    leaks = results[0].data.leaks
    words: list[Any] = [*options_of(spec.with_group(leaks)), *words_of(critical=list(critical))]
    words += ["--hparams", hparams] if hparams else []
    if leaks:
        say_next(console, "fit", spec.dataset, *words, *["--refit"] * refit, "--out", unused_path(str(out)))
    elif len(results) > 1 and final is None:  # the same again, and a final model
        say_next(console, "fit", spec.dataset, *words, "--refit", "--out", out)
    elif final is None and (why := wants_folds(results[0])):
        console.print(why)
        say_next(
            console, "fit", spec.dataset, *words, "--folds", FOLDS, "--refit", "--out", unused_path(f"{out}-final")
        )
    elif used := fitted.runs[0].dataset:
        say_predict(console, fitted.run.path, inputs_of(spec, used))

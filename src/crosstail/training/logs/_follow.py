"""A log follows the records that a run writes; the run does not know about it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from crosstail import discovery
from crosstail.training.devices import is_main_process
from crosstail.training.folder import RunFolder
from crosstail.training.logs._log import Log, hyperparameters, points
from crosstail.training.progress import Progress
from crosstail.training.resolve import resolve
from crosstail.training.spec import RunSpec


@contextmanager
def logged(kind: str, spec: RunSpec, out: Path, progress: Progress) -> Iterator[Progress]:
    """Give a progress function for a run inside this context; evaluations are logged soon after they are recorded.

    A log that cannot be written does not stop the run: it is retried after the next evaluation, and at the end.
    """
    log: Log = discovery.find("crosstail.training.logs", kind, "log").open_log(out)
    hparams = hyperparameters(resolve(spec))

    def update() -> None:
        folder = RunFolder(out)
        result = folder.result()
        log.write(hparams, points(folder.records(), result), result is not None)

    before = RunFolder(out).recorded()  # a resumed run may drop and repeat some of these records

    def report(what: str, done: int, total: int) -> None:
        nonlocal before
        progress(what, done, total)
        now = RunFolder(out).recorded()
        if now != before and is_main_process():
            before = now
            with suppress(Exception):
                update()

    with closing(log):
        yield report
        if is_main_process():
            try:
                update()
            except Exception as error:
                raise OSError(
                    f"the run is finished, but its {kind} log is not: {error}. Repeat the command to complete it"
                ) from error

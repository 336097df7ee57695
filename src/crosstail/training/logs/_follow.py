"""A log follows the records of a run; the run does not know of it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from crosstail import discovery
from crosstail.training.devices import is_main_process
from crosstail.training.folder import RunFolder
from crosstail.training.logs._log import Log, hyperparameters, points
from crosstail.training.progress import Progress
from crosstail.training.spec import RunSpec


@contextmanager
def logged(kind: str, spec: RunSpec, out: Path, progress: Progress) -> Iterator[Progress]:
    """Give a progress function for a run that is made within; its evaluations are logged soon after they are recorded.

    A log that cannot be written does not stop the run: it is tried again after the next evaluation, and in the end.
    """
    log: Log = discovery.find("crosstail.training.logs", kind, "log").open_log(out)
    folder, hparams = RunFolder(out), hyperparameters(spec)

    def update() -> None:
        result = folder.result()
        log.write(hparams, points(folder.records(), result), result is not None)

    before = folder.recorded()  # what is there before a run goes on, it may drop and do again

    def report(what: str, done: int, total: int) -> None:
        nonlocal before
        progress(what, done, total)
        now = folder.recorded()
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
                    f"the run is finished, its {kind} log is not: {error}. The same command again completes it"
                ) from error

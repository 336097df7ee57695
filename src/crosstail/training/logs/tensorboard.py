"""Event files in RUN/tensorboard: `tensorboard --logdir RUN` shows the curves and the hyperparameters."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from crosstail.training.logs import Hparams, Log, Point

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter
    from torch.utils.tensorboard.summary import hparams as session
except ModuleNotFoundError:
    raise ValueError("--log tensorboard needs TensorBoard: pip install 'crosstail[tensorboard]'") from None

METRICS = [f"final/{split}/{view}" for split in ("validation", "test") for view in ("pair_average", "worst_pair")]
"""What its hyperparameter page compares runs by."""


class TensorBoard(Log):
    """Each process adds its own event file, with what the existing ones do not contain."""

    def __init__(self, out: Path) -> None:
        self._place = str(out / "tensorboard")
        self._writer: Any = None
        self._points: set[tuple[str, int]] = set()
        self._session: set[str] = set()
        if Path(self._place).is_dir():
            found: Any = EventAccumulator(self._place, size_guidance={"scalars": 0})
            found.Reload()
            self._points = {(tag, event.step) for tag in found.Tags()["scalars"] for event in found.Scalars(tag)}
            with suppress(KeyError):  # there is none
                self._session = set(found.PluginTagToContent("hparams"))

    def write(self, hparams: Hparams, points: list[Point], finished: bool) -> None:
        # The metrics to compare, the start of the run, and its end.
        parts: Any = session(hparams, dict.fromkeys(METRICS, 0.0))  # type: ignore[no-untyped-call]
        new_parts = [part for part in parts[: 2 + finished] if part.value[0].tag not in self._session]
        new_points = [point for point in points if (point.name, point.step) not in self._points]
        if not new_parts and not new_points:
            return
        if self._writer is None:
            self._writer = SummaryWriter(self._place)
        for part in new_parts:
            self._writer.file_writer.add_summary(part)
            self._session.add(part.value[0].tag)
        for point in new_points:
            self._writer.add_scalar(point.name, point.value, point.step)
            self._points.add((point.name, point.step))
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


LOG = TensorBoard

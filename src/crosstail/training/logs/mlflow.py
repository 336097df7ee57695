"""A run of the MLflow experiment `crosstail`, at $MLFLOW_TRACKING_URI or else in ./mlruns."""

import os
import time
import uuid
from pathlib import Path

from crosstail.training.folder import RunFolder
from crosstail.training.logs._log import Hparams, Point

SETTINGS = {  # what MLflow is told, some of it when it is imported
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
os.environ.update(SETTINGS | os.environ)

try:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, Run
except ModuleNotFoundError:
    raise ValueError("--log mlflow needs MLflow: pip install 'crosstail[mlflow]'") from None

EXPERIMENT, TAG = "crosstail", "crosstail.folder"
BATCH = 1000  # what MLflow takes at once


class MLflow:
    """The folder has a random name, by which its run is found again."""

    def __init__(self, out: Path) -> None:
        self._folder = RunFolder(out)
        self._client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or Path("mlruns").absolute().as_uri())
        self._client.get_experiment_by_name(EXPERIMENT)  # tells at once if there is no such server
        self._run: Run | None = None
        self._points: set[tuple[str, int]] = set()

    def write(self, hparams: Hparams, points: list[Point], finished: bool) -> None:
        """Add what the run of MLflow does not have."""
        run = self._run = self._run or self._open()
        number = run.info.run_id
        if not run.data.params:
            self._client.log_batch(number, params=[Param(name, str(value)) for name, value in hparams.items()])
            run = self._run = self._client.get_run(number)
        new = [point for point in points if (point.name, point.step) not in self._points]
        now = int(1000 * time.time())
        for i in range(0, len(new), BATCH):
            part = new[i : i + BATCH]
            self._client.log_batch(number, [Metric(point.name, point.value, now, point.step) for point in part])
            self._points |= {(point.name, point.step) for point in part}
        if finished and run.info.status != "FINISHED":
            self._client.set_terminated(number)

    def close(self) -> None:
        """Nothing is open."""

    def _open(self) -> Run:
        """Find the run of this folder, and what it has, or make one."""
        if not (self._folder.path / "mlflow.json").exists():
            self._folder.write_json("mlflow.json", {TAG: uuid.uuid4().hex})
        name = self._folder.read_json("mlflow.json")[TAG]
        known = self._client.get_experiment_by_name(EXPERIMENT)
        experiment = known.experiment_id if known else self._client.create_experiment(EXPERIMENT)
        found = self._client.search_runs([experiment], f"tags.`{TAG}` = '{name}'")
        if not found:
            return self._client.create_run(experiment, tags={TAG: name}, run_name=str(self._folder.path))
        for metric in found[0].data.metrics:
            history = self._client.get_metric_history(found[0].info.run_id, metric)
            self._points |= {(metric, point.step) for point in history}
        return found[0]


def open_log(out: Path) -> MLflow:
    """The run of MLflow that belongs to a folder."""
    return MLflow(out)

"""A run in the MLflow experiment `crosstail`, at $MLFLOW_TRACKING_URI or else in ./mlruns."""

import os
import time
import uuid
from pathlib import Path

from crosstail.storage import read_json, write_json
from crosstail.training.logs._log import Hparams, Log, Point

SETTINGS = {  # read by MLflow, some when it is imported
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
BATCH = 1000  # MLflow's limit per call


class MLflow(Log):
    """The run's folder keeps a random identifier, by which its MLflow run is found again."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or Path("mlruns").absolute().as_uri())
        self._client.get_experiment_by_name(EXPERIMENT)  # fails at once if there is no such server
        self._run: Run | None = None
        self._points: set[tuple[str, int]] = set()

    def write(self, hparams: Hparams, points: list[Point], finished: bool) -> None:
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

    def _open(self) -> Run:
        """Find the MLflow run of this folder and what it contains, or create one."""
        file = self._out / "mlflow.json"
        if not file.exists():
            write_json(file, {TAG: uuid.uuid4().hex})
        name = read_json(file, dict[str, str])[TAG]
        known = self._client.get_experiment_by_name(EXPERIMENT)
        experiment = known.experiment_id if known else self._client.create_experiment(EXPERIMENT)
        found = self._client.search_runs([experiment], f"tags.`{TAG}` = '{name}'")
        if not found:
            return self._client.create_run(experiment, tags={TAG: name}, run_name=str(self._out))
        for metric in found[0].data.metrics:
            history = self._client.get_metric_history(found[0].info.run_id, metric)
            self._points |= {(metric, point.step) for point in history}
        return found[0]


LOG = MLflow

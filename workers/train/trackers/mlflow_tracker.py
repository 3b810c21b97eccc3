"""MLflow, at MLFLOW_TRACKING_URI; its credentials are MLFLOW_TRACKING_USERNAME, _PASSWORD or _TOKEN."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.train.trackers.tracker import EndState, Point, RunDescription, Tracker, require_module

_STATUS: dict[EndState, str] = {"succeeded": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}
_MOST_METRICS = 1000  # of one request
_MOST_PARAMETERS = 100
_LONGEST = 500  # characters of a parameter's value; older servers take no more
# Else a server that is down is asked for many minutes before an error says so.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "30", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}


class MLflowTracker(Tracker):
    def __init__(self, description: RunDescription, into: Path | None) -> None:
        uri = into.resolve().as_uri() if into is not None else os.environ.get("MLFLOW_TRACKING_URI", "")
        if not uri:
            raise RewardError(
                "MLFLOW_TRACKING_URI is not set in the environment of the worker; set it to the address of the MLflow "
                "server, such as http://127.0.0.1:5000, and restart the worker."
            )
        for name, value in _PATIENCE.items():
            os.environ.setdefault(name, value)
        mlflow = require_module("mlflow", "mlflow")
        self._entities = require_module("mlflow.entities", "mlflow")
        self._client = mlflow.MlflowClient(tracking_uri=uri)
        run = self._continued(description) if description.resume_id else self._created(description)
        self.id = run.info.run_id
        if uri.startswith(("http://", "https://")):
            self.url = f"{uri.rstrip('/')}/#/experiments/{run.info.experiment_id}/runs/{self.id}"

    def log(self, points: Sequence[Point]) -> None:
        now = int(time.time() * 1000)
        metrics = [
            self._entities.Metric(name, value, now, step)
            for step, numbers in points
            for name, value in numbers.items()
        ]
        for start in range(0, len(metrics), _MOST_METRICS):
            self._client.log_batch(self.id, metrics=metrics[start : start + _MOST_METRICS])

    def log_file(self, path: Path, name: str) -> None:
        folder = name.rpartition("/")[0]
        self._client.log_artifact(self.id, str(path), folder or None)

    def end(self, state: EndState, error: str) -> None:
        if error:
            self._client.set_tag(self.id, "touchstone.error", error[:_LONGEST])
        if state in _STATUS:  # an interrupted run goes on: it stays RUNNING
            self._client.set_terminated(self.id, _STATUS[state])

    def _continued(self, description: RunDescription) -> Any:
        self._client.update_run(description.resume_id, status="RUNNING")
        return self._client.get_run(description.resume_id)

    def _created(self, description: RunDescription) -> Any:
        name = description.project or os.environ.get("MLFLOW_EXPERIMENT_NAME") or description.default_project
        experiment = self._client.get_experiment_by_name(name)
        if experiment is not None and experiment.lifecycle_stage != "active":
            raise RewardError(
                f"the experiment {name!r} is deleted in MLflow; restore it there, or name another experiment."
            )
        id_ = experiment.experiment_id if experiment is not None else self._client.create_experiment(name)
        run = self._client.create_run(id_, tags=description.tags, run_name=description.name)
        parameters = description.text_parameters(_LONGEST)
        for keys in _in_parts(list(parameters), _MOST_PARAMETERS):
            self._client.log_batch(
                run.info.run_id, params=[self._entities.Param(key, parameters[key]) for key in keys]
            )
        return run


def _in_parts(keys: list[str], size: int) -> list[list[str]]:
    return [keys[start : start + size] for start in range(0, len(keys), size)]

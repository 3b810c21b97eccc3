"""The processes that send a run to experiment trackers, next to the one that trains.

Trackers are an extra: whatever happens to one of them, training goes on, and the run's page and log name the problem.
Addresses and secrets of trackers are in the environment of the worker; they are given to these processes only, and are
never stored.
"""

import json
import logging
import os
import signal
import subprocess
import time
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.urls import reverse

from apps.core.database.outage import is_outage
from apps.core.distributions import installed_version
from apps.core.processes import core_subprocess
from apps.training import services
from apps.training.models import TrainingRun
from apps.training.tracker_options import TrackerOptions
from workers.schema.trackers import TRACKER_PACKAGES, VARIABLES, printable

log = logging.getLogger(__name__)

CHILD = "workers.train.trackers"
GRACE = 60.0  # seconds that trackers have to send the end of a run
_UPLOAD_RATE = 5e6  # bytes a second; with the weights of the model they have as much longer
_FOLDER = "tracking"
# What the process of a tracker gets of the worker's environment.
_PREFIXES: dict[str, tuple[str, ...]] = {
    "mlflow": ("MLFLOW_", "DATABRICKS_"),
    "wandb": ("WANDB_",),
    "tensorboard": (),
    "trackio": ("TRACKIO_", "HF_"),
}
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE")
_TRACKIO_PLACES = ("TRACKIO_DIR", "TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")


def seconds_to_end(options: TrackerOptions, run_directory: Path, state: str) -> float:
    """What trackers have for the end of a run, longer where the weights of the model are sent."""
    model = run_directory / "model"
    if state != "succeeded" or not options.weights or not model.is_dir():
        return GRACE
    return GRACE + sum(path.stat().st_size for path in model.iterdir() if path.is_file()) / _UPLOAD_RATE


class RunTrackers:
    """The tracker processes of one attempt of a run."""

    def __init__(self, run: TrainingRun, folder: Path) -> None:
        self._run, self._folder = run, folder / _FOLDER
        self._options = TrackerOptions.read(run.tracker_options)
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._states: dict[str, dict[str, str]] = {
            name: dict(state) for name, state in run.tracker_states.items()
        }
        self._stored: dict[str, Any] = deepcopy(run.tracker_states)
        self._refused: dict[str, Any] | None = None  # states that the database did not take
        self._has_ended = False

    def start(self) -> None:
        """Start one process for each tracker of the run. Problems are recorded, never raised."""
        if not self._options.trackers:
            return
        try:
            self._prepare()
        except OSError as error:
            self._fail_all(f"The files for the tracker could not be written: {error.strerror}.")
            return
        for name in self._options.trackers:
            self._note(name)
            try:
                self._children[name] = core_subprocess.start(
                    CHILD,
                    [str(self._folder.parent), "--to", name, "--follow", *self._into(name)],
                    log=self._folder / f"{name}.log",
                    given=tracker_environment(name),
                )
                self._pid_path(name).write_text(str(self._children[name].pid), encoding="utf-8")
            except OSError as error:
                self._note(
                    name, problem=f"The process of the tracker could not be started: {error.strerror}."
                )
        self._store()

    def record(self) -> None:
        """Store what changed since the last time."""
        for name, child in self._children.items():
            state = self._read_state(name)
            if child.poll() not in (None, core_subprocess.OK) and not state.get("problem"):
                state["problem"] = (
                    f"The process of the tracker {core_subprocess.how_it_ended(child.returncode)}."
                )
            self._note(name, **state)
        self._store()

    def end(self, state: str, *, error: str = "", grace: float | None = None) -> None:
        """Tell the trackers how the run ended, wait for them, end those that take too long, and store all that."""
        self._has_ended = True
        if not self._children:
            self._store()
            return
        grace = seconds_to_end(self._options, self._folder.parent, state) if grace is None else grace
        try:
            _write_json(self._folder / "end.json", {"state": state, "error": error})
        except OSError:
            grace = 0.0  # the disk is full: they cannot be told
        deadline = time.monotonic() + grace
        for child in self._children.values():
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, deadline - time.monotonic()))
        late = [name for name, child in self._children.items() if child.poll() is None]
        self.kill()
        for name in late:
            self._children.pop(name)
            state_read = self._read_state(name)
            problem = state_read.pop("problem", "") or (
                f"The tracker did not take the end of the run within {grace:.0f} seconds."
            )
            self._note(name, **state_read, problem=problem)
        self.record()
        self._children = {}

    def kill(self) -> None:
        for child in self._children.values():
            core_subprocess.kill(child)

    def _pid_path(self, name: str) -> Path:
        return self._folder / f"{name}.pid"

    def _end_others(self) -> None:
        """End the tracker processes of an attempt that lost its claim, whose worker hangs: they would go on sending."""
        for name in self._options.trackers:
            with suppress(OSError, ValueError):
                pid = int(self._pid_path(name).read_text(encoding="utf-8"))
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if CHILD.encode() in command and str(self._folder.parent).encode() in command:
                    os.killpg(pid, signal.SIGKILL)

    def _prepare(self) -> None:
        self._folder.mkdir(exist_ok=True)
        self._end_others()
        (self._folder / "end.json").unlink(missing_ok=True)
        _write_json(self._folder / "description.json", describe(self._run, self._options))
        for name in self._options.trackers:
            state, path = self._states.get(name, {}), self._folder / f"{name}.json"
            if state.get("id") and not path.is_file():  # begun by a worker on another machine
                _write_json(path, {"id": state["id"], "url": state.get("url", "")})

    def _into(self, name: str) -> list[str]:
        if name == "tensorboard":
            return ["--into", str(settings.TENSORBOARD_DIR)]
        if name == "wandb":
            return ["--into", str(self._folder)]
        if name == "trackio" and not any(os.environ.get(each) for each in _TRACKIO_PLACES):
            return ["--into", str(settings.HOME / "trackio")]
        return []

    def _read_state(self, name: str) -> dict[str, str]:
        path = self._folder / f"{name}.json"
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(state, dict):
            return {}
        return {key: printable(str(state.get(key, ""))) for key in ("id", "url", "problem")}

    def _fail_all(self, problem: str) -> None:
        for name in self._options.trackers:
            self._note(name, problem=problem)
        self._store()

    def _note(self, name: str, **changes: str) -> None:
        state = self._states.setdefault(name, {"id": "", "url": "", "problem": ""})
        problem = changes.get("problem", state["problem"])
        if problem and problem != state["problem"]:
            title = TRACKER_PACKAGES[name].title
            log.warning("%s is not completely logged to %s: %s", self._run, title, problem)
            line = f"{title}: {problem}" if self._has_ended else f"{title}: {problem} Training continues."
            with suppress(OSError), (self._folder.parent / "log.txt").open("a", encoding="utf-8") as out:
                out.write(f"{line}\n")
        state |= changes

    def _store(self) -> None:
        """A write that fails is tried again at the next change, after an outage at once. Training goes on without."""
        if self._states in (self._stored, self._refused):
            return
        states = deepcopy(self._states)
        try:
            with transaction.atomic():
                services.record_tracker_states(run=self._run, states=states)
        except (DatabaseError, InterfaceError, ValueError) as error:
            log.warning("what became of %s at its trackers could not be stored: %s", self._run, error)
            if is_outage(error):
                connection.close()
            else:
                self._refused = states
        else:
            self._stored, self._refused = states, None


def describe(run: TrainingRun, options: TrackerOptions) -> dict[str, Any]:
    """What trackers are told of a run: `RunDescription` of workers.train.trackers. No path and no secret."""
    slug = run.project.slug
    page = settings.PUBLIC_URL + reverse("training:run-detail", args=[slug, run.pk])
    parameters = {
        **run.recipe,
        "recipe": run.recipe_name,
        "dataset": str(run.dataset_version),
        "dataset_hash": run.dataset_version.content_hash,
        "seed": run.seed,
        "parent": str(run.parent) if run.parent else "",
        "model": run.model_name,
    }
    return {
        "name": f"{slug}-run-{run.pk}",
        "project": options.project,
        "default_project": f"touchstone-{slug}",
        "parameters": parameters,
        "tags": {"touchstone.page": page, "touchstone.version": installed_version()},
        "weights": options.weights,
    }


def tracker_environment(name: str) -> dict[str, str]:
    """What the process of this tracker gets besides what every child process gets."""
    names = {*_PROXIES, *(each.lower() for each in _PROXIES), *settings.TRACKER_VARIABLES}
    from_files = {variable: value for variable, value in settings.TRACKER_SECRETS.items() if value}
    given = {
        variable: value
        for variable, value in {**from_files, **os.environ}.items()
        if variable.startswith(_PREFIXES[name]) or variable in names
    }
    return given | {
        VARIABLES: ",".join(settings.TRACKER_VARIABLES)
    }  # it takes their values out of what it tells


def _write_json(path: Path, value: Any) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(json.dumps(value), encoding="utf-8")
    scratch.replace(path)

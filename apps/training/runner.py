"""Executes a claimed run: a child process on a run directory, watched until it ends.

Every row the child causes is written behind the fence of the run's attempt. Whatever goes wrong here, the child does
not outlive it.
"""

import json
import logging
import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from apps.core.database.outage import is_outage
from apps.core.distributions import installed_version
from apps.core.errors import DomainError
from apps.core.jobs import shutdown
from apps.core.jobs.job_queue import (
    ClaimLost,
    Interrupted,
    JobState,
    finish,
    heartbeat_seconds,
    keep_heartbeat,
    renew_heartbeat,
)
from apps.core.processes import core_subprocess
from apps.core.storage.artifacts import delete_tree, stage, store_tree
from apps.core.storage.disk_space import in_words
from apps.core.storage.model_folders import without_paths
from apps.core.storage.storage_names import storage_name
from apps.datasets.selectors import data_folder
from apps.training import services
from apps.training.events import EventTail
from apps.training.models import RewardModel, TrainingRun
from apps.training.pretrained import with_folders
from apps.training.selectors import line_of, run_folder

log = logging.getLogger(__name__)

CHILD = "workers.train"
TICK = 0.5  # seconds between looks at the child
RESUME = "Resume goes on from the newest checkpoint."
LOG_TAIL = 8000  # bytes
GRACE = 120.0  # seconds a cancelled child may take to write its checkpoint


def execute(run: TrainingRun) -> None:
    """Run to its end. Raises ClaimLost when another worker took it, Interrupted in a worker that stops."""
    folder = run_folder(run)
    try:
        with keep_heartbeat(run) as heartbeat:
            core_subprocess.end_other_writer(folder, check=heartbeat.check)
            prepare(run, folder)
        status = core_subprocess.OK if _is_complete(folder) else _watch(run, folder)
        _forget_data(folder)
        _conclude(run, folder, status)
    except DomainError as error:
        _forget_data(folder)
        finish(run, JobState.FAILED, error=error.message)
    except OSError as error:
        if (sentence := in_words(error, folder)) is None:
            raise
        _forget_data(folder)
        finish(run, JobState.FAILED, error=f"{sentence} {RESUME}")


def prepare(run: TrainingRun, folder: Path) -> None:
    """The run directory as the core expects it. What an earlier attempt left (checkpoints) stays."""
    identity = f"run {run.pk} of {run.created_at.isoformat()}"
    if _identity(folder) != identity:  # left by another database that used this home
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "error.json").unlink(missing_ok=True)
    _link_tree(data_folder(run.dataset_version), folder / "data")
    parent = _link_parent(run.parent, folder / "parent") if run.parent is not None else {}
    config = {
        "run": identity,
        "recipe": run.recipe if run.parent is not None else with_folders(run.project, run.recipe),
        "seed": run.seed,
        "device": settings.TRAINING_DEVICE,
        "budget": None,
        "attempt": run.attempt,
        "snapshot": {"name": str(run.dataset_version), "hash": run.dataset_version.content_hash},
        "parent": parent,
        "code_version": installed_version(),
    }
    _write_whole(folder / "config.json", json.dumps(config, indent=2))


def _forget_data(folder: Path) -> None:
    """Remove an ended attempt's data: it must not outlive its dataset version. The next attempt links it again."""
    for name in ("data", "parent"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "hard-negatives.jsonl.zst").unlink(missing_ok=True)


def _link_parent(parent: RewardModel, folder: Path) -> dict[str, Any]:
    """The model whose weights are gone on from, and what it and those before it were trained on, where that is here."""
    if parent.deleted_at is not None:
        raise DomainError(
            f"{parent}, which this run goes on from, has been deleted; start one with another parent."
        )
    _link_tree(stage(parent.artifact), folder / "model")
    unknown = []
    for number, model in enumerate(line_of(parent)):
        dataset_version = model.training_run.dataset_version if model.training_run else None
        if dataset_version is None or dataset_version.withdrawn_at is not None:
            unknown.append(str(model))
        else:
            _link(data_folder(dataset_version) / "train.jsonl.zst", folder / f"seen-{number}.jsonl.zst")
    return {"name": str(parent), "unknown": unknown}


def _watch(run: TrainingRun, folder: Path) -> int:
    """Start the child and follow it; its exit status."""
    tail = EventTail(folder / "events.jsonl")
    services.forget_events(run=run, beyond=tail.lines_there())
    together = ["--processes", str(settings.TRAINING_PROCESSES)] if settings.TRAINING_PROCESSES > 1 else []
    child = core_subprocess.start(CHILD, [str(folder), *together], log=folder / "log.txt")
    log.info("%s, attempt %s, is process %s", run, run.attempt, child.pid)
    try:
        return _Watch(run, folder, child, tail).follow()
    finally:
        core_subprocess.kill(child)


class _Watch:
    """One child, its events carried into rows and the run's heart beaten, until it ends."""

    def __init__(
        self, run: TrainingRun, folder: Path, child: subprocess.Popen[bytes], tail: EventTail
    ) -> None:
        self._run, self._folder, self._child, self._tail = run, folder, child, tail
        self._unrecorded: list[tuple[int, dict[str, Any]]] = []
        self._beaten = 0.0
        self._asked: float | None = None  # when the child was asked to stop

    def follow(self) -> int:
        while True:
            ended = _wait(self._child)
            self._unrecorded += self._tail.read()
            try:
                self._record(last=ended is not None)
            except (DatabaseError, InterfaceError) as error:
                if not is_outage(error):
                    raise
                # The child needs no database. If it is away for long, the claim is lost: the next beat says so.
                log.warning("the database is away while %s trains; it goes on: %s", self._run, error)
                connection.close()
                if ended is not None:
                    raise
            if ended is not None:
                return ended
            if shutdown.is_asked():
                self._ask_to_stop()
            if self._asked is not None and time.monotonic() - self._asked > GRACE:
                core_subprocess.kill(self._child)

    def _record(self, *, last: bool) -> None:
        if self._unrecorded:
            services.record_events(run=self._run, events=self._unrecorded)
        if last or self._unrecorded or time.monotonic() - self._beaten >= heartbeat_seconds():
            changes: dict[str, Any] = {"progress": self._tail.progress} if self._tail.progress else {}
            if renew_heartbeat(self._run, log_tail=log_tail(self._folder), **changes):
                self._ask_to_stop()
            self._beaten = time.monotonic()
        self._unrecorded = []

    def _ask_to_stop(self) -> None:
        """SIGTERM: it writes a checkpoint and leaves."""
        if self._asked is None:
            self._child.send_signal(signal.SIGTERM)
            self._asked = time.monotonic()


def log_tail(folder: Path) -> str:
    """The end of the child's output. NUL characters, which PostgreSQL cannot hold, are replaced."""
    path = folder / "log.txt"
    if not path.is_file():
        return ""
    with path.open("rb") as source:
        source.seek(max(0, path.stat().st_size - LOG_TAIL))
        return without_paths(source.read().decode("utf-8", "replace").replace("\0", "\ufffd"))


def _wait(child: subprocess.Popen[bytes]) -> int | None:
    try:
        return child.wait(TICK)
    except subprocess.TimeoutExpired:
        return None


def _conclude(run: TrainingRun, folder: Path, status: int) -> None:
    if status == core_subprocess.OK and _is_complete(folder):
        _register(run, folder)
        return
    run.refresh_from_db(fields=["cancel_requested"])
    if run.cancel_requested:
        finish(run, JobState.CANCELLED)
    elif shutdown.is_asked() and status != core_subprocess.REFUSED:
        raise Interrupted  # the next worker goes on from the checkpoint
    elif status == core_subprocess.REFUSED:
        finish(run, JobState.FAILED, error=core_subprocess.told_error(folder, log_tail(folder)))
    elif status in core_subprocess.NO_ROOM:
        finish(run, JobState.FAILED, error=core_subprocess.NO_ROOM[status].format(folder=folder))
    elif status == core_subprocess.CANCELLED:
        finish(run, JobState.FAILED, error=f"The training process was stopped from outside. {RESUME}")
    else:
        reference, ended = secrets.token_hex(4), core_subprocess.how_it_ended(status)
        log.error("%s: its process %s, reference %s; see %s", run, ended, reference, folder / "log.txt")
        error = (
            f"The training process {ended} (reference {reference}; its log is on the run's page). {RESUME}"
        )
        finish(run, JobState.FAILED, error=error)


def _register(run: TrainingRun, folder: Path) -> None:
    manifest = json.loads((folder / "model" / "touchstone.json").read_text(encoding="utf-8"))
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    artifact = _artifact_name(run, run.attempt)
    with keep_heartbeat(run):
        store_tree(folder / "model", artifact)
    try:
        services.register_model(run=run, artifact=artifact, manifest=manifest, report=report)
    except ClaimLost:
        delete_tree(artifact)
        raise
    for attempt in range(1, run.attempt):  # one that ended between storing and registering
        delete_tree(_artifact_name(run, attempt))
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def _artifact_name(run: TrainingRun, attempt: int) -> str:
    return storage_name("models", f"run-{run.pk}-{attempt}")


def _identity(folder: Path) -> str | None:
    config = folder / "config.json"
    return json.loads(config.read_text(encoding="utf-8")).get("run") if config.is_file() else None


def _is_complete(folder: Path) -> bool:
    return (folder / "manifest.json").is_file()


def _link_tree(source: Path, target: Path) -> None:
    """The files of `source` under `target`: hard links where the file system allows, else copies."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        _link(path, target / path.name)


def _link(path: Path, place: Path) -> None:
    if place.exists():
        return
    scratch = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        os.link(path, scratch)
    except OSError:
        shutil.copyfile(path, scratch)
    scratch.replace(place)


def _write_whole(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)

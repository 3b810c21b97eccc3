"""A run that trains on a cluster: its job is submitted once, followed by any worker, and submitted again where it was
lost; its files go through the artifact store.

The run directory of the worker mirrors what the job sends of events and output. What is known of the job is stored
before and after each step that cannot be repeated (`LaunchedState`).
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Interrupted, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.core.storage.artifacts import delete_tree
from apps.core.storage.store_identity import StoreUnavailable
from apps.training import services
from apps.training.launching.options import LaunchOptions
from apps.training.launching.run_files import (
    StoredRunFiles,
    files_address,
    job_name,
    make_run_token,
    run_files_name,
)
from apps.training.launching.state import LaunchedState
from apps.training.models import TrainingRun
from workers.errors import RewardError
from workers.json_files import write_json
from workers.launch.host_run import (
    INPUTS,
    OUTPUTS,
    RUN_PLACE,
    JobEnd,
    newest_end,
    newest_start,
)
from workers.launch.job import (
    ENTRY,
    TOKEN_VARIABLE,
    URL_VARIABLE,
    JobPhase,
    JobResources,
    JobStatus,
    LaunchedJob,
    Launcher,
    LauncherUnavailable,
)
from workers.launch.run_files import RunFileMissing
from workers.launch.streams import EVENTS, LOG, StreamReader
from workers.launch.transfer import (
    FolderIndex,
    drop_file,
    folder_files,
    forget_older,
    newest_index,
    read_folder,
    write_folder,
)

log = logging.getLogger(__name__)

MIRROR_SECONDS, POLL_SECONDS = 2.0, 5.0
MOST_STALLED = 3  # jobs in a row that end without a new checkpoint
_END_SECONDS = 60.0  # that an engine may take to notice that its job has ended
_LOG_LINES = 8
_DERIVED = "hard-negatives.jsonl.zst"  # made of the dataset's records, which must not outlive it
_TRAINED = frozenset({core_subprocess.OK, core_subprocess.REFUSED, *core_subprocess.NO_ROOM})
_PRETRAINED = ("encoder", "decoder")


class ClusterRun:
    """While the artifact store is away the run waits for it, whatever was being done.

    on_restart: called when the job has started again, and events.jsonl of `folder` was replaced by one that ends
    earlier.
    """

    grace = 300.0

    def __init__(
        self,
        run: TrainingRun,
        folder: Path,
        launcher: Launcher,
        *,
        tick: float,
        on_restart: Callable[[], None],
    ) -> None:
        self._run, self._folder, self._launcher, self._tick = run, folder, launcher, tick
        self._on_restart = on_restart
        self._files = StoredRunFiles(run)
        self._state = LaunchedState.read(run.launched)
        self._events = StreamReader(self._files, EVENTS, only_newest=True)
        self._generation = 0  # of the events that `folder` has
        self._log = StreamReader(self._files, LOG, only_newest=False)
        self._mirrored_at = self._polled_at = float("-inf")
        self._end_seen_at: float | None = None
        self._is_stopping = False

    def start(self) -> None:
        """Take up the job that is there, or submit one. Raises DomainError."""
        (self._folder / "events.jsonl").write_bytes(b"")
        (self._folder / "log.txt").write_bytes(b"")
        with self._waiting_for_store(), keep_heartbeat(self._run):
            self._mirror()
            self._take_up()

    def wait(self) -> int | None:
        time.sleep(self._tick)
        now = time.monotonic()
        with self._waiting_for_store():
            if now - self._mirrored_at >= MIRROR_SECONDS:
                try:
                    self._mirror()
                finally:
                    self._mirrored_at = time.monotonic()
            if now - self._polled_at >= POLL_SECONDS:
                self._polled_at = time.monotonic()
                with keep_heartbeat(self._run):
                    return self._look()
        return None

    def ask_to_stop(self) -> None:
        self._is_stopping = True
        self._polled_at = float("-inf")
        if self._state.handle is not None:
            self._tell(self._launcher.cancel)

    def interrupt(self) -> None:
        raise Interrupted  # the job goes on; the next worker follows it

    def kill(self) -> None:
        self._tell(self._launcher.kill)

    def leave(self) -> None:
        """The job goes on."""

    def _tell(self, call: Callable[[dict[str, object]], None]) -> None:
        if self._state.handle is None:
            return
        try:
            call(self._state.handle)
        except RewardError as error:
            log.warning("%s: its job could not be told to end: %s", self._run, error.message)

    @contextmanager
    def _waiting_for_store(self) -> Iterator[None]:
        """Each step may be repeated where the store failed in its midst."""
        try:
            yield
        except (StoreUnavailable, RunFileMissing) as error:  # or it was deleted since it was listed
            log.warning("%s: %s", self._run, error.message)
            self._note(self._state.phase, error.message)

    def _take_up(self) -> None:
        if not self._state.is_open:
            self._open_submission()
        if self._state.handle is None:
            self._submit()

    def _look(self) -> int | None:
        """The exit status, where the training has ended."""
        if self._state.handle is None and not self._is_stopping:
            self._take_up()
            return None
        try:
            if self._state.handle is None and not self._find():
                return self._close(core_subprocess.CANCELLED)
            assert self._state.handle is not None
            status = self._launcher.poll(self._state.handle)
        except LauncherUnavailable as error:
            log.warning("%s: %s", self._run, error.message)
            self._note(self._state.phase, error.message)
            return None
        end = newest_end(self._files)
        self._note(status.phase, status.reason)
        if end is not None and end.number <= self._state.starts:
            end = None  # of an earlier job
        # One that its engine starts again waits with the end of its start before.
        if not status.phase.is_final and (status.phase == JobPhase.PENDING or not self._is_overdue(end)):
            return None
        self._mirror()
        return self._concluded(status, end)

    def _find(self) -> bool:
        """Whether the engine took a submission that it did not answer. Its job is asked to end."""
        handle = (
            self._launcher.find(job_name(self._run, self._state.submission)) if self._state.is_open else None
        )
        if handle is not None:
            self._keep(self._state.with_(handle=handle))
            self._tell(self._launcher.cancel)
        return handle is not None

    def _is_overdue(self, end: JobEnd | None) -> bool:
        """Whether the training said long ago that it has ended, and the engine does not notice."""
        if end is None:
            self._end_seen_at = None
            return False
        self._end_seen_at = self._end_seen_at or time.monotonic()
        return time.monotonic() - self._end_seen_at > _END_SECONDS

    def _concluded(self, status: JobStatus, end: JobEnd | None) -> int | None:
        if end is not None and end.status in _TRAINED and not end.reason:
            self._fetch()
            return self._close(end.status)
        if self._is_stopping:
            return self._close(core_subprocess.CANCELLED)
        was_stopped = end is not None and end.status == core_subprocess.CANCELLED
        if was_stopped or status.phase == JobPhase.PREEMPTED:
            reason = status.reason or "the job was asked to stop by its engine"
            self._submit_again(reason)
            return None
        sentence = self._why(status, end)
        self._close(core_subprocess.REFUSED)
        raise DomainError(sentence)

    def _submit_again(self, reason: str) -> None:
        newest = newest_index(self._files, OUTPUTS)
        is_stalled = (newest[0] if newest else 0) == self._state.checkpoint
        stalled = self._state.stalled + 1 if is_stalled else 0
        if stalled >= MOST_STALLED:
            self._close(core_subprocess.REFUSED)
            raise DomainError(
                f"The job ended {stalled} times in a row before it had written a new checkpoint ({reason}). Give it "
                "more time or memory, or lower checkpoint_seconds of the recipe, then resume the run."
            )
        log.info("%s: %s; it is submitted again", self._run, reason)
        opened = self._next_submission(stalled=stalled)
        self._tell(self._launcher.forget)
        self._keep(opened)  # with the inputs that the job before had
        self._submit()

    def _open_submission(self) -> None:
        """One that is open has its inputs, so that a worker which takes it up needs none."""
        opened = self._next_submission(stalled=0)
        write_inputs(self._files, self._folder, opened.submission, gpus=self._resources().gpus)
        self._keep(opened)

    def _next_submission(self, *, stalled: int) -> LaunchedState:
        newest = newest_index(self._files, OUTPUTS)
        return self._state.with_(
            submission=self._state.submission + 1,
            handle=None,
            is_open=True,
            starts=newest_start(self._files),
            checkpoint=newest[0] if newest else 0,
            stalled=stalled,
            phase="",
            reason="",
        )

    def _submit(self) -> None:
        try:
            handle = self._launcher.submit(self._job())
        except LauncherUnavailable as error:
            log.warning("%s waits to be submitted: %s", self._run, error.message)
            self._note("", error.message)
        except RewardError as error:
            self._close(core_subprocess.REFUSED)
            raise DomainError(error.message) from error
        else:
            self._keep(self._state.with_(handle=handle, phase=JobPhase.PENDING, reason=""))

    def _job(self) -> LaunchedJob:
        submission, resources = self._state.submission, self._resources()
        name = job_name(self._run, submission)
        return LaunchedJob(
            name=name,
            module=ENTRY,
            arguments=[
                *("--hosts", str(resources.hosts), "--processes", str(resources.processes), "--name", name)
            ],
            environment={URL_VARIABLE: files_address(self._run)},
            secrets={TOKEN_VARIABLE: make_run_token(self._run, submission)},
            resources=resources,
            run=f"{self._run.project.slug}/{self._run.pk}",
            files=run_files_name(self._run),
            project=self._run.project.slug,
        )

    def _resources(self) -> JobResources:
        return LaunchOptions.read(self._run.launch_options).resources(self._run.recipe)

    def _why(self, status: JobStatus, end: JobEnd | None) -> str:
        """Why the job failed, with the last lines that it printed."""
        reason = status.reason or (end.reason if end else "") or f"the job is {status.phase}"
        if end is not None and not end.reason and not status.reason:
            reason = f"the training process {core_subprocess.how_it_ended(end.status)}"
        self._add_engine_log()
        lines = (self._folder / "log.txt").read_text(encoding="utf-8", errors="replace").split("\n")
        last = [line.strip() for line in lines if line.strip()][-_LOG_LINES:]
        said = f" Its last lines: {' | '.join(last)}" if last else ""
        return f"{self._launcher.name}: {reason.rstrip('.')}.{said}"[:2000].replace("\0", "\ufffd")

    def _add_engine_log(self) -> None:
        """What was printed before or around the training: a module that is missing, an image that does not start."""
        if self._state.handle is None:
            return
        try:
            printed = self._launcher.logs(self._state.handle).content[-20_000:]
        except RewardError as error:
            printed = error.message.encode()
        with (self._folder / "log.txt").open("ab") as out:
            out.write(printed)

    def _fetch(self) -> None:
        """Report and model; checkpoints stay where they are."""
        found = newest_index(self._files, OUTPUTS)
        if found is None:
            return
        kept = {name: parts for name, parts in found[1].files.items() if not name.startswith("checkpoints/")}
        last = {"manifest.json": kept.pop("manifest.json")} if "manifest.json" in kept else {}
        try:
            read_folder(self._files, OUTPUTS, FolderIndex(kept), self._folder)
            read_folder(self._files, OUTPUTS, FolderIndex(last), self._folder)
        except RewardError as error:
            self._close(core_subprocess.REFUSED)
            raise DomainError(error.message) from error

    def _close(self, status: int) -> int:
        """Nothing of the job runs any more, or may write."""
        self._files.delete_folder(INPUTS)
        drop_file(self._files, OUTPUTS, _DERIVED)
        self._tell(self._launcher.forget)
        self._keep(self._state.with_(is_open=False))
        return status

    def _mirror(self) -> None:
        """events.jsonl and log.txt as the job has them, but for a second or two."""
        before = self._generation
        try:
            for events in self._events.read():
                is_new = self._events.generation != self._generation
                with (self._folder / "events.jsonl").open("wb" if is_new else "ab") as out:
                    out.write(events)
                self._generation = self._events.generation
        finally:
            if self._generation != before:
                self._on_restart()
        for printed in self._log.read():
            with (self._folder / "log.txt").open("ab") as out:
                out.write(printed)

    def _note(self, phase: str, reason: str) -> None:
        if (self._state.phase, self._state.reason) != (str(phase), reason):
            self._keep(self._state.with_(phase=str(phase), reason=reason[:500]))

    def _keep(self, state: LaunchedState) -> None:
        services.record_launched(run=self._run, launched=state.values())
        self._state = state


def write_inputs(files: StoredRunFiles, folder: Path, number: int, *, gpus: int) -> None:
    """What the job needs of the run directory `folder`, and the pretrained weights that its recipe names."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["device"] = "cuda" if gpus else "cpu"
    paths = {
        name: path for name, path in folder_files(folder).items() if name.startswith(("data/", "parent/"))
    }
    for key in _PRETRAINED:
        folder_named = Path(str(config["recipe"].get(key, "")))  # checked by `with_folders`
        if folder_named.is_absolute() and folder_named.is_dir():
            paths |= {f"pretrained/{key}/{name}": path for name, path in folder_files(folder_named).items()}
            config["recipe"][key] = f"{RUN_PLACE}/pretrained/{key}"
    written = folder / "cluster-config.json"
    write_json(written, config)
    write_folder(files, INPUTS, paths | {"config.json": written}, number)
    forget_older(files, INPUTS)


def end_job(run: TrainingRun, launcher: Launcher) -> None:
    """Of a run that ended while no worker followed it: its job is ended, and what it left is removed."""
    state = LaunchedState.read(run.launched)
    handle = state.handle or launcher.find(job_name(run, state.submission))
    if handle is not None:
        launcher.kill(handle)
        launcher.forget(handle)
    StoredRunFiles(run).delete_folder(INPUTS)
    services.close_launched(run=run, launched=state.with_(is_open=False).values())


def forget_run_files(run: TrainingRun) -> None:
    """When the model is stored."""
    delete_tree(run_files_name(run))

"""A child process with a model, and threads that keep it busy: chunks are read ahead of it, and stored behind it."""

import logging
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from django.conf import settings
from django.db import IntegrityError, connection

from apps.bulk.chunks import claim_chunk, give_back_chunk, renew_chunks, store_chunk
from apps.bulk.models import BulkChunk, BulkJob
from apps.bulk.selectors import trajectories_as_json
from apps.bulk.turns import WorkerTurn
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import ClaimLost
from apps.core.processes import core_subprocess
from apps.core.storage.artifacts import stage
from apps.metrics.executor import write_comments, write_evidence
from apps.metrics.models import Induction
from apps.metrics.selectors import active_metrics
from apps.trajectories.attachments import restore_pictures
from workers.schema import Trajectory
from workers.schema.bulk_items import BulkConfig, BulkItem, read_messages, write_message

log = logging.getLogger(__name__)
CHILD = "workers.bulk"
_AT_ONCE = 4  # chunks of a worker: one is read, one waits, one is computed, one is stored


class EngineProcess:
    """The chunks of a job in one process, for one turn. `run` in the thread that the process is to live as long as."""

    def __init__(self, job: BulkJob, turn: WorkerTurn) -> None:
        self.job, self.turn = job, turn
        self._in_flight: deque[BulkChunk] = deque()
        self._slots = threading.Semaphore(_AT_ONCE)
        self._stopped = threading.Event()
        self._feeding_error: Exception | None = None
        self._is_loaded = False

    def run(self) -> None:
        """Work on chunks until none waits or the turn is over. Raises DomainError where the model cannot work."""
        with tempfile.TemporaryDirectory(prefix="bulk-job-") as scratch:
            folder = Path(scratch)
            (folder / "config.json").write_bytes(msgspec.json.encode(self._config(folder)))
            child = core_subprocess.start(CHILD, [str(folder)], log=folder / "log.txt", with_pipes=True)
            try:
                with self._heartbeats():
                    self._work(child)
            finally:
                has_ended = child.poll() is not None
                core_subprocess.kill(child)
                self._give_back(lost=has_ended)
            self._check_end(child.returncode, folder)
        if self._feeding_error is not None:
            raise self._feeding_error

    def _config(self, folder: Path) -> BulkConfig:
        if self.job.induction is not None:
            return BulkConfig(
                work="induce", folder=str(_write_induction(folder / "induction", self.job.induction))
            )
        if self.job.work == BulkJob.Work.INDEX:
            return BulkConfig(work="index", device=settings.TRAINING_DEVICE)
        assert self.job.model is not None
        return BulkConfig(
            work="embed" if self.job.work == BulkJob.Work.EMBED else "score",
            folder=str(stage(self.job.model.artifact)),
            device=settings.TRAINING_DEVICE,
            with_steps=self.job.with_steps,
        )

    def _work(self, child: "subprocess.Popen[bytes]") -> None:
        into, out = cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout)
        feeding = threading.Thread(target=self._feed, args=(into,), name="bulk-chunks", daemon=True)
        with out, _closed(into):
            messages = read_messages(out)
            self._is_loaded = next(messages, None) is not None
            if self._is_loaded:
                feeding.start()
                try:
                    self._store_each(messages)
                finally:
                    self._stopped.set()
                    feeding.join()
        child.wait()

    def _store_each(self, messages: Iterator[bytes]) -> None:
        decoder = msgspec.json.Decoder(list[BulkItem])
        before = time.monotonic()
        for message in messages:
            now = time.monotonic()
            items, chunk = decoder.decode(message), self._in_flight[0]
            try:
                store_chunk(chunk, items, seconds=now - before)
            except ClaimLost:
                log.warning("%s went to another worker; nothing of it was written here", chunk)
            except IntegrityError as error:  # a trajectory was deleted while it was computed
                log.info("%s is computed again: %s", chunk, error)
                give_back_chunk(chunk, lost=True)
            self._in_flight.popleft()
            self._slots.release()
            before = now

    def _feed(self, into: BinaryIO) -> None:
        """Claim chunks and pass them on, few ahead of what is computed."""
        try:
            with suppress(BrokenPipeError), _closed(into):
                while not self._stopped.is_set() and not self.turn.is_over():
                    if not self._slots.acquire(timeout=1.0):
                        continue
                    chunk = claim_chunk(self.job)
                    if chunk is None:
                        return
                    self._in_flight.append(chunk)
                    message = trajectories_as_json(chunk.trajectory_ids)
                    write_message(into, self._with_pictures(message) if self._sees_pictures else message)
        except Exception as error:
            self._feeding_error = error
        finally:
            connection.close()

    @property
    def _sees_pictures(self) -> bool:
        return self.job.model is not None and self.job.model.sees_pictures

    def _with_pictures(self, message: bytes) -> bytes:
        trajectories = msgspec.json.decode(message, type=list[Trajectory])
        return msgspec.json.encode([restore_pictures(self.job.project, each) for each in trajectories])

    @contextmanager
    def _heartbeats(self) -> Iterator[None]:
        """Of all chunks in flight, from a thread, on a separate connection."""
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(job_queue.heartbeat_seconds()):
                renew_chunks(list(self._in_flight))
            connection.close()

        thread = threading.Thread(target=beat, name=f"heartbeat of {self.job}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _give_back(self, *, lost: bool) -> None:
        while self._in_flight:
            give_back_chunk(self._in_flight.popleft(), lost=lost)

    def _check_end(self, status: int, folder: Path) -> None:
        """Raise DomainError where the model was refused, or never came as far as its first chunk."""
        if status == core_subprocess.OK:
            return
        printed = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
        if status == core_subprocess.REFUSED:
            raise DomainError(core_subprocess.told_error(folder, printed))
        log.error("the process of %s %s:\n%s", self.job, core_subprocess.how_it_ended(status), printed)
        if not self._is_loaded:
            raise DomainError(
                f"The process that loads {self.job.engine} {core_subprocess.how_it_ended(status)}. Check the worker's "
                "memory and log, then resume the job."
            )


def _write_induction(folder: Path, induction: Induction) -> Path:
    """What its active metrics are fitted to. Raises DomainError where none is active."""
    metrics = list(active_metrics(induction))
    if not metrics:
        raise DomainError(f"The {induction} has no active metric. Accept one, or extract metrics again.")
    folder.mkdir()
    write_evidence(folder, induction, metrics, write_comments(folder, induction), check=lambda: None)
    return folder


@contextmanager
def _closed(pipe: BinaryIO) -> Iterator[None]:
    """Closed in the end, whether or not there is still a reader."""
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            pipe.close()

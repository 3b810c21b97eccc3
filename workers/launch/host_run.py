"""A training on one host of a cluster, with no disk in common with the installation.

Inputs and the newest checkpoints are fetched from the files of the run, `workers.train` or torchrun trains in a folder
of the host, and what it writes goes back while it trains: events and output every second or two, checkpoints when they
are complete, model and report in the end. Of several hosts the one with the main process sends.

Layout of the files of a run (`workers.launch.transfer`, `workers.launch.streams`):

    inputs/index/, inputs/parts/     config.json, data/, parent/, pretrained/: written by the installation
    outputs/index/, outputs/parts/   what the run directory has besides: checkpoints, model, report
    outputs/events/, outputs/log/    chunks of events.jsonl and of the output
    outputs/ends/NNNNNN.json         how a start of the job ended: {"status": of workers.train, "reason"}
    outputs/starts/NNNNNN            each start of the job: its number is the generation of its streams
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from workers.errors import RewardError
from workers.launch.part_cache import PartCache
from workers.launch.run_files import JobFiles, RunFiles, RunFilesRefused
from workers.launch.streams import EVENTS, LOG, StreamReader, StreamWriter
from workers.launch.transfer import folder_files, forget_older, newest_index, read_folder, write_folder

INPUTS, OUTPUTS = "inputs", "outputs"
STARTS, ENDS = f"{OUTPUTS}/starts", f"{OUTPUTS}/ends"
INPUT_NAMES = ("config.json", "data", "parent", "pretrained")
TRAIN = "workers.train"
REFUSED, STOPPED = 2, 3  # exit statuses of workers.train
_PR_SET_PDEATHSIG = 1
_STREAMED = ("events.jsonl", "log.txt")
_TICK = 0.5  # seconds between looks at the training
_STREAM_SECONDS = 1.0
_AGAIN_SECONDS = 10.0  # after files could not be sent, while the training goes on
_FOLDER_SECONDS = 2.0  # between two transfers of checkpoints, at least
RUN_PLACE = "{run}"  # in the recipe of config.json: the run directory, wherever it is


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlace:
    """hosts, processes: of the training, and on each host. rendezvous: HOST:PORT of torchrun, for several hosts.

    address: under which other hosts reach this one; empty: its host name.
    has_rendezvous: "true" on the host of the rendezvous, "false" on others; empty: torchrun finds out by the host name,
    which on some machines stands for the loopback.
    """

    hosts: int = 1
    processes: int = 1
    rendezvous: str = ""
    name: str = "touchstone"
    address: str = ""
    has_rendezvous: str = ""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a start of the job ended. number: of the start. status: of workers.train."""

    number: int
    status: int
    reason: str = ""


def newest_start(files: RunFiles) -> int:
    """The number of the newest start of a job of the run, 0 where there is none."""
    names = files.names(STARTS)
    return int(names[-1]) if names else 0


def newest_end(files: RunFiles) -> JobEnd | None:
    """That of the newest start; None where it has not ended, or was ended without a word."""
    number = newest_start(files)
    name = f"{number:06d}.json"
    if name not in files.names(ENDS):
        return None
    found = json.loads(files.read(f"{ENDS}/{name}"))
    return JobEnd(number, int(found["status"]), str(found.get("reason", "")))


def run_on_host(
    files: JobFiles, place: HostPlace, scratch: Path | None = None, *, cache: PartCache | None = None
) -> int:
    """Fetch, train, send; the exit status of the training. scratch: a folder of this host, by default a temporary."""
    with tempfile.TemporaryDirectory(prefix="touchstone-", dir=scratch) as folder:
        run = Path(folder) / "run"
        run.mkdir()
        fetch(files, run, cache=cache)
        return HostTraining(files, place, run).run()


def fetch(files: RunFiles, run: Path, *, cache: PartCache | None = None) -> None:
    """The inputs, and the newest state that an earlier start has sent."""
    inputs = newest_index(files, INPUTS)
    if inputs is None:
        raise RewardError("This run has no inputs in the artifact store; start it again at the installation.")
    read_folder(files, INPUTS, inputs[1], run, cache=cache)
    if (state := newest_index(files, OUTPUTS)) is not None:
        read_folder(files, OUTPUTS, state[1], run)
    with (run / "events.jsonl").open("wb") as out:
        whole = 0
        for content in StreamReader(files, EVENTS, only_newest=True).read():
            if cut := content.rfind(b"\n") + 1:
                whole = out.tell() + cut
            out.write(content)
        out.truncate(whole)  # a line that was cut is written again
    config = run / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace(RUN_PLACE, str(run)), encoding="utf-8")


class HostTraining:
    """The training process, or torchrun with several, and the transfer of what it writes."""

    def __init__(self, files: JobFiles, place: HostPlace, run: Path) -> None:
        """run: as it was fetched."""
        self._files, self._place, self._run = files, place, run
        self._fetched, self._send_at = written_files(run), float("-inf")
        self._sender: RunSender | None = None
        self._asked = False
        self._child: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)
        try:
            status = self._train()
        except RunFilesRefused:
            self._end_child()
            raise
        except RewardError as error:  # the last files could not be sent
            self._end_child()
            self._send_end(1, error.message)
            raise
        self._send_end(status, "")
        return status

    def _train(self) -> int:
        with (self._run / "log.txt").open("ab") as log:
            self._child = subprocess.Popen(  # noqa: S603 - our own module
                self._command(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        if self._asked:
            self._ask()
        self._files.is_patient = False  # the training is looked after meanwhile
        while (status := self._wait()) is None:
            self._send_what_is_new()
        self._files.is_patient = True
        self._send(ended=True)
        return self._status(status)

    def _command(self) -> Sequence[str]:
        place, train = self._place, [TRAIN, str(self._run)]
        if place.hosts == 1:
            processes = ["--processes", str(place.processes)] if place.processes > 1 else []
            return [sys.executable, "-m", *train, *processes]
        return [
            *(sys.executable, "-m", "torch.distributed.run"),
            *("--nnodes", str(place.hosts), "--nproc-per-node", str(place.processes), "--max-restarts", "0"),
            *("--rdzv-backend", "c10d", "--rdzv-endpoint", place.rendezvous, "--rdzv-id", place.name),
            *(("--local-addr", place.address) if place.address else ()),
            *(("--rdzv-conf", f"is_host={place.has_rendezvous}") if place.has_rendezvous else ()),
            *("-m", *train),
        ]

    def _wait(self) -> int | None:
        assert self._child is not None
        try:
            return self._child.wait(_TICK)
        except subprocess.TimeoutExpired:
            return None

    def _status(self, status: int) -> int:
        """torchrun answers every failure with 1: what its processes wrote says more."""
        if status == 0 or self._place.hosts == 1:
            return status
        if (self._run / "error.json").is_file():
            return REFUSED
        return STOPPED if self._asked else status

    def _send_what_is_new(self) -> None:
        """Where the installation is away, the training goes on and all is sent later."""
        if time.monotonic() < self._send_at:
            return
        try:
            self._send(ended=False)
        except RunFilesRefused:
            raise
        except RewardError as error:
            sys.stderr.write(f"{error.message} The training goes on; it is tried again.\n")
            self._send_at = time.monotonic() + _AGAIN_SECONDS

    def _send(self, *, ended: bool) -> None:
        # Only the main process takes the lock, which torchrun may place on any host.
        if self._sender is None and (self._run / ".lock").is_file():
            self._sender = RunSender(self._files, self._run, self._fetched)
        if self._sender is not None:
            self._sender.send(ended=ended)

    def _send_end(self, status: int, reason: str) -> None:
        is_alone = self._place.hosts == 1
        if self._sender is None and (is_alone or reason):
            self._sender = RunSender(self._files, self._run, self._fetched)
            self._sender.send(ended=True)
        if self._sender is not None:
            self._sender.send_end({"status": status, "reason": reason})

    def _ask(self, number: int = signal.SIGTERM, frame: FrameType | None = None) -> None:
        """The training writes a checkpoint and ends."""
        self._asked = True
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)

    def _end_child(self) -> None:
        if self._child is not None and self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()


def end_with_parent() -> None:
    """Linux: a host's training ends with the process that sends its files."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class RunSender:
    """Sends what the run directory has. Each start of the job has one. A call that failed may be repeated."""

    def __init__(self, files: RunFiles, run: Path, fetched: Mapping[str, tuple[int, int]]) -> None:
        """fetched: `written_files` of the run before its training began."""
        self._files, self._run = files, run
        self.generation = 1 + newest_start(files)
        files.write(f"{STARTS}/{self.generation:06d}", f"{socket.gethostname()}\n".encode())
        newest = newest_index(files, OUTPUTS)
        self._number = newest[0] if newest else 0
        self._known = set(files.names(f"{OUTPUTS}/parts"))
        self._streams = [
            StreamWriter(files, EVENTS, run / "events.jsonl", self.generation),
            StreamWriter(files, LOG, run / "log.txt", self.generation),
        ]
        self._sent = fetched if newest else {}
        self._streamed_at = self._sent_at = float("-inf")

    def send(self, *, ended: bool) -> None:
        now = time.monotonic()
        if ended or now - self._streamed_at >= _STREAM_SECONDS:
            self._streamed_at = now
            for stream in self._streams:
                stream.send()
        if ended or now - self._sent_at >= _FOLDER_SECONDS:
            self._send_folder()
            self._sent_at = time.monotonic()

    def send_end(self, end: dict[str, Any]) -> None:
        self._files.write(f"{ENDS}/{self.generation:06d}.json", json.dumps(end).encode())

    def _send_folder(self) -> None:
        found = written_files(self._run)
        if found == self._sent:
            return
        paths = folder_files(self._run, without=(*INPUT_NAMES, *_STREAMED))
        try:
            write_folder(self._files, OUTPUTS, paths, self._number + 1, known=self._known)
        except FileNotFoundError:  # an older checkpoint was deleted meanwhile: the next call has the newer
            return
        self._number += 1
        forget_older(self._files, OUTPUTS, known=self._known)
        self._sent = found


def written_files(run: Path) -> dict[str, tuple[int, int]]:
    """By name size and time, of files that a training writes whole."""
    found = {}
    for name, path in folder_files(run, without=(*INPUT_NAMES, *_STREAMED)).items():
        try:
            stat = path.stat()
        except FileNotFoundError:
            continue
        found[name] = (stat.st_size, stat.st_mtime_ns)
    return found

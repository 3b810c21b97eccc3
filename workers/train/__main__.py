"""`python -m workers.train RUN_DIR`.

Exit status: 0 complete, 2 refused (error.json says why), 3 stopped by SIGTERM, 4 no room on the disk, 5 no memory,
6 no memory in one of several processes: `--processes` and torchrun (--max-restarts) start again with less at a time.
"""

import argparse
import ctypes
import errno
import os
import shutil
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from types import FrameType

from workers.errors import RewardError
from workers.json_files import write_json
from workers.train.distributed.launch import MEMORY_HALVED, train_together
from workers.train.limits import MemoryHalved, TrainingStopped
from workers.train.pipeline import train
from workers.train.run_directory import lock_run_directory

REFUSED, STOPPED, NO_DISK, NO_MEMORY = 2, 3, 4, 5
_PR_SET_PDEATHSIG = 1
_LITTLE = 64 * 2**20  # bytes: less than a checkpoint of most models


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.train", description="Train on a run directory.")
    parser.add_argument("run", type=Path)
    parser.add_argument("--alone", action="store_true", help="go on when the process that started it ends")
    parser.add_argument("--processes", type=int, default=1, help="that train together, one for each GPU")
    arguments = parser.parse_args()
    if not arguments.alone:
        die_with_parent()
    if arguments.processes > 1:
        return train_together(
            [sys.executable, "-m", "workers.train", str(arguments.run)], arguments.processes
        )
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    signal.signal(signal.SIGTERM, ask)
    run: Path = arguments.run.resolve()
    try:
        # Of the processes of a torchrun, the first holds the directory for all.
        with lock_run_directory(run) if os.environ.get("RANK", "0") == "0" else nullcontext():
            return _train(run, asked)
    except (
        RewardError
    ) as error:  # not ours to write into: another process has the directory, or there is none
        sys.stderr.write(f"{error.message}\n")
        return REFUSED


def _train(run: Path, asked: list[int]) -> int:
    is_on_several_hosts = os.environ.get("WORLD_SIZE", "1") != os.environ.get("LOCAL_WORLD_SIZE", "1")
    if (run / "manifest.json").is_file() and not is_on_several_hosts:  # other hosts wait for this one
        return 0
    (run / "error.json").unlink(missing_ok=True)
    try:
        train(run, stop=lambda: bool(asked))
    except RewardError as error:
        write_json(run / "error.json", {"message": error.message, "pointer": error.pointer})
        sys.stderr.write(f"{error.message}\n")
        return REFUSED
    except TrainingStopped:
        return STOPPED
    except MemoryHalved:
        return MEMORY_HALVED
    except (OSError, MemoryError, RuntimeError) as error:
        status = out_of_room(error, run)
        if status is None:
            raise
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return status
    return 0


def out_of_room(error: Exception, folder: Path) -> int | None:
    """NO_DISK or NO_MEMORY, where that is what is wrong. Torch tells both by the words of a RuntimeError."""
    words = str(error).lower()
    if isinstance(error, MemoryError) or "allocate memory" in words or "out of memory" in words:
        return NO_MEMORY
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return NO_DISK
    if isinstance(error, RuntimeError) and "write" in words and shutil.disk_usage(folder).free < _LITTLE:
        return NO_DISK
    return None


def die_with_parent() -> None:
    """Linux: be killed when the process that started this one ends, so that a lost worker leaves no writer behind."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # it ended just before
        os.kill(os.getpid(), signal.SIGKILL)


def end(status: int) -> None:
    """Of several processes each ends at once: threads of a team that was left at times abort on their way out."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    end(main())

"""Child processes of the reward-modelling core: they know no secret of ours, and say how they ended by exit status."""

import json
import logging
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.errors import DomainError
from apps.core.processes.parent_death import dies_with_parent
from apps.core.processes.run_locks import writer_of
from apps.core.storage.model_folders import without_paths

log = logging.getLogger(__name__)

OK, REFUSED, CANCELLED = 0, 2, 3  # exit statuses of `workers.train`
NO_ROOM = {
    4: "The disk of {folder} is full. Free some space, then resume: training continues from the newest checkpoint.",
    5: "The training process ran out of memory. Lower batch_pairs, batch_tokens or max_tokens of the recipe, leave "
    "the encoder frozen, or train on a machine with more; then start it again.",
}
_TICK = 0.5  # seconds between looks at whether to go on
_OTHERS_END = 20.0  # seconds a killed process may take to let go of the run directory
# What a child may see of the worker's environment: enough to find programs, libraries, caches and devices.
_KEPT = {
    "PATH",
    "HOME",
    "LANG",
    "TZ",
    "TMPDIR",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
}
_KEPT_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "NCCL_", "GLOO_", "OMP_", "MKL_", "TORCH_", "PYTORCH_")
_KEPT_HF = {"HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}


def environment(source: Mapping[str, str] | None = None) -> dict[str, str]:
    source = os.environ if source is None else source
    kept = {
        name: value
        for name, value in source.items()
        if name in _KEPT or name in _KEPT_HF or name.startswith(_KEPT_PREFIXES)
    }
    return kept | {"PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false"}


def start(
    module: str,
    arguments: list[str],
    *,
    log: Path,
    given: Mapping[str, str] | None = None,
    with_pipes: bool = False,
) -> subprocess.Popen[bytes]:
    """Start `python -m module arguments...` in a process group of its own; what it prints goes to the end of `log`.

    given: further variables of its environment. with_pipes: its standard input and output are pipes, to be closed by
    the caller.
    """
    with log.open("ab") as out:
        return subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", module, *arguments],
            cwd=settings.BASE_DIR,
            env=environment() | dict(given or {}),
            stdin=subprocess.PIPE if with_pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if with_pipes else out,
            stderr=out,
            start_new_session=True,
            preexec_fn=dies_with_parent(),
        )


def run_to_end(
    module: str,
    arguments: list[str],
    *,
    folder: Path,
    what: str,
    check: Callable[[], None] = lambda: None,
    given: Mapping[str, str] | None = None,
) -> None:
    """Start `python -m module arguments...` and wait until it ended well; whatever happens, it does not outlive this.

    folder: where it writes, and where what it prints is kept. what: to call it in errors. check: called while waiting.
    given: further variables of its environment.
    Raises DomainError, with the child's own sentence where it refused, and what `check` raises.
    """
    child = start(module, arguments, log=folder / "log.txt", given=given)
    try:
        while (status := child.poll()) is None:
            check()
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=_TICK)
    finally:
        kill(child)
    if status == OK:
        return
    said = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    if status == REFUSED:
        raise DomainError(told_error(folder, said))
    reference = secrets.token_hex(4)
    log.error("%s %s, reference %s:\n%s", what, how_it_ended(status), reference, said)
    raise DomainError(f"{what} {how_it_ended(status)}; the log has it under {reference}.")


def kill(child: subprocess.Popen[bytes]) -> None:
    """End the child and everything it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def end_other_writer(folder: Path, *, check: Callable[[], None]) -> None:
    """End a child of an attempt that lost its claim and still writes here: its worker hangs, or is just dying.

    The process that calls holds the claim. check: called while waiting. Raises DomainError where it cannot be ended.
    """
    deadline = time.monotonic() + _OTHERS_END
    while (pid := writer_of(folder)) is not None:
        check()
        with suppress(ProcessLookupError, PermissionError):
            if pid and _is_training(pid):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise DomainError(
                f"Another process{f' ({pid})' if pid else ''} writes to the run directory {folder} and cannot be "
                "ended from here; end it, then resume the run."
            )
        time.sleep(0.1)


def _is_training(pid: int) -> bool:
    """Whether this pid is still one of ours: the lock outlives no one, but a number in a file may be anyone's."""
    try:
        return b"workers." in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def told_error(folder: Path, said: str) -> str:
    """The sentence of a child that refused: in error.json, or the last line it said."""
    path = folder / "error.json"
    if path.is_file():
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return without_paths(str(told["message"]))
    return without_paths(said.strip().rpartition("\n")[2]) or "The process refused without a word."


def how_it_ended(status: int) -> str:
    """An exit status in words."""
    if status >= 0:
        return f"ended with status {status}"
    name = signal.Signals(-status).name
    hint = "; the machine may have run out of memory" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"

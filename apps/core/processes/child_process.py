"""One child of the supervisor: started, heard, waited for, and ended with everything it started."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from apps.core.errors import DomainError
from apps.core.package_files import FILES
from apps.core.processes.parent_death import dies_with_parent
from apps.core.processes.readiness import VARIABLE

_COLOURS = {"web": 36, "rewards": 35, "default": 33, "gpu": 32, "beat": 34, "postgres": 31, "migrate": 37}
_NAME_WIDTH = 8
_LOG_LIMIT = 10 * 2**20
_SOON = 10.0  # seconds


class Process:
    """`manage.py COMMAND...`: its lines go to logs/NAME.log and, prefixed, to `out`.

    ended: called from another thread when the process is gone.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        home: Path,
        environment: Mapping[str, str],
        out: IO[str] | None,
        ended: Callable[[], None],
    ) -> None:
        self.name = name
        self.log = _open_log(home, name)
        self._out, self._ended = out, ended
        self._last: deque[str] = deque(maxlen=15)
        self._was_ready, self._started = False, time.monotonic()
        self._ready, write = os.pipe()
        self.popen = subprocess.Popen(  # noqa: S603
            [sys.executable, str(FILES / "manage.py"), *command],
            env={**environment, VARIABLE: str(write), "PYTHONUNBUFFERED": "1"},
            pass_fds=(write,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A session of its own: Ctrl-C reaches the supervisor alone, which ends the others in order.
            start_new_session=True,
            preexec_fn=dies_with_parent(signal.SIGKILL),
        )
        os.close(write)
        self._reader = threading.Thread(target=self._read, name=f"log of {name}", daemon=True)
        self._reader.start()

    @property
    def status(self) -> int | None:
        return self.popen.poll()

    @property
    def was_quick(self) -> bool:
        """Whether it ended without ever being ready, or right after: starting it again at once would spin."""
        return not self.is_ready or time.monotonic() - self._started < _SOON

    @property
    def is_ready(self) -> bool:
        """Whether it has said that it is ready; asking does not wait."""
        if not self._was_ready and self._ready != -1 and select.select([self._ready], [], [], 0)[0]:
            self._was_ready = bool(os.read(self._ready, 1))
            os.close(self._ready)
            self._ready = -1
        return self._was_ready

    def wait_done(self) -> None:
        """Until it ends; raises DomainError unless it did well."""
        if self.popen.wait() != 0:
            raise DomainError(self.exit_report())

    def exit_report(self) -> str:
        """How it ended, and the last it said."""
        self._reader.join(2.0)
        return "\n".join([f"{self.how_it_ended}. Its last lines ({self.log.name}):", *self._last])

    @property
    def how_it_ended(self) -> str:
        status = self.popen.returncode
        if status < 0:
            return f"{self.name} was killed by {signal.Signals(-status).name}"
        return f"{self.name} ended with exit status {status}"

    def ask_to_end(self) -> None:
        if self.status is None:
            self.popen.send_signal(signal.SIGTERM)

    def end(self, deadline: float) -> None:
        """Wait for it, then make it and what is left of its group go."""
        for sent in (None, signal.SIGQUIT, signal.SIGKILL):
            if sent is not None:
                self._signal_group(sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(max(0.1, deadline - time.monotonic()) if sent is None else 2.0)
                break
        self._signal_group(signal.SIGKILL)  # children it left behind
        self._reader.join(2.0)
        with contextlib.suppress(OSError):
            self.log.close()
        if self._ready != -1:
            os.close(self._ready)
            self._ready = -1

    def _signal_group(self, sent: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # no one is left in it
            os.killpg(self.popen.pid, sent)

    def _read(self) -> None:
        assert self.popen.stdout is not None
        prefix = f"{self.name:<{_NAME_WIDTH}} | "
        if self._out is not None and self._out.isatty():
            prefix = f"\x1b[{_COLOURS.get(self.name, 37)}m{prefix}\x1b[0m"
        with self.popen.stdout as stream:
            for raw in stream:
                line = raw.decode(errors="replace")
                self._last.append(line.rstrip())
                # A full disk or a closed terminal must not stop the reading: who writes would wait for it forever.
                with contextlib.suppress(OSError, ValueError):
                    self.log.write(line)
                with contextlib.suppress(OSError, ValueError):
                    if self._out is not None:
                        self._out.write(prefix + line)
                        self._out.flush()
        self.popen.wait()
        self._ended()


def _open_log(home: Path, name: str) -> IO[str]:
    path = home / "logs" / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _LOG_LIMIT:
        path.replace(path.with_suffix(".log.1"))
    return path.open("a", buffering=1, errors="replace")

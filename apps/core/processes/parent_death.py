"""Children that die with their parent, however the parent dies. Importable without Django."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def dies_with_parent(sent: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """A `preexec_fn`: the child is sent `sent` when the thread that started it ends. Linux; elsewhere it does nothing.

    Start such children from a thread that lives as long as they should.
    """
    parent = os.getpid()

    return partial(die_with, parent, sent)


def die_with(parent: int, sent: signal.Signals = signal.SIGKILL) -> None:
    """In the child: as `dies_with_parent`. parent: its process id."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(sent), 0, 0, 0)
        if os.getppid() != parent:  # it died before the call above
            os._exit(1)

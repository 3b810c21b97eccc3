"""How a process tells the supervisor that it is ready: a byte on a pipe it was given. Importable without Django."""

import os

VARIABLE = "TOUCHSTONE_READY_FD"


def announce() -> None:
    """Say, once, that this process does its work now. Without a supervisor it does nothing."""
    descriptor = os.environ.pop(VARIABLE, "")
    if descriptor:
        os.write(int(descriptor), b"1")
        os.close(int(descriptor))

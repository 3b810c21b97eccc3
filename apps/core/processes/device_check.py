"""Whether the device of a setting is on this machine, before a process starts that computes on it."""

import subprocess
import sys

from django.conf import settings

from apps.core.errors import DomainError


def require_device(variable: str, device: str, *, processes: int = 1) -> None:
    """Raises DomainError with the variable, its value and what would be right.

    torch is loaded by a child process, and only where a GPU is asked for: the other devices are always there.
    """
    if not device.startswith("cuda"):
        return
    command = [sys.executable, "-m", "workers.device", device, str(processes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=settings.BASE_DIR)  # noqa: S603
    if done.returncode:
        told = (done.stderr.strip().splitlines() or ["torch does not load"])[-1]
        raise DomainError(f"{variable} is {device!r}: {told}")

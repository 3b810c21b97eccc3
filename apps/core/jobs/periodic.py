"""Work that beat repeats. Apps register it in AppConfig.register.

A function may run in two beats at once, and again after a crash: it must be safe to repeat. Keep it short (seconds):
longer work is a job.
"""

from collections.abc import Callable
from dataclasses import dataclass

from apps.core.registries import NamedRegistry


@dataclass(frozen=True)
class Periodic:
    name: str
    every_seconds: float
    function: Callable[[], object]


PERIODIC: NamedRegistry[str, Periodic] = NamedRegistry()


def register(name: str, every_seconds: float, function: Callable[[], object]) -> None:
    """Have beat call `function` about every `every_seconds`. The same name again replaces it."""
    PERIODIC[name] = Periodic(name, every_seconds, function)

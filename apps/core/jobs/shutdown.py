"""Whether the worker this runs in is asked to stop. Celery then waits for what runs, which may take hours."""

import threading

_asked = threading.Event()


def ask() -> None:
    _asked.set()


def is_asked() -> bool:
    return _asked.is_set()

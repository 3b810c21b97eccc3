"""Whether the client of a request is still there. The server sets it, long work in the request's thread asks."""

from collections.abc import Callable
from contextvars import ContextVar
from threading import Event

_left: ContextVar[Event | None] = ContextVar("client_left", default=None)


def watch_client() -> Event:
    """For the code that serves a request: the event to set when its client leaves."""
    event = Event()
    _left.set(event)
    return event


def client_left() -> Callable[[], bool]:
    """Asked in the request's own thread; what it gives may be called in any. Never true outside of a request."""
    event = _left.get()
    return event.is_set if event is not None else _stays


def _stays() -> bool:
    return False

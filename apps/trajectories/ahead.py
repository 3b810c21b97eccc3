"""Reading ahead: the next chunks of a file are made while the database is busy with this one."""

from collections.abc import Generator, Iterator
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")
_AHEAD = 2
_LOOK = 0.2  # seconds after which a reader that waits for room asks whether anybody still wants it


def ahead(source: Iterator[T]) -> Generator[T]:
    """The same values in the same order, made by a thread that is at most two of them ahead; its errors are raised
    here. Close the generator to stop the thread: one that waits for input may outlive it, and does no harm.
    `source` must not use the database: connections belong to threads."""
    queue: Queue[tuple[bool, Any]] = Queue(_AHEAD)
    unwanted = Event()
    Thread(target=_read, args=(source, queue, unwanted), daemon=True, name="reading-ahead").start()
    try:
        while (entry := queue.get())[0]:
            yield entry[1]
        if entry[1] is not None:
            raise entry[1]
    finally:
        unwanted.set()


def _read(source: Iterator[Any], queue: Queue[tuple[bool, Any]], unwanted: Event) -> None:
    """Puts (True, value) for each value, then (False, the error or None)."""
    error = None
    try:
        for value in source:
            if not _put(queue, (True, value), unwanted):
                return
    except BaseException as caught:  # raised again by whoever reads the queue
        error = caught
    _put(queue, (False, error), unwanted)


def _put(queue: Queue[tuple[bool, Any]], entry: tuple[bool, Any], unwanted: Event) -> bool:
    while not unwanted.is_set():
        try:
            queue.put(entry, timeout=_LOOK)
        except Full:
            continue
        return True
    return False

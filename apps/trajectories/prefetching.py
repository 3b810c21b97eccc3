"""Prefetching: a thread reads the next chunks of a file while the database writes this one."""

from collections.abc import Generator
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")
_QUEUE_SIZE = 2
_POLL_SECONDS = 0.2  # seconds between checks for the end while the queue is full


def prefetch(source: Generator[T]) -> Generator[T]:
    """The same values in the same order, produced by a thread that is at most two values ahead; its errors are raised
    here. Close the generator to stop the thread: one that waits for input may outlive it, and does no harm.
    `source` must not use the database: connections belong to threads."""
    queue: Queue[tuple[bool, Any]] = Queue(_QUEUE_SIZE)
    stopped = Event()
    Thread(target=_read, args=(source, queue, stopped), daemon=True, name="reading-ahead").start()
    try:
        while (entry := queue.get())[0]:
            yield entry[1]
        if entry[1] is not None:
            raise entry[1]
    finally:
        stopped.set()


def _read(source: Generator[Any], queue: Queue[tuple[bool, Any]], stopped: Event) -> None:
    """Puts (True, value) for each value, then (False, the error or None)."""
    error = None
    try:
        for value in source:
            if not _put(queue, (True, value), stopped):
                return
    except BaseException as caught:  # raised again in the consumer
        error = caught
    finally:
        source.close()  # and what it holds, such as processes
    _put(queue, (False, error), stopped)


def _put(queue: Queue[tuple[bool, Any]], entry: tuple[bool, Any], stopped: Event) -> bool:
    while not stopped.is_set():
        try:
            queue.put(entry, timeout=_POLL_SECONDS)
        except Full:
            continue
        return True
    return False

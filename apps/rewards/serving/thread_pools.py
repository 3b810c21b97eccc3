"""Threads that wait for others, apart by whose they are: one that hangs holds up nobody but those who wait for it."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
MOST_IDLE = 32  # lanes that are kept for their threads


@dataclass(eq=False, slots=True)
class OwnerPool:
    """waiting: what has been given to it and is not done."""

    threads: ThreadPoolExecutor
    waiting: int = 0

    @contextmanager
    def holding(self, count: int) -> Iterator[None]:
        self.waiting += count
        try:
            yield
        finally:
            self.waiting -= count


class OwnerPools(Generic[K]):
    """On the event loop only. at_once: threads of a lane. name: of its threads."""

    def __init__(self, name: str, at_once: int) -> None:
        self._name, self._at_once = name, at_once
        self._lanes: OrderedDict[K, OwnerPool] = OrderedDict()

    def __len__(self) -> int:
        return len(self._lanes)

    def of(self, key: K) -> OwnerPool:
        if key not in self._lanes:
            self._forget_idle()
            self._lanes[key] = OwnerPool(ThreadPoolExecutor(self._at_once, thread_name_prefix=self._name))
        self._lanes.move_to_end(key)
        return self._lanes[key]

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.threads.shutdown(wait=False, cancel_futures=True)

    def _forget_idle(self) -> None:
        """Whoever makes and removes projects, judges and models in turn leaves no threads behind."""
        idle = [key for key, lane in self._lanes.items() if not lane.waiting]
        for key in idle[: max(len(idle) - MOST_IDLE + 1, 0)]:
            self._lanes.pop(key).threads.shutdown(wait=False)

"""Threads that wait for other servers, in a pool for each owner: a server that hangs holds up only its owner."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
MOST_IDLE = 32  # pools that are kept for their threads


@dataclass(eq=False, slots=True)
class OwnerPool:
    """waiting: work that was given to it and is not done."""

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
    """On the event loop only. size: threads of a pool. name: of its threads."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size = name, size
        self._pools: OrderedDict[K, OwnerPool] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pools)

    def get(self, key: K) -> OwnerPool:
        if key not in self._pools:
            self._close_idle()
            self._pools[key] = OwnerPool(ThreadPoolExecutor(self._size, thread_name_prefix=self._name))
        self._pools.move_to_end(key)
        return self._pools[key]

    def close(self) -> None:
        for pool in self._pools.values():
            pool.threads.shutdown(wait=False, cancel_futures=True)

    def _close_idle(self) -> None:
        """Deleted projects, judges and models leave no threads behind."""
        idle = [key for key, pool in self._pools.items() if not pool.waiting]
        for key in idle[: max(len(idle) - MOST_IDLE + 1, 0)]:
            self._pools.pop(key).threads.shutdown(wait=False)

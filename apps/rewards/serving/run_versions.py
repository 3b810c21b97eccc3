"""Which version last scored each policy run: a reward that changes within one is announced, once.

The database says which one it was, for all processes. It is asked when a process sees a run for the first time or
another version of it; as long as the version stays, memory answers.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

import psycopg
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from apps.rewards.accounting import store_run_version

logger = logging.getLogger(__name__)

RunKey = tuple[int, str]  # endpoint, policy run
_MOST = 10_000
MOST_ASKED = (
    2_000  # runs of an endpoint within an hour; a client that names each request makes no row for each
)
WAIT_SECONDS = 1.0  # for the database; without it, memory of this process answers


def _store(key: RunKey, version: int) -> int | None:
    try:
        return store_run_version(endpoint=key[0], run=key[1], version=version)
    finally:
        connection.close()


@dataclass(eq=False, slots=True)
class RunVersions:
    """On the event loop only. The runs that asked longest ago are forgotten first."""

    store: Callable[[RunKey, int], int | None] = _store
    _last: OrderedDict[RunKey, int] = field(default_factory=OrderedDict)
    _asked: Counter[int] = field(default_factory=Counter)  # by endpoint
    _hour: datetime | None = None
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="touchstone-runs")
    )

    async def change(self, key: RunKey, version: int) -> int | None:
        """Note the version that answered. The one before it, where that was another and no process announced it."""
        before = self._last.get(key)
        self._last[key] = version
        self._last.move_to_end(key)
        while len(self._last) > _MOST:
            self._last.popitem(last=False)
        if before == version:
            return None
        if not self._may_ask(key[0]):
            return before
        try:
            asked = asyncio.get_running_loop().run_in_executor(self._pool, self.store, key, version)
            return await asyncio.wait_for(asked, WAIT_SECONDS)
        except (DatabaseError, InterfaceError, psycopg.Error, OSError, TimeoutError) as error:
            logger.warning("the versions of policy runs are compared within this process only: %s", error)
            return before

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _may_ask(self, endpoint: int) -> bool:
        hour = timezone.now().replace(minute=0, second=0, microsecond=0)
        if hour != self._hour:
            self._hour = hour
            self._asked.clear()
        self._asked[endpoint] += 1
        return self._asked[endpoint] <= MOST_ASKED


def change_warning(run: str, before: int, version: int) -> str:
    """As the value of a header: ASCII only."""
    return f"the version changed from {before} to {version} within the run {run!a}; send `version` to keep to one"

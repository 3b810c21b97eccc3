"""Keeping up with the database: LISTEN on a connection of its own as a hint, and a read every few seconds regardless.

While the database is away the service goes on with what it knows.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
from django.db import Error as DatabaseError
from django.db import OperationalError, connection

from apps.rewards.serving.directory import Directory, read_directory

logger = logging.getLogger(__name__)

CHANNELS = ("touchstone_keys", "touchstone_endpoints")
EVERY_SECONDS = 4.0  # an off switch is followed within five, however it is heard of
SPACING_SECONDS = 0.25  # between readings that somebody waits for
RECONNECT_SECONDS = 1.0
# Of the parameters Django connects with, those that are about its cursors rather than about the server.
_DJANGOS = ("cursor_factory", "context", "connect_timeout")


class Watcher:
    """on_change is called on the event loop with every reading. unreachable_since: a time, while it is so."""

    def __init__(self, on_change: Callable[[Directory], None]) -> None:
        self._on_change = on_change
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="touchstone-directory")
        self._began = -SPACING_SECONDS
        self._waiting = asyncio.Lock()
        self.unreachable_since: float | None = None
        self.reads = 0

    async def run(self) -> None:
        while True:
            try:
                await self._listen()
            except (psycopg.OperationalError, OperationalError, OSError) as error:
                if self.unreachable_since is None:
                    self.unreachable_since = time.time()
                    logger.warning("the database is out of reach; serving what is known: %s", error)
                await asyncio.sleep(RECONNECT_SECONDS)

    def close(self) -> None:
        self._reader.shutdown(wait=True)

    async def catch_up(self) -> None:
        """Return when all is known that was written before the call, or the database is out of reach.

        For who names what is not known: it may have been made a moment ago. All who wait share a reading, and there
        are at most four a second.
        """
        asked = time.monotonic()
        async with self._waiting:
            if self._began > asked or self.unreachable_since is not None:
                return
            await asyncio.sleep(self._began + SPACING_SECONDS - asked)
            try:
                await self.refresh()
            except DatabaseError as error:
                logger.warning("the database is out of reach; answering from what is known: %s", error)

    async def refresh(self) -> None:
        self._began = time.monotonic()
        directory = await asyncio.get_running_loop().run_in_executor(self._reader, read_directory)
        self.reads += 1
        if self.unreachable_since is not None:
            logger.info("the database is back after %.0f s", time.time() - self.unreachable_since)
            self.unreachable_since = None
        self._on_change(directory)

    async def _listen(self) -> None:
        params = {
            key: value for key, value in connection.get_connection_params().items() if key not in _DJANGOS
        }
        direct = await psycopg.AsyncConnection.connect(**params, autocommit=True, connect_timeout=5)
        async with direct:
            for channel in CHANNELS:
                await direct.execute(f"LISTEN {channel}")
            while True:
                await self.refresh()
                async for _ in direct.notifies(timeout=EVERY_SECONDS, stop_after=1):
                    pass

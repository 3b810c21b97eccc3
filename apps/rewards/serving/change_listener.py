"""Following changes of the database: LISTEN on a separate connection is a hint, and all is read every few seconds.

While the database is unreachable the service continues with the registry it has.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
from django.db import Error as DatabaseError
from django.db import connection

from apps.rewards.serving.registry import EndpointRegistry, read_registry

logger = logging.getLogger(__name__)

CHANNELS = ("touchstone_keys", "touchstone_endpoints")
EVERY_SECONDS = 4.0  # an endpoint that is switched off stops within five
SPACING_SECONDS = 0.25  # between reads that a request waits for
RECONNECT_SECONDS = 1.0
# Of the parameters Django connects with, those that are about its cursors rather than about the server.
_DJANGO_PARAMETERS = ("cursor_factory", "context", "connect_timeout")


class _ReadOnlyConnection(Exception):
    """The connection is to be made again; the database is reachable."""


class ChangeListener:
    """on_change is called on the event loop with every read. unreachable_since: a time; None while it is reachable."""

    def __init__(self, on_change: Callable[[EndpointRegistry], None]) -> None:
        self._on_change = on_change
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="touchstone-directory")
        self._began = -SPACING_SECONDS
        self._waiting = asyncio.Lock()
        self.unreachable_since: float | None = None
        self.is_read_only = False
        self.reads = 0

    async def run(self) -> None:
        while True:
            try:
                await self._listen()
            except _ReadOnlyConnection:
                continue
            except (psycopg.Error, DatabaseError, OSError) as error:
                if self.unreachable_since is None:
                    self.unreachable_since = time.time()
                    logger.warning("the database is unreachable; serving the known registry: %s", error)
                await asyncio.sleep(RECONNECT_SECONDS)

    def close(self) -> None:
        self._reader.shutdown(wait=True)

    async def catch_up(self) -> None:
        """Return when everything written before the call is known, or the database is unreachable.

        For a request that names an unknown key or endpoint: it may be new. Waiting requests share a read, and there are
        at most four reads per second.
        """
        asked = time.monotonic()
        async with self._waiting:
            if self._began > asked or self.unreachable_since is not None:
                return
            await asyncio.sleep(self._began + SPACING_SECONDS - asked)
            try:
                await self.refresh()
            except DatabaseError as error:
                logger.warning("the database is unreachable; answering from the known registry: %s", error)

    async def refresh(self) -> None:
        self._began = time.monotonic()
        directory = await asyncio.get_running_loop().run_in_executor(self._reader, read_registry)
        self.reads += 1
        if self.unreachable_since is not None:
            logger.info("the database is back after %.0f s", time.time() - self.unreachable_since)
            self.unreachable_since = None
        self._on_change(directory)

    async def _listen(self) -> None:
        params = {
            key: value
            for key, value in connection.get_connection_params().items()
            if key not in _DJANGO_PARAMETERS
        }
        direct = await psycopg.AsyncConnection.connect(**params, autocommit=True, connect_timeout=5)
        async with direct:
            await self._subscribe(direct)
            while True:
                await self.refresh()
                await self._note_read_only(direct)
                async for _ in direct.notifies(timeout=EVERY_SECONDS, stop_after=1):
                    pass

    async def _subscribe(self, direct: psycopg.AsyncConnection) -> None:
        """A standby does not support LISTEN: there the read every few seconds has to do."""
        try:
            for channel in CHANNELS:
                await direct.execute(f"LISTEN {channel}")
        except psycopg.errors.ReadOnlySqlTransaction as error:
            logger.warning(
                "the database sends no notifications; it is read every %g s: %s", EVERY_SECONDS, error
            )

    async def _note_read_only(self, direct: psycopg.AsyncConnection) -> None:
        """Raises _ReadOnlyConnection, so that another connection is made: after a failover this one may lead to the old
        server."""
        row = await (await direct.execute("SELECT current_setting('transaction_read_only')::bool")).fetchone()
        was, self.is_read_only = self.is_read_only, bool(row and row[0])
        if self.is_read_only:
            if not was:
                logger.warning("the database is read-only; serving continues, usage waits")
            await asyncio.sleep(EVERY_SECONDS)
            raise _ReadOnlyConnection
        if was:
            logger.info("the database is writable again")

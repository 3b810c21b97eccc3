"""kombu's transport over a database, with a broker that takes no changes as an empty one: workers wait, nothing ends.

To kombu a refused change is no lost connection, so the worker ended, and with it the job that it was doing.
"""

import logging
import time
from queue import Empty
from typing import Any

from kombu.transport import sqlalchemy as kombus
from sqlalchemy.exc import DBAPIError

from apps.core.database.outage import is_read_only

log = logging.getLogger(__name__)
_REPORT_SECONDS = 60.0


class Channel(kombus.Channel):
    _reported = float("-inf")

    def _get(self, queue: Any, timeout: Any = None) -> Any:
        try:
            return super()._get(queue)
        except DBAPIError as error:
            if not is_read_only(error):
                raise
            self._forget_session()
            self._report(error)
            raise Empty from error

    def _put(self, queue: Any, message: Any, **kwargs: Any) -> None:  # type: ignore[override]
        try:
            super()._put(queue, message, **kwargs)
        except DBAPIError as error:
            if is_read_only(error):  # the sender is told; beat sends another as long as something waits
                self._forget_session()
            raise

    def _forget_session(self) -> None:
        """A session keeps what it was opened with, and after a failover it may still be one of the old server."""
        self.session.invalidate()

    def _report(self, error: DBAPIError) -> None:
        if time.monotonic() - self._reported >= _REPORT_SECONDS:
            self._reported = time.monotonic()
            log.warning("the broker's database takes no changes; work waits: %s", error.orig)


class Transport(kombus.Transport):
    Channel = Channel

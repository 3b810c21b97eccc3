"""Around every request: an id, a log line, and a problem document for any error."""

import logging
import time
from collections.abc import Mapping

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apps.core.errors import DomainError
from apps.core.logs import context, request_id
from apps.rewards.serving.problems import problem_response, response_of
from workers.errors import RewardError

logger = logging.getLogger("touchstone.rewards.access")


_HEADERS = "touchstone.headers"


def add_headers(scope: Scope, headers: Mapping[str, str]) -> None:
    """Add headers to the reply to this request, also if it is an error."""
    scope.setdefault(_HEADERS, []).extend(
        (name.lower().encode(), value.encode()) for name, value in headers.items()
    )


class RequestContext:
    """Errors for the user become problem documents; others get a reference, and their traceback is in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sent = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        number = request_id(sent)
        with context(request=number):
            await self._answer(scope, receive, send, number)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, number: str) -> None:
        started, status = time.perf_counter(), 0

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                more = scope.get(_HEADERS, [])
                message["headers"] = [*message["headers"], (b"x-request-id", number.encode()), *more]
            await send(message)

        try:
            await self.app(scope, receive, tagged)
        except (DomainError, RewardError) as error:
            await response_of(error, scope["path"])(scope, receive, tagged)
        except ClientDisconnect:  # no tracebacks: strangers must not fill the log
            logger.info(
                "the client disconnected before its body arrived: %s %s", scope["method"], scope["path"]
            )
        except Exception:
            logger.exception("failed on %s %s", scope["method"], scope["path"])
            if status:
                raise
            detail = "An internal error occurred. The log has the details under this reference."
            await problem_response(500, detail, reference=number)(scope, receive, tagged)
        finally:
            ms = (time.perf_counter() - started) * 1000
            logger.info("%s %s %d %.1f ms", scope["method"], scope["path"], status, ms)

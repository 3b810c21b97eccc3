"""Around every request: an id, a log line without secrets, and an answer whatever goes wrong."""

import logging
import re
import secrets
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apps.core.errors import DomainError
from apps.rewards.serving.problems import problem_response, response_of
from workers.errors import RewardError

logger = logging.getLogger("touchstone.rewards.access")
_REQUEST_ID = re.compile(rb"[\w.\-]{1,100}")
_KEY = re.compile(r"([?&]key=)[^&\s]*")


class RedactKeys(logging.Filter):
    """`?key=` is a secret in a URL; access logs of the server write URLs."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(redact(arg) if isinstance(arg, str) else arg for arg in record.args)
        return True


def redact(text: str) -> str:
    return _KEY.sub(r"\1[redacted]", text)


class RequestContext:
    """Errors for people become problem documents; everything else a reference, with the traceback in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _request_id(scope)
        started, status = time.perf_counter(), 0

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, tagged)
        except (DomainError, RewardError) as error:
            await response_of(error)(scope, receive, tagged)
        except Exception:
            logger.exception("%s %s %s", request_id, scope["method"], scope["path"])
            if status:
                raise
            detail = "Something went wrong on our side. The log has the details under this reference."
            await problem_response(500, detail, reference=request_id)(scope, receive, tagged)
        finally:
            ms = (time.perf_counter() - started) * 1000
            logger.info("%s %s %s %d %.1f ms", request_id, scope["method"], scope["path"], status, ms)


def _request_id(scope: Scope) -> str:
    """The caller's, if it is one that can be logged, else a new one."""
    sent = dict(scope["headers"]).get(b"x-request-id", b"")
    return sent.decode() if _REQUEST_ID.fullmatch(sent) else secrets.token_hex(8)

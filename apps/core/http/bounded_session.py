"""A session of `requests`, for libraries that want one, whose calls go by the one client for outgoing calls.

Its addresses are the operator's: they are called wherever they are.
"""

from collections.abc import Mapping
from typing import Any

import requests
from requests.adapters import BaseAdapter

from apps.core.http import outgoing
from apps.core.http.outgoing import CallLimits, NoReply

MOST_BYTES = 2**20  # of an answer


class BoundedSession(requests.Session):
    """seconds: of a call."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.trust_env = False  # proxies, and passwords of .netrc
        self.max_redirects = 0  # one is an error, not an answer
        adapter = _Adapter(CallLimits(seconds=seconds, body=MOST_BYTES))
        self.adapters.clear()
        for scheme in ("https://", "http://"):
            self.mount(scheme, adapter)


class _Adapter(BaseAdapter):
    def __init__(self, limits: CallLimits) -> None:
        super().__init__()
        self._limits = limits

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Always within the limits and by the certificates of outgoing calls, whatever else is asked for."""
        body = request.body or b""
        if not isinstance(body, str | bytes):
            raise requests.exceptions.InvalidSchema("A body is text or bytes; none is streamed.")
        try:
            reply = outgoing.request(
                request.method or "GET",
                request.url or "",
                body=body.encode() if isinstance(body, str) else body,
                headers=_sent(request.headers),
                limits=self._limits,
                guarded=False,
            )
        except outgoing.NotCallable as error:
            raise requests.exceptions.InvalidURL(error.message) from error
        except NoReply as error:
            raise requests.ConnectionError(error.message) from error
        return _response(request, reply)

    def close(self) -> None:
        """Nothing is kept open."""


def _sent(headers: Mapping[str, Any]) -> dict[str, str]:
    """Without what belongs to the connection: the client sets it."""
    return {
        name: value.decode("latin-1") if isinstance(value, bytes) else str(value)
        for name, value in headers.items()
        if name.lower()
        not in ("accept-encoding", "connection", "content-length", "host", "transfer-encoding")
    }


def _response(request: requests.PreparedRequest, reply: outgoing.Reply) -> requests.Response:
    response = requests.Response()
    response.status_code = reply.status
    response.headers.update(reply.headers)
    response.encoding = requests.utils.get_encoding_from_headers(response.headers)
    response.url, response.request = request.url or "", request
    response._content = reply.body
    response._content_consumed = True
    return response

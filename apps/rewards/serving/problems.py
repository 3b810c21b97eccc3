"""Every error leaves as a problem document (RFC 9457)."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from apps.core.errors import DomainError, TooManyRequests
from workers.engine import Overloaded
from workers.errors import RewardError, Unavailable

MEDIA_TYPE = "application/problem+json"


class Problem(DomainError):
    """An error with headers or further members of its document."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        pointer: str | None = None,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(message, pointer=pointer, status=status)
        self.headers = dict(headers or {})
        self.members = members


def problem_response(
    status: int,
    detail: str,
    *,
    pointer: str | None = None,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> Response:
    """members: further fields of the document; those that are None are left out."""
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    document |= {
        name: value for name, value in {"pointer": pointer or None, **members}.items() if value is not None
    }
    return Response(json.dumps(document), status, dict(headers or {}), MEDIA_TYPE)


def status_of(error: DomainError | RewardError) -> int:
    if isinstance(error, Overloaded):
        return 429
    if isinstance(error, Unavailable):
        return 503
    return error.status if isinstance(error, DomainError) else 422


def response_of(error: DomainError | RewardError, path: str = "") -> Response:
    """path: of the request; clients of some protocols look for the sentence in a field of their own."""
    status, headers, members = status_of(error), dict[str, str](), dict[str, Any]()
    if isinstance(error, Overloaded | Unavailable):
        headers, members = {"Retry-After": str(error.retry_after)}, {"retry_after": error.retry_after}
    elif isinstance(error, TooManyRequests):
        headers, members = {"Retry-After": str(error.retry_after)}, {"retry_after": error.retry_after}
        members |= {"limit": getattr(error, "limit", None), "limit_name": getattr(error, "name", None)}
    elif isinstance(error, Problem):
        headers, members = error.headers, error.members
    if path.startswith("/compat/vllm/"):  # as OpenAI's
        fields = {"message": error.message, "type": HTTPStatus(status).phrase, "param": error.pointer}
        members = members | {"error": fields | {"code": status}}
    elif path.startswith("/compat/tei/"):
        members = members | {"error": error.message, "error_type": HTTPStatus(status).phrase}
    return problem_response(status, error.message, pointer=error.pointer, headers=headers, **members)

"""Errors as problem documents (RFC 9457)."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse, JsonResponse

PROBLEM = "application/problem+json"


def problem(
    status: int, detail: str, *, headers: dict[str, str] | None = None, **members: Any
) -> HttpResponse:
    """A problem document. members: further fields; those that are None are left out."""
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    document |= {name: value for name, value in members.items() if value is not None}
    return JsonResponse(document, status=status, content_type=PROBLEM, headers=headers)


def pointer(parts: Sequence[str | int]) -> str:
    """The JSON pointer (RFC 6901) to a place in a document."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)

"""What no request may hold, since PostgreSQL cannot: NUL and lone surrogates; and what its columns are too small for.

The middleware refuses it in addresses, cookies and forms, `apps.core.http.api` in JSON. What is left for the
database to refuse, such as a number or a date past its column, is told the client too: `is_unstorable` knows those
errors.
"""

from collections.abc import Iterable
from typing import Any

from django.db import DataError
from django.http import HttpRequest

REFUSED = "It holds a value that cannot be kept: a number, date or text past its limits, or no character."
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def refusal(request: HttpRequest, view: Any) -> tuple[int, str] | None:
    """Status and reason where the address or the form of a request holds what cannot be looked for or kept."""
    if not is_storable(request.path):
        return 404, "There is nothing here, or it is not yours to see."
    found = _strange(request.GET.lists(), "The address")
    is_form = request.method == "POST" and request.content_type in _FORMS
    if (
        found is None and is_form and not getattr(view, "csrf_exempt", False)
    ):  # of others the view reads the body
        found = _strange(request.POST.lists(), "The form")
    return None if found is None else (400, found)


def is_storable(text: str) -> bool:
    return "\x00" not in text and (text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text))


def _strange(fields: Iterable[tuple[str, list[Any]]], what: str) -> str | None:
    for name, values in fields:
        if not is_storable(name):
            return f"{what} has a field whose name holds a character that is no text."
        if not all(is_storable(value) for value in values):
            return f"{what}: {name} holds a character that is no text (NUL, or half of one). Take it out."
    return None


def is_unstorable(error: BaseException) -> bool:
    """Whether the database, or its driver, refused a value of a request."""
    return isinstance(error, DataError | OverflowError) or (
        isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed"
    )

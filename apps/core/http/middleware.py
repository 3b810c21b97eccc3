"""The last line of defence: errors for people become pages, everything else a reference number and a traceback."""

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from django.contrib.sessions.exceptions import SessionInterrupted
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from apps.core.database.outage import RETRY_AFTER, in_words, met_outage, outage_behind, renew_connections
from apps.core.errors import DomainError, TooManyRequests
from apps.core.http.problems import problem
from apps.core.logs import context, current, request_id
from apps.core.storage.storable_text import REFUSED, is_storable, is_unstorable, refusal
from workers.schema.patterns import TextPattern

log = logging.getLogger(__name__)
_PROJECT_PATH = TextPattern(r"/p/([a-z0-9-]{1,60})/.")


# Nothing inline and nothing from elsewhere: what an agent wrote can neither run nor call home.
_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


class RequestLogMiddleware:
    """An id for every request, on all its log lines and in its answer; and one line when it is answered."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began, number = time.perf_counter(), request_id(request.headers.get("X-Request-ID"))
        with context(request=number):
            response = self.get_response(request)
            response.headers["X-Request-ID"] = number
            ms = (time.perf_counter() - began) * 1000
            log.info("%s %s %d %.0f ms", request.method, request.path, response.status_code, ms)
        return response


class ContentSecurityPolicyMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", _POLICY)
        return response


_FOR_PROGRAMS = ("/api/", "/v1/")  # answered in JSON


class StorableTextMiddleware:
    """Before everything that looks up what a client sent: sessions, keys, views (`storable_text`)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.COOKIES = {
            name: value for name, value in request.COOKIES.items() if is_storable(name) and is_storable(value)
        }
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, *_: Any) -> HttpResponse | None:
        if getattr(view, "refuses_strange_text", False) or (found := refusal(request, view)) is None:
            return None
        status, message = found
        if request.path.startswith(_FOR_PROGRAMS):
            return problem(status, message)
        return error_page(request, status=status, message=message)


class DomainErrorMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, DomainError):
            page = error_page(request, status=error.status, message=error.message, pointer=error.pointer)
            if isinstance(error, TooManyRequests):
                page.headers["Retry-After"] = str(error.retry_after)
            return page
        if is_unstorable(error):
            log.warning("%s on %s %s", error, request.method, request.path)
            return error_page(request, status=400, message=REFUSED)
        return None


def error_page(
    request: HttpRequest, *, status: int, message: str, reference: str = "", pointer: str | None = None
) -> HttpResponse:
    """A whole page, or for htmx the fragment alone."""
    template = "core/_error.html" if getattr(request, "htmx", False) else "core/error.html"
    # Set by what let the request in: the page keeps the bar of the project it is in.
    project = getattr(getattr(request, "membership", None), "project", None)
    context = {"status": status, "message": message, "reference": reference, "project": project}
    context |= {"pointer": pointer}
    return render(request, template, context, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What Django calls an interrupted session is a logout elsewhere, or a database that went away meanwhile."""
    message = "The request could not be understood."
    if isinstance(exception, SessionInterrupted):
        if (lost := outage_behind(exception)) is not None:
            return _outage(request, lost)
        message = "You were logged out in another window. Log in and send this again."
    return error_page(request, status=400, message=message)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, status=403, message=str(exception) or "You may not do this.")


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, status=404, message="There is nothing here, or it is not yours to see.")


def server_error(request: HttpRequest) -> HttpResponse:
    """Called while the exception is being handled: the traceback goes to the log under the number people see."""
    error = sys.exc_info()[1]
    if error is not None and (outage := met_outage(error)) is not None:
        return _outage(request, outage)
    log.exception("failed on %s %s", request.method, request.path)
    message = "Something went wrong on our side. The log has the details under this number."
    return _without_database(request, 500, message, {}, reference=current("request"))


def _outage(request: HttpRequest, error: BaseException) -> HttpResponse:
    log.warning("%s on %s %s", error, request.method, request.path)
    renew_connections(error)
    request.META["CSRF_COOKIE_NEEDS_UPDATE"] = False  # the same form is sent again, with its old token
    headers = {"Retry-After": RETRY_AFTER}
    response = _without_database(request, 503, in_words(error), headers, fields=_sent_fields(request))
    response._has_been_logged = True  # type: ignore[attr-defined]  # by Django: a traceback for each request
    return response


def _sent_fields(request: HttpRequest) -> list[tuple[str, str]] | None:
    """What a form had in it, to be sent again from the page of the error. None where there is nothing to send, or
    what does not belong into a page: files, passwords."""
    if request.method != "POST" or getattr(request, "htmx", False) or request.path.startswith("/api/"):
        return None
    try:
        fields = [(name, value) for name, values in request.POST.lists() for value in values]
        has_files = bool(request.FILES)
    except Exception:  # a body that ended early, or is no form; there is an answer to give all the same
        return None
    if not fields or has_files or any("password" in name or "secret" in name for name, _ in fields):
        return None
    return [(name, str(value)) for name, value in fields]


def _without_database(
    request: HttpRequest,
    status: int,
    message: str,
    headers: dict[str, str],
    *,
    reference: str = "",
    fields: list[tuple[str, str]] | None = None,
) -> HttpResponse:
    """Rendered without the request: what failed may be the database, which the page's navigation reads."""
    template = "core/_error.html" if getattr(request, "htmx", False) else "core/server_error.html"
    context: dict[str, Any] = {
        "message": message,
        "reference": reference,
        "fields": fields,
        "path": request.get_full_path(),
    }
    project = _PROJECT_PATH.match(request.path)  # by the address alone
    context |= {"may_repeat": request.method == "GET", "project_slug": project[1] if project else ""}
    text = render_to_string(template, context)
    return HttpResponse(text, status=status, headers=headers)

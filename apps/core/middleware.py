"""The last line of defence: errors for people become pages, everything else a reference number and a traceback."""

import logging
import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from apps.core.errors import DomainError

log = logging.getLogger(__name__)


# Nothing inline and nothing from elsewhere: what an agent wrote can neither run nor call home.
_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


class ContentSecurityPolicyMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", _POLICY)
        return response


class DomainErrorMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, DomainError):
            return error_page(request, status=error.status, message=error.message)
        return None


def error_page(request: HttpRequest, *, status: int, message: str, reference: str = "") -> HttpResponse:
    """A whole page, or for htmx the fragment alone."""
    template = "core/_error.html" if getattr(request, "htmx", False) else "core/error.html"
    context = {"status": status, "message": message, "reference": reference}
    return render(request, template, context, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, status=400, message="The request could not be understood.")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, status=403, message=str(exception) or "You may not do this.")


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, status=404, message="There is nothing here, or it is not yours to see.")


def server_error(request: HttpRequest) -> HttpResponse:
    """Called while the exception is being handled: the traceback goes to the log under the number people see."""
    reference = secrets.token_hex(4)
    log.exception("%s on %s %s", reference, request.method, request.path)
    message = "Something went wrong on our side. The log has the details under this number."
    template = "core/_error.html" if getattr(request, "htmx", False) else "core/server_error.html"
    # Rendered without the request: what failed may be the database, which the page's navigation reads.
    return HttpResponse(render_to_string(template, {"message": message, "reference": reference}), status=500)

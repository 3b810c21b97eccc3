"""What every API of ours shares: errors as problem documents (RFC 9457), and pages by cursor.

An operation that lists:

    rows, cursor = paginate(Run.objects.filter(project=project), cursor=cursor, limit=limit)
    return {"items": [run_out(row) for row in rows], "next": cursor}
"""

import base64
import json
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.parser import Parser

from apps.core.database.outage import RETRY_AFTER, in_words, met_outage, renew_connections
from apps.core.errors import DomainError, TooManyRequests
from apps.core.http.problems import pointer, problem
from apps.core.logs import current
from apps.core.storage.storable_text import REFUSED, is_unstorable
from workers.errors import InvalidRecord, RewardError
from workers.schema import BODY_LIMITS, TooMuchJson, parse_json
from workers.schema.decode import is_clean

log = logging.getLogger(__name__)


class BoundedParser(Parser):
    """Bodies of JSON within BODY_LIMITS; what passes them is answered by `_too_much`."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        body: dict[str, Any] = parse_json(request.body, limits=BODY_LIMITS, repeats=False)
        if not is_clean(body):
            raise DomainError(
                "The body holds a character that is no text (NUL, or half of one). Take it out."
            )
        return body


DEFAULT_LIMIT, MAX_LIMIT = 100, 1000


@csrf_exempt
def not_found(request: HttpRequest) -> HttpResponse:
    """What answers below the API's root where no operation does."""
    return problem(404, f"There is no {request.path} in this API; its calls are listed at /api/v1/docs.")


class MethodProblemMiddleware:
    """A method that an operation does not take is a problem document too; ninja answers it with plain text."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code != 405 or not request.path.startswith("/api/"):
            return response
        allowed = response.headers["Allow"]
        detail = f"{request.path} does not take {request.method}; it takes {allowed}."
        return problem(405, detail, headers={"Allow": allowed})


def _validation(error: ValidationError) -> HttpResponse:
    errors = []
    for error_item in error.errors:
        source, *rest = error_item["loc"]
        # An operation has one body parameter, whose name is ours and not in the caller's document.
        where = (
            {"pointer": pointer(rest[1:])}
            if source in ("body", "form")
            else {"parameter": ".".join(map(str, rest))}
        )
        errors.append({"detail": error_item["msg"], **where})
    first = errors[0]
    place = first.get("pointer") or first.get("parameter") or "the document"
    return problem(422, f"{place}: {first['detail']}", pointer=first.get("pointer"), errors=errors)


def _too_much(error: RewardError) -> HttpResponse | None:
    """The answer to a document over a limit of its shape; None for another error."""
    if not isinstance(error, TooMuchJson):
        return None
    detail = f"The document is {error.message}"
    return problem(413, detail, pointer=error.pointer or None, limit=error.limit, limit_name=error.name)


def install_problem_handlers(api: NinjaAPI) -> None:
    """Have every error of `api` answered by a problem document, and its bodies read within limits."""
    api.parser = BoundedParser()

    @api.exception_handler(DomainError)
    def domain_error(request: HttpRequest, error: DomainError) -> HttpResponse:
        wait = {"Retry-After": str(error.retry_after)} if isinstance(error, TooManyRequests) else None
        members = {"limit": getattr(error, "limit", None), "limit_name": getattr(error, "name", None)}
        return problem(error.status, error.message, pointer=error.pointer, headers=wait, **members)

    @api.exception_handler(RewardError)
    def reward_error(request: HttpRequest, error: RewardError) -> HttpResponse:
        return _too_much(error) or problem(422, error.message, pointer=error.pointer)

    @api.exception_handler(ValidationError)
    def validation_error(request: HttpRequest, error: ValidationError) -> HttpResponse:
        return _validation(error)

    @api.exception_handler(AuthenticationError)
    def unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
        sent = (
            "This key is not valid: unknown, revoked or expired."
            if "Authorization" in request.headers
            else "No key was sent."
        )
        detail = f"{sent} Send a live API key of the project as `Authorization: Bearer KEY`."
        return problem(401, detail, headers={"WWW-Authenticate": 'Bearer realm="touchstone"'})

    @api.exception_handler(HttpError)
    def http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
        cause = error.__cause__  # ninja's "Cannot parse request body" does not say why
        if isinstance(cause, InvalidRecord):
            return _too_much(cause) or problem(400, f"The body is {cause.message}")
        return problem(error.status_code, str(error))

    @api.exception_handler(PermissionDenied)
    def forbidden(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
        return problem(403, str(error) or "You may not do this.")

    @api.exception_handler(Http404)
    def missing(request: HttpRequest, error: Http404) -> HttpResponse:
        return problem(404, str(error) or "There is nothing here, or it is not yours to see.")

    @api.exception_handler(RequestDataTooBig)
    def too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
        return problem(413, str(error))

    @api.exception_handler(Exception)
    def unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
        if (outage := met_outage(error)) is not None:
            log.warning("%s on %s %s", outage, request.method, request.path)
            renew_connections(outage)
            response = problem(503, in_words(outage), headers={"Retry-After": RETRY_AFTER})
            response._has_been_logged = True  # type: ignore[attr-defined]  # Django would call it an error
            return response
        if is_unstorable(error):
            log.warning("%s on %s %s", error, request.method, request.path)
            return problem(400, REFUSED)
        log.error("failed on %s %s", request.method, request.path, exc_info=error)
        detail = "Something went wrong on our side. The log has the details under this reference."
        return problem(500, detail, reference=current("request"))


RowT = TypeVar("RowT", bound=Model)


_BAD_CURSOR = "The cursor is not one of ours: take it unchanged from `next`, or leave it out."


def encode_cursor(at: datetime | None, pk: int) -> str:
    place = [at and at.isoformat(), pk]
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *, has_time: bool = True) -> tuple[datetime | None, int]:
    """has_time: whether the list is in the order of a time."""
    try:
        at, pk = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        place = (None if at is None else datetime.fromisoformat(at), int(pk))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise DomainError(_BAD_CURSOR) from error
    if (at is not None) is not has_time:
        raise DomainError(_BAD_CURSOR)  # of another list
    return place


def paginate(
    rows: QuerySet[RowT],
    *,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
    field: str | None = "created_at",
) -> tuple[list[RowT], str | None]:
    """Up to `limit` rows, newest by (`field`, pk) first, and the cursor of the next page or None.

    field: of a time; None for rows without one, which come by their key alone.

    Rows that arrive meanwhile shift nothing: the next page begins after the last row shown.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise DomainError(f"limit is {limit}; it must be from 1 to {MAX_LIMIT}.")
    if cursor:
        at, pk = decode_cursor(cursor, has_time=field is not None)
        if field is None:
            rows = rows.filter(pk__lt=pk)
        else:  # The first condition alone can use an index on the field.
            rows = rows.filter(Q(**{f"{field}__lte": at}) & (Q(**{f"{field}__lt": at}) | Q(pk__lt=pk)))
    order = ["-pk"] if field is None else [f"-{field}", "-pk"]
    page = list(rows.order_by(*order)[: limit + 1])
    if len(page) <= limit:
        return page, None
    last = page[limit - 1]
    return page[:limit], encode_cursor(None if field is None else getattr(last, field), last.pk)


def paginate_from_first(
    rows: QuerySet[RowT], *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> tuple[list[RowT], str | None]:
    """As `paginate`, by their key, oldest first."""
    if not 1 <= limit <= MAX_LIMIT:
        raise DomainError(f"limit is {limit}; it must be from 1 to {MAX_LIMIT}.")
    if cursor:
        rows = rows.filter(pk__gt=decode_cursor(cursor, has_time=False)[1])
    page = list(rows.order_by("pk")[: limit + 1])
    if len(page) <= limit:
        return page, None
    return page[:limit], encode_cursor(None, page[limit - 1].pk)

"""POST /v1/traces: where OpenTelemetry exporters send spans."""

import json
from typing import IO, Any, cast

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from apps.accounts.access import require_scope
from apps.accounts.auth import key_of
from apps.accounts.models import Scope
from apps.core.errors import DomainError
from apps.trajectories import otlp, traces
from workers.errors import InvalidRecord

# Not in `partialSuccess`: exporters write each of those into their log, and every export has such fields.
_DROPPED, _MOST_NAMED = "X-Touchstone-Dropped", 20
_LONGEST_PATH = 100  # characters
_LONGEST_HEADER = 2000  # proxies refuse an answer whose headers pass 4 or 8 KB


@csrf_exempt
def traces_receive(request: HttpRequest) -> HttpResponse:
    """The project is the key's. An answer of 200 means that the spans are kept; a header names the fields of the export
    that are in none of them."""
    media_type = (request.content_type or "").lower()
    try:
        received = _receive(request, media_type)
    except (DomainError, InvalidRecord) as error:
        where = f" (at {error.pointer})" if error.pointer else ""
        status = error.status if isinstance(error, DomainError) else 400
        return _answer(otlp.error_response(media_type, error.message + where), media_type, status)
    answer = _answer(otlp.success_response(media_type, received.refused, received.why), media_type, 200)
    if rows := received.dropped.as_json():
        answer.headers[_DROPPED] = _dropped_header(rows)
    return answer


def _dropped_header(rows: list[dict[str, Any]]) -> str:
    """As JSON in ASCII, which has no line ends. Paths are the sender's keys: long ones are cut, and what has no room is
    one last entry without a path."""
    listed: list[dict[str, Any]] = []
    size = 0
    for row in rows[:_MOST_NAMED]:
        cut = row | {"path": row["path"][:_LONGEST_PATH]}
        size += len(json.dumps(cut)) + 2
        if size > _LONGEST_HEADER:
            break
        listed.append(cut)
    if rest := rows[len(listed) :]:
        listed.append({"path": "", "reason": "further paths", "count": sum(row["count"] for row in rest)})
    return json.dumps(listed)


def _receive(request: HttpRequest, media_type: str) -> traces.Received:
    if request.method != "POST":
        raise DomainError(f"/v1/traces takes POST, not {request.method}.", status=405)
    key = key_of(request)
    if key is None:
        raise DomainError("Send a live API key as `Authorization: Bearer KEY`.", status=401)
    require_scope(key, Scope.INGEST)
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    body = otlp.read_body(cast(IO[bytes], request), encoding, otlp.MAX_BODY_BYTES)
    return traces.receive_export(project=key.project, export=otlp.parse_otlp(body, media_type))


def _answer(content: bytes, media_type: str, status: int) -> HttpResponse:
    answered = otlp.PROTOBUF if media_type == otlp.PROTOBUF else otlp.JSON
    headers = {405: {"Allow": "POST"}, 401: {"WWW-Authenticate": "Bearer"}}.get(status)
    return HttpResponse(content, content_type=answered, status=status, headers=headers)

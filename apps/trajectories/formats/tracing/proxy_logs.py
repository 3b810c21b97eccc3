"""Logs of calls of a model that gateways keep, a call each: Helicone's ({"request_body", "response_body"}) and
OpenPipe's ({"reqPayload", "respPayload"}). Calls of one session are one trajectory; a call without one is its own.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.tracing.observations import (
    READ,
    as_object,
    first_of,
    observation_span,
    outcome_facts,
    store_gatherer,
)
from apps.trajectories.formats.tracing.otel_spans import Span
from apps.trajectories.formats.tracing.span_runs import REPEATED, read
from workers.errors import InvalidRecord
from workers.schema.decode import require_object

__all__ = ["READ", "REPEATED", "SIGN", "Gathered", "read", "sniff"]
SIGN = "an object with `request_body` and `response_body`, or `reqPayload` and `respPayload`"
_PAIRS = (("request_body", "response_body"), ("reqPayload", "respPayload"), ("requestBody", "responseBody"))
_IDS = ("request_id", "requestId", "id", "response_id")
_STARTS, _ENDS = ("request_created_at", "requestedAt", "created_at"), ("response_created_at", "receivedAt")
_SESSION = ("Helicone-Session-Id", "session_id", "sessionId")
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "inputTokens", "outputTokens")
_COSTS = ("cost", "costUSD", "cost_usd")


def sniff(document: Any) -> bool:
    if isinstance(document, dict) and isinstance(document.get("data"), list) and document["data"]:
        return _pair(document["data"][0]) is not None
    return _pair(document) is not None


def read_spans(document: Any) -> Iterator[Span]:
    """Raises InvalidRecord."""
    document = require_object(document)
    calls = document["data"] if isinstance(document.get("data"), list) else [document]
    for index, call in enumerate(calls):
        yield _call(require_object(call, pointer=f"/data/{index}"))


Gathered = store_gatherer(read_spans)


def _pair(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    return next((pair for pair in _PAIRS if pair[0] in value and pair[1] in value), None)


def _call(call: dict[str, Any]) -> Span:
    pair, identity = _pair(call), first_of(*(call.get(key) for key in _IDS))
    if pair is None or not isinstance(identity, str | int):
        raise InvalidRecord("a call has an id, its request and its response.")
    tags = as_object(first_of(call.get("request_properties"), call.get("properties"), call.get("tags")))
    session = first_of(*(tags.get(key) for key in _SESSION))
    counts = {key: call[key] for key in _COUNTS if call.get(key)}
    answer = as_object(call[pair[1]])
    scores = as_object(call.get("scores"))
    return observation_span(
        call,
        trace=first_of(session, identity),
        id=identity,
        parent=None,
        kind="model",
        given=as_object(call[pair[0]]) or call[pair[0]],
        gave=answer or call[pair[1]],
        start=first_of(*(call.get(key) for key in _STARTS)),
        end=first_of(*(call.get(key) for key in _ENDS)),
        known=("id", *pair, *_STARTS, *_ENDS, *_COSTS),
        is_error=isinstance(call.get("error"), dict | str) and bool(call["error"]),
        facts=outcome_facts(scores, tags),
        model=first_of(answer.get("model"), call.get("response_model"), call.get("model")),
        usage=first_of(answer.get("usage"), counts),
        cost=first_of(*(call.get(key) for key in _COSTS)),
        conversation=session,
    )

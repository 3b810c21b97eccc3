"""Langfuse: a trace with its observations ({"trace", "observations"}, or the trace of the API with `observations` in
it), or observations alone, as a list, on lines or under `data`; rows of traces alone are what went in and came out.

An observation: {"id", "traceId", "parentObservationId", "type": "GENERATION" | "SPAN" | "AGENT" | "TOOL" | ..., "name",
"startTime", "endTime", "input", "output", "model", "usageDetails", "costDetails"}; exports to blob storage write the
same in snake case. Scores are the outcome's, no step's.
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
from apps.trajectories.formats.tracing.one_field_spans import KINDS
from apps.trajectories.formats.tracing.otel_spans import Span
from apps.trajectories.formats.tracing.span_runs import REPEATED, read
from workers.errors import InvalidRecord
from workers.schema.decode import require_object

__all__ = ["READ", "REPEATED", "SIGN", "Gathered", "read", "sniff"]
SIGN = "an object with `observations`, or an observation with `traceId` and a `type` such as GENERATION"
_TYPES = frozenset(
    (
        *("GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING"),
        "GUARDRAIL",
    )
)
_OF_TRACE = (
    "bookmarked",
    "htmlPath",
    "projectId",
    "project_id",
    "sessionId",
    "session_id",
    "userId",
    "user_id",
)
_KNOWN = (
    *(
        "id",
        "traceId",
        "trace_id",
        "parentObservationId",
        "parent_observation_id",
        "name",
        "startTime",
    ),
    *("start_time", "endTime", "end_time", "input", "output", "model", "providedModelName", "usageDetails"),
    *(
        "provided_model_name",
        "usage_details",
        "totalCost",
        "total_cost",
        "observations",
        "scores",
        "sessionId",
    ),
    *("session_id", "timestamp"),
)


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    data = document.get("data")
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return sniff(data[0]) and "data" not in data[0]
    observations = document.get("observations")
    if isinstance(observations, list) and (isinstance(document.get("trace"), dict) or "id" in document):
        return all(isinstance(each, str) or _is_typed(each) for each in observations[:3])
    return _is_observation(document) or _is_trace(document)


def read_spans(document: Any) -> Iterator[Span]:
    """Raises InvalidRecord."""
    document = require_object(document)
    if isinstance(document.get("data"), list):
        for each in document["data"]:
            yield from read_spans(each)
        return
    if _is_observation(document):
        yield _observation(document, "")
        return
    trace = document.get("trace")
    trace = trace if isinstance(trace, dict) else document
    if not isinstance(trace.get("id"), str | int):
        raise InvalidRecord("a trace has an id.", pointer="/trace/id")
    observations = document.get("observations")
    observations = observations if isinstance(observations, list) else []
    yield _trace(trace, document)
    seen = {str(each.get("id")) for each in observations if isinstance(each, dict)}
    for each in [*observations, *_further(trace, document, seen)]:
        if isinstance(each, dict):
            yield _observation(each, str(trace["id"]))


def _without_repeats(document: Any) -> Any:
    """Without the observations of the trace that are in the document itself, with what was said."""
    trace, listed = document.get("trace"), document.get("observations")
    if not isinstance(trace, dict) or not isinstance(listed, list):
        return document
    seen = {str(each.get("id")) for each in listed if isinstance(each, dict)}
    return document | {"trace": trace | {"observations": _further(trace, document, seen)}}


Gathered = store_gatherer(read_spans, once=_without_repeats)


def _further(trace: dict[str, Any], document: dict[str, Any], seen: set[str]) -> list[Any]:
    """Observations that the trace holds itself, most often without what was said, of which none stands elsewhere."""
    held = trace.get("observations") if trace is not document else None
    return (
        [each for each in held if isinstance(each, dict) and str(each.get("id")) not in seen]
        if isinstance(held, list)
        else []
    )


def _is_typed(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("type")).upper() in _TYPES and "id" in value


def _is_observation(value: Any) -> bool:
    return (
        _is_typed(value)
        and value["type"] in _TYPES
        and isinstance(value.get("traceId", value.get("trace_id")), str)
    )


def _is_trace(value: dict[str, Any]) -> bool:
    return (
        {"id", "timestamp", "input", "output"} <= set(value)
        and any(key in value for key in _OF_TRACE)
        and "messages" not in value
        and not isinstance(value.get("trace_id"), str)
    )


def _trace(trace: dict[str, Any], document: dict[str, Any]) -> Span:
    metadata = as_object(trace.get("metadata"))
    scores = [each for holder in (trace, document) for each in _list(holder.get("scores"))]
    facts = outcome_facts(_scores(scores), metadata, trace)
    if trace.get("name"):
        facts["agent"] = trace["name"]
    if scores:
        facts["score_records"] = scores
    return observation_span(
        trace,
        trace=trace["id"],
        id=trace["id"],
        parent=None,
        kind="chain",
        given=trace.get("input"),
        gave=trace.get("output"),
        start=trace.get("timestamp"),
        known=_KNOWN,
        facts=facts,
        name=trace.get("name"),
        conversation=first_of(trace.get("sessionId"), trace.get("session_id")),
    )


def _observation(given: dict[str, Any], trace: str) -> Span:
    trace = trace or str(first_of(given.get("traceId"), given.get("trace_id")))
    attributes = as_object(as_object(given.get("metadata")).get("attributes"))
    kind = KINDS.get(str(given.get("type")).lower(), "chain")
    counts = {
        key: given[key] for key in ("promptTokens", "completionTokens", "totalTokens") if given.get(key)
    }
    usage = first_of(given.get("usageDetails"), given.get("usage_details"), given.get("usage"), counts)
    cost = first_of(
        given.get("totalCost"),
        given.get("total_cost"),
        given.get("calculatedTotalCost"),
        as_object(first_of(given.get("costDetails"), given.get("cost_details"))).get("total"),
    )
    parent = first_of(given.get("parentObservationId"), given.get("parent_observation_id"))
    name = first_of(attributes.get("tool.name") if kind == "tool" else None, given.get("name"))
    return observation_span(
        given,
        trace=trace,
        id=given.get("id"),
        parent=first_of(parent, trace),
        kind=kind,
        given=given.get("input"),
        gave=given.get("output"),
        start=first_of(given.get("startTime"), given.get("start_time")),
        end=first_of(given.get("endTime"), given.get("end_time")),
        known=_KNOWN,
        is_error=given.get("level") == "ERROR",
        name=name,
        model=first_of(given.get("model"), given.get("providedModelName"), given.get("provided_model_name")),
        usage=as_object(usage),
        cost=cost if kind == "model" else None,
        node=as_object(given.get("metadata")).get("langgraph_node"),
        conversation=first_of(given.get("sessionId"), given.get("session_id")),
        call_id=first_of(attributes.get("gen_ai.tool.call.id"), attributes.get("tool_call.id")),
    )


def _scores(scores: list[Any]) -> dict[str, Any]:
    """By their names. A boolean score is 0 or 1."""
    found: dict[str, Any] = {}
    for score in scores:
        if not isinstance(score, dict) or not isinstance(score.get("name"), str):
            continue
        value = first_of(score.get("value"), score.get("stringValue"), score.get("string_value"))
        value = score.get("value") if value is None else value
        is_boolean = first_of(score.get("dataType"), score.get("data_type")) == "BOOLEAN"
        found[score["name"]] = bool(value) if is_boolean and value in (0, 1) else value
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

"""Opik (Comet): a trace with its spans, as `opik export` writes it ({"trace", "spans"}), or traces and spans alone, in
a list, on lines, or under `traces` and `spans`.

A span: {"id", "trace_id", "parent_span_id", "type": "llm" | "tool" | "general" | "guardrail", "name", "input",
"output", "model", "usage", "total_estimated_cost"}. Feedback scores are the outcome's.
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
SIGN = "an object with `trace` and `spans`, or a span with `trace_id` and a `type` such as llm"
_TYPES = ("llm", "tool", "general", "guardrail")
_KNOWN = (
    *(
        "id",
        "trace_id",
        "parent_span_id",
        "name",
        "input",
        "output",
        "model",
        "start_time",
        "end_time",
    ),
    *("usage", "total_estimated_cost", "feedback_scores", "thread_id", "spans", "traces"),
)
_OF_TRACE = (
    "feedback_scores",
    "thread_id",
    "project_id",
    "project_name",
    "span_count",
    "llm_span_count",
    "usage",
)


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    spans = document.get("spans")
    if isinstance(document.get("trace"), dict) and isinstance(spans, list):
        return all(map(_is_span, spans[:3]))
    if isinstance(document.get("traces"), list) and isinstance(spans, list):
        return any(map(_is_trace, document["traces"][:1])) or any(map(_is_span, spans[:1]))
    return _is_span(document) or _is_trace(document)


def read_spans(document: Any) -> Iterator[Span]:
    """Raises InvalidRecord."""
    document = require_object(document)
    if _is_span(document):
        yield _span(document)
        return
    traces = document.get("traces")
    traces = traces if isinstance(traces, list) else [document.get("trace", document)]
    for trace in traces:
        if isinstance(trace, dict):
            yield _trace(trace)
        held = trace.get("spans") if isinstance(trace, dict) and trace is not document else None
        for span in held if isinstance(held, list) else ():
            if isinstance(span, dict):
                yield _span({"trace_id": trace["id"]} | span)
    spans = document.get("spans")
    for span in spans if isinstance(spans, list) else ():
        if isinstance(span, dict):
            yield _span(span)


Gathered = store_gatherer(read_spans)


def _is_span(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") in _TYPES
        and isinstance(value.get("trace_id"), str)
        and "id" in value
        and ("input" in value or "output" in value or "start_time" in value)
    )


def _is_trace(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"id", "start_time", "input", "output"} <= set(value)
        and any(key in value for key in _OF_TRACE)
        and "type" not in value
        and "messages" not in value
    )


def _trace(trace: dict[str, Any]) -> Span:
    if not isinstance(trace.get("id"), str | int):
        raise InvalidRecord("a trace has an id.", pointer="/trace/id")
    scores = trace.get("feedback_scores")
    named = {
        score["name"]: score.get("value")
        for score in (scores if isinstance(scores, list) else ())
        if isinstance(score, dict) and isinstance(score.get("name"), str)
    }
    facts = outcome_facts(named, as_object(trace.get("metadata")))
    facts |= {"agent": trace["name"]} if trace.get("name") else {}
    return observation_span(
        trace,
        trace=trace["id"],
        id=trace["id"],
        parent=None,
        kind="chain",
        given=trace.get("input"),
        gave=trace.get("output"),
        start=trace.get("start_time"),
        end=trace.get("end_time"),
        known=_KNOWN,
        is_error=bool(trace.get("error_info")),
        facts=facts | ({"score_records": scores} if scores else {}),
        name=trace.get("name"),
        conversation=trace.get("thread_id"),
    )


def _span(span: dict[str, Any]) -> Span:
    if not isinstance(span.get("trace_id"), str):
        raise InvalidRecord("a span has a trace_id.", pointer="/spans")
    kind = KINDS.get(str(span.get("type")), "chain")
    metadata = as_object(span.get("metadata"))
    is_call = kind == "model"
    return observation_span(
        span,
        trace=span["trace_id"],
        id=span.get("id"),
        parent=first_of(span.get("parent_span_id"), span["trace_id"]),
        kind=kind,
        given=span.get("input"),
        gave=span.get("output"),
        start=span.get("start_time"),
        end=span.get("end_time"),
        known=_KNOWN,
        is_error=bool(span.get("error_info")),
        name=span.get("name"),
        model=first_of(span.get("model"), metadata.get("model")) if is_call else None,
        usage=as_object(span.get("usage")) if is_call else None,
        cost=span.get("total_estimated_cost") if is_call else None,
    )

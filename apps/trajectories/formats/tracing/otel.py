"""OpenTelemetry spans as OTLP JSON: {"resourceSpans": [...]}, as exporters and collectors write them.

Read are the GenAI conventions of every generation, OpenInference (Phoenix), the Vercel AI SDK, OpenLLMetry (Traceloop),
Pydantic AI and Logfire, MLflow, Langfuse, LangSmith, Google's ADK and Genkit (`genai` has the table). How spans become
trajectories: `span_runs`.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from apps.trajectories.field_coverage import FieldUse, PathPatterns, lost_fields
from apps.trajectories.formats.tracing.otel_spans import (
    Span,
    convention,
    packed,
    read_spans,
    tells,
    unpacked,
)
from apps.trajectories.formats.tracing.span_runs import READ, REPEATED, SpanGatherer, group_by_agent, read

__all__ = [
    "READ",
    "REPEATED",
    "Gathered",
    "Span",
    "convention",
    "group_by_agent",
    "lost_in_spans",
    "nothing_said",
    "packed",
    "read",
    "read_spans",
    "tells",
    "unpacked",
]
SIGN = "an object with `resourceSpans`"
_NOTHING = (
    "no span is a call of a model with what it answered: let your instrumentation record the content of "
    "messages, for many by OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true."
)
_OTLP = PathPatterns(
    f"/{resource}/*/{scope}/*/spans/*/{key}"
    for resource, scope in (("resourceSpans", "scopeSpans"), ("resource_spans", "scope_spans"))
    for key in ("parentSpanId", "parent_span_id", "flags", "status/code")
)


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and ("resourceSpans" in document or "resource_spans" in document)


def lost_in_spans(export: Any, spans: list[Span]) -> list[FieldUse]:
    """The fields of an export that are in none of its spans."""
    return lost_fields(export, spans, _OTLP)


def nothing_said(spans: Iterable[Span]) -> str:
    """Why spans are no trajectory, and by which conventions they were written where these are not read."""
    found = {name for span in spans if (name := convention(span))}
    if not found:
        return _NOTHING
    return (
        f"the spans follow {' and '.join(sorted(found))}, which is not read yet. Send spans of the OpenTelemetry GenAI "
        "conventions, or the messages as JSON (format `openai`)."
    )


Gathered = partial(
    SpanGatherer,
    read_spans=read_spans,
    lost=lost_in_spans,
    refusal=nothing_said,
    pointer="/resourceSpans",
)

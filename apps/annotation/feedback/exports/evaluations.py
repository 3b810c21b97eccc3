"""Judgements as OpenTelemetry events `gen_ai.evaluation.result`, for whoever keeps the traces of the agents.

https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events: name, score and label of an evaluation and its
explanation, parented to what was evaluated: the span of the agent, where the run came as one. What the conventions have
no name for stands under `touchstone.`. Each line is an OTLP/JSON export of log records, as a collector's file and
`/v1/logs` take it.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from apps.accounts.models import Project
from apps.annotation.feedback.exports.lines import said_records
from apps.annotation.feedback.records import Submitted
from apps.annotation.feedback_types import KINDS
from apps.annotation.feedback_types.base import Evaluation
from workers.schema.patterns import TextPattern
from workers.schema.records import KIND_OF, JudgedRecord

EVENT = "gen_ai.evaluation.result"
_TRACE, _SPAN = TextPattern(r"[0-9a-f]{32}"), TextPattern(r"[0-9a-f]{16}")


def export_otel(*, project: Project, filters: dict[str, Any]) -> Iterator[str]:
    """A line a judgement, with an event for each run, or each step, it is about."""
    resource = {"attributes": _attributes({"service.name": "touchstone", "touchstone.project": project.slug})}
    for one, record in said_records(project, filters):
        events = [_event(one, record, each) for each in KINDS[KIND_OF[type(record)]].evaluations(record)]
        if events:
            scope = {"scope": {"name": "touchstone"}, "logRecords": events}
            yield json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}) + "\n"


def _event(one: Submitted, record: JudgedRecord, said: Evaluation) -> dict[str, Any]:
    annotation, run = one.annotation, said.trajectory
    about = {
        "kind": KIND_OF[type(record)],
        "trajectory": run.id,
        "task": run.task.id,
        "annotator": record.annotator,
        "origin": record.origin,
        "campaign": annotation.assignment.item.campaign.name,
        "revision": annotation.revision,
        **said.about,
    }
    told = {
        "gen_ai.evaluation.name": said.name,
        "gen_ai.evaluation.score.value": None if said.value is None else float(said.value),
        "gen_ai.evaluation.score.label": said.label,
        "gen_ai.evaluation.explanation": said.explanation,
        "gen_ai.conversation.id": run.metadata.get("conversation"),
        **{f"touchstone.{name}": value for name, value in about.items()},
    }
    at = str(_nanoseconds(annotation.created_at))
    return {
        "timeUnixNano": at,
        "observedTimeUnixNano": at,
        "eventName": EVENT,
        "attributes": _attributes(told),
    } | _parent(run.metadata)


def _parent(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The span of the agent, of runs that came as OpenTelemetry traces."""
    trace, span = str(metadata.get("trace")), str(metadata.get("span"))
    if not _TRACE.fullmatch(trace):
        return {}
    return {"traceId": trace} | ({"spanId": span} if _SPAN.fullmatch(span) else {})


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp()) * 10**9 + at.microsecond * 1000


def _attributes(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in given.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}

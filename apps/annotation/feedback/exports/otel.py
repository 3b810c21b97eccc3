"""Annotations as OpenTelemetry events `gen_ai.evaluation.result`, next to the traces of the agents.

https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events: name, score and label of an evaluation and its
explanation, parented to what was evaluated: the span of the agent, where the run came as one. What the conventions have
no name for stands under `touchstone.`, the whole record as `touchstone.record`. Each line is an OTLP/JSON export of log
records, as a collector's file and `/v1/logs` take it.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from apps.accounts.models import Project
from apps.annotation.feedback.exports.jsonl_csv import iter_exported_records, provenance
from apps.annotation.feedback.frozen_records import record_text
from apps.annotation.feedback.records import AnnotationRecords
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.feedback_types.base import TrajectoryEvaluation
from workers.schema.patterns import TextPattern
from workers.schema.records import KIND_OF, JudgedRecord

EVENT = "gen_ai.evaluation.result"
_TRACE, _SPAN = TextPattern(r"[0-9a-f]{32}"), TextPattern(r"[0-9a-f]{16}")


def export_otel(*, project: Project, filters: dict[str, Any]) -> Iterator[str]:
    """One line per record, with an event for each trajectory or step it is about."""
    resource = {"attributes": _attributes({"service.name": "touchstone", "touchstone.project": project.slug})}
    for stored, record in iter_exported_records(project, filters):
        text = _record_text(stored, record)
        events = [
            _event(stored, record, evaluation, text)
            for evaluation in FEEDBACK_TYPES[KIND_OF[type(record)]].evaluations(record)
        ]
        if events:
            scope = {"scope": {"name": "touchstone"}, "logRecords": events}
            yield json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}) + "\n"


def _record_text(stored: AnnotationRecords, record: JudgedRecord) -> str:
    """The whole record, by which `import_feedback` reads it again."""
    made = provenance(stored.annotation)
    campaign = stored.annotation.assignment.item.campaign.name
    return json.dumps(
        json.loads(record_text(record)) | {"campaign": campaign, "made": made}, ensure_ascii=False
    )


def _event(
    stored: AnnotationRecords, record: JudgedRecord, evaluation: TrajectoryEvaluation, text: str
) -> dict[str, Any]:
    annotation, run = stored.annotation, evaluation.trajectory
    about = {
        "kind": KIND_OF[type(record)],
        "trajectory": run.id,
        "task": run.task.id,
        "annotator": record.annotator,
        "origin": record.origin,
        "campaign": annotation.assignment.item.campaign.name,
        "revision": annotation.revision,
        **evaluation.about,
        "record": text,
    }
    attributes = {
        "gen_ai.evaluation.name": evaluation.name,
        "gen_ai.evaluation.score.value": None if evaluation.value is None else float(evaluation.value),
        "gen_ai.evaluation.score.label": evaluation.label,
        "gen_ai.evaluation.explanation": evaluation.explanation,
        "gen_ai.conversation.id": run.metadata.get("conversation"),
        **{f"touchstone.{name}": value for name, value in about.items()},
    }
    at = str(_nanoseconds(annotation.created_at))
    return {
        "timeUnixNano": at,
        "observedTimeUnixNano": at,
        "eventName": EVENT,
        "attributes": _attributes(attributes),
    } | _parent(run.metadata)


def _parent(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The span of the agent, for trajectories imported as OpenTelemetry traces."""
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

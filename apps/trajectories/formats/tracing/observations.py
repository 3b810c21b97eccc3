"""The records of stores of traces, each with what it is, what went in and what came out, as spans."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any

from apps.trajectories.field_coverage import FieldUse, PathPatterns, lost_fields
from apps.trajectories.formats.stated import SUCCESS_KEYS, TASK_KEYS
from apps.trajectories.formats.tracing.call_content import decoded
from apps.trajectories.formats.tracing.observation_content import FIELD
from apps.trajectories.formats.tracing.otel_spans import Span, nanoseconds
from apps.trajectories.formats.tracing.span_content import SpanKind
from apps.trajectories.formats.tracing.span_runs import READ as READ_OF_SPANS
from apps.trajectories.formats.tracing.span_runs import SpanGatherer

# What is made of `times` and of the record's own type, which are kept as they are.
READ = (*READ_OF_SPANS, "/spans/*/start", "/spans/*/end", "/spans/*/attributes/observation/kind")
_NOTHING = (
    "no record is a call of a model, or a run with what went in and what came out. Export the traces with their "
    "observations, spans or runs, and with their input and output."
)
_TASKS = (*TASK_KEYS, "reference_example_id", "dataset_item_id", "datasetItemId", "example_id")


def observation_span(
    record: dict[str, Any],
    *,
    trace: Any,
    id: Any,
    parent: Any,
    kind: SpanKind,
    given: Any,
    gave: Any,
    start: Any = None,
    end: Any = None,
    known: Iterable[str] = (),
    is_error: bool = False,
    facts: dict[str, Any] | None = None,
    **about: Any,
) -> Span:
    """A record as a span. about: name, model, usage, cost, call_id, conversation, node, of which any may be missing.
    known: its keys that are given by these. facts: what is known of the run, such as an outcome."""
    known = set(known)
    rest = {
        key: value for key, value in record.items() if key not in known and value not in (None, "", [], {})
    }
    fields = {"kind": kind, "input": given, "output": gave} | about
    return {
        "trace": str(trace),
        "id": str(id),
        "parent": "" if parent is None else str(parent),
        "is_root": not parent,
        "name": str(about.get("name") or ""),
        "start": _time(start),
        "end": _time(end),
        "times": [start, end] if start is not None else [],
        "scope": None,
        "status": "error" if is_error else "",
        "resource": {},
        "attributes": {FIELD: {key: value for key, value in fields.items() if value not in (None, "", {})}},
        "events": [],
        "rest": rest,
        "facts": facts or {},
    }


def store_gatherer(
    read_spans: Callable[[Any], Iterable[Span]],
    *,
    read: Iterable[str] = (),
    once: Callable[[Any], Any] = lambda document: document,
    refusal: str = _NOTHING,
) -> Any:
    """What a store's format has as `Gathered`. read: patterns of fields that are in its spans in another form.
    once: a document without what it repeats of itself. refusal: what is wrong where no span is a run."""
    patterns = PathPatterns(read)

    def lost(document: Any, spans: list[Span]) -> list[FieldUse]:
        return lost_fields(once(document), spans, patterns)

    return partial(SpanGatherer, read_spans=read_spans, lost=lost, refusal=lambda spans: refusal)


def outcome_facts(scores: dict[str, Any], *holders: Any) -> dict[str, Any]:
    """Outcome and task of a run. scores: by name, which never are part of what was said. holders: metadata."""
    facts: dict[str, Any] = {"scores": scores} if scores else {}
    success = next((scores[key] for key in SUCCESS_KEYS if isinstance(scores.get(key), bool)), None)
    reward = scores.get("reward")
    if success is not None:
        facts["success"] = success
    if isinstance(reward, int | float) and not isinstance(reward, bool):
        facts["reward"] = reward
    task = next(
        (
            str(holder[key])
            for holder in holders
            if isinstance(holder, dict)
            for key in _TASKS
            if isinstance(holder.get(key), str | int)
            and not isinstance(holder[key], bool)
            and holder[key] != ""
        ),
        "",
    )
    return facts | ({"task": task} if task else {})


def as_object(value: Any) -> dict[str, Any]:
    """An object, or JSON of one; else nothing."""
    found = decoded(value)
    return found if isinstance(found, dict) else {}


def first_of(*values: Any) -> Any:
    return next((value for value in values if value not in (None, "", [], {})), None)


def _time(value: Any) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and 10**11 <= value < 10**14:
        return int(value * 10**6)  # milliseconds
    if isinstance(value, str) and " " in value:
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return 0
    return nanoseconds(value or 0)

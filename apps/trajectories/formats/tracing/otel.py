"""OpenTelemetry GenAI spans as OTLP JSON: {"resourceSpans": [...]}: a trajectory for each agent of each trace.

An agent is an `invoke_agent` span with what lies under it, down to the next one; what lies under none is the trace's
own. Of its calls of a model, in the order they began, each brings what it was asked that had not been said before, and
what it answered. Results of tools that no later call was told come from their `execute_tool` spans. A sub-agent's
trajectory names its parent. Spans of one trace may stand in several documents, as exporters write them.
"""

from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Any

from msgspec.structs import replace

from apps.trajectories.field_coverage import FieldUse, PathPatterns, lost_fields
from apps.trajectories.formats.record import Record, encoded, too_large
from apps.trajectories.formats.stated import call_metrics, run_facts
from apps.trajectories.formats.tracing import otel_messages
from apps.trajectories.formats.tracing.otel_conversation import conversation
from apps.trajectories.formats.tracing.otel_spans import Span, convention, packed, read_spans, tells, unpacked
from workers.errors import InvalidRecord
from workers.schema import Step, Task, Trajectory, clean, from_messages
from workers.schema.decode import require_list, require_object
from workers.schema.messages import build_trajectory

__all__ = [
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
READ = ("/about", "/agent", "/parent", "/spans/*/is_root")
REPEATED = ("/spans",)  # each call repeats the messages before it
_OTLP = PathPatterns(
    f"/{resource}/*/{scope}/*/spans/*/{key}"
    for resource, scope in (("resourceSpans", "scopeSpans"), ("resource_spans", "scope_spans"))
    for key in ("parentSpanId", "parent_span_id", "flags", "status/code")
)
_NO_CALL = "the span is part of no agent's run with a call of a model whose answer was recorded"
_IN_MEMORY = 64 * 2**20


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and ("resourceSpans" in document or "resource_spans" in document)


class Gathered:
    """The spans of many documents until there are no more, then a record for each run. limit: bytes of a trace."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 closed by __del__
        self._first: int | None = None
        self._traces: dict[str, list[tuple[int, int]]] = {}  # where its spans lie
        self._lines: dict[str, int] = {}
        self._lost: list[FieldUse] = []

    def add(self, record: Record) -> None:
        """Raises InvalidRecord."""
        self._first = record.line if self._first is None else self._first
        spans = list(read_spans(record.document))
        self._lost += lost_in_spans(record.document, spans)
        for span in spans:
            raw = packed(span)
            self._lines.setdefault(span["trace"], record.line)
            self._traces.setdefault(span["trace"], []).append((self._file.tell(), len(raw)))
            self._file.write(raw)

    def records(self) -> Iterator[Record]:
        has_messages = False
        others: dict[str, Span] = {}
        for use in self._lost:
            yield Record(self._first or 1, pointer=use.path, skipped=use.reason)
        for trace, places in self._traces.items():
            line = self._lines[trace]
            if sum(length for _, length in places) > self._limit:
                yield Record(line, error=too_large(self._limit))
                continue
            spans = [self._span(*place) for place in places]
            outside = {span["id"]: span for span in spans}
            for run in group_by_agent(spans):
                has_messages = True
                for span in run["spans"]:
                    outside.pop(span["id"], None)
                raw = encoded(run)
                yield (
                    Record(line, raw, run)
                    if len(raw) <= self._limit
                    else Record(line, error=too_large(self._limit))
                )
            for span in outside.values():
                if name := convention(span):
                    others.setdefault(name, span)
                reason = f"written by the convention of {name}, which is not read yet" if name else _NO_CALL
                yield Record(line, pointer=f"/spans/{span['name']}", skipped=reason)
        if self._first is not None and not has_messages:
            message = nothing_said(others.values())
            yield Record(self._first, error=InvalidRecord(message, pointer="/resourceSpans"))

    def __del__(self) -> None:
        self._file.close()

    def _span(self, offset: int, length: int) -> Span:
        self._file.seek(offset)
        return unpacked(self._file.read(length))


def lost_in_spans(export: Any, spans: list[Span]) -> list[FieldUse]:
    """The fields of an export that are in none of its spans."""
    return lost_fields(export, spans, _OTLP)


def nothing_said(spans: Iterable[Span]) -> str:
    """Why spans are no trajectory: by which convention they were written, where it is not that of GenAI."""
    found = {name for span in spans if (name := convention(span))}
    if not found:
        return _NOTHING
    return (
        f"the spans follow {' and '.join(sorted(found))}, which is not read yet. Send spans of the OpenTelemetry GenAI "
        "conventions, or the messages as JSON (format `openai`)."
    )


def group_by_agent(spans: Iterable[Span]) -> Iterator[dict[str, Any]]:
    """What `read` reads of each agent of a trace: {"trace", "agent": id of its span or "", "parent", "about", "spans"}.

    A span that came twice counts once, as it came last. None where no span is a call of a model that was recorded.
    """
    known = {span["id"]: span for span in spans}
    by_agent: dict[str, list[Span]] = {}
    for span in sorted(known.values(), key=lambda item: item["start"]):
        by_agent.setdefault(_find_agent_span(span, known), []).append(span)
    for agent, own in by_agent.items():
        if not any(otel_messages.output_messages(span) for span in own):
            continue
        above = known.get(known[agent]["parent"]) if agent else None
        yield {
            "trace": own[0]["trace"],
            "agent": agent,
            "parent": _find_agent_span(above, known) if above else "",
            "about": known[agent]["attributes"] if agent else {},
            "spans": own,
        }


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    spans: list[Span] = require_list(document.get("spans"), pointer="/spans")
    about: dict[str, Any] = document.get("about") or {}
    messages, spans_by_message, copies = conversation(spans)
    model = next((name for span in spans if (name := span["attributes"].get("gen_ai.request.model"))), "")
    conversation_id = next(
        (name for span in spans if (name := span["attributes"].get("gen_ai.conversation.id"))), None
    )
    metadata = {
        "trace": document["trace"],
        "span": document["agent"],
        "resource": spans[0]["resource"],
        **run_facts(_usage(spans, copies), {"seconds": _seconds(spans)}, model=model),
        "errors": [span["name"] for span in spans if span["status"] == "error"],
    }
    if document.get("parent"):
        metadata["parent"] = f"{document['trace']}/{document['parent']}"
    if conversation_id is not None:
        metadata["conversation"] = conversation_id
    if copies:
        metadata["copies"] = [
            {key: span.get(key) for key in ("id", "name", "start", "end")} for span in copies
        ]
    name = about.get("gen_ai.agent.name") or spans[0]["resource"].get("service.name") or model
    return build_trajectory(
        tuple(_with_span(step, spans_by_message) for step in from_messages(messages, pointer="/spans")),
        Task(id=""),
        pointer="/spans",
        id=f"{document['trace']}/{document['agent']}".rstrip("/"),
        agent=str(name),
        agent_version=str(about.get("gen_ai.agent.version") or ""),
        metadata={key: value for key, value in metadata.items() if value},
    )


def _find_agent_span(span: Span, known: dict[str, Span]) -> str:
    """The id of the span of the agent that a span is part of; its own where it is an agent's; empty for none."""
    seen = set()
    while span["id"] not in seen:
        seen.add(span["id"])
        if span["attributes"].get("gen_ai.operation.name") == "invoke_agent":
            return str(span["id"])
        if (above := known.get(span["parent"])) is None:
            return ""
        span = above
    return ""  # spans that are each other's parents


def _with_span(step: Step, spans: dict[int, Span]) -> Step:
    """The step of an answer, with the tokens and seconds of its call, and which call it was."""
    span = spans.get(step.extra["source_index"])
    if span is None or step.source != "agent":
        return step
    given = span["attributes"]
    usage = {
        name.rpartition(".")[2]: value for name, value in given.items() if name.startswith("gen_ai.usage.")
    }
    seconds = (span["end"] - span["start"]) / 1e9 if span.get("end", 0) > span["start"] else None
    about = {key: span[key] for key in ("id", "name", "start", "end") if span.get(key)}
    return replace(step, metrics=call_metrics(usage, seconds), extra=step.extra | {"span": about})


def _seconds(spans: list[Span]) -> float | None:
    """From the first start to the last end."""
    ends = [span["end"] for span in spans if span.get("end")]
    starts = [span["start"] for span in spans if span["start"]]
    return (max(ends) - min(starts)) / 1e9 if ends and starts and max(ends) > min(starts) else None


def _usage(spans: list[Span], copies: list[Span]) -> dict[str, int]:
    """Tokens of all calls together, each counted once."""
    found: dict[str, int] = {}
    left_out = {span["id"] for span in copies}
    for span in spans:
        if span["id"] in left_out:
            continue
        for kind in ("input_tokens", "output_tokens"):
            value = span["attributes"].get(f"gen_ai.usage.{kind}")
            if isinstance(value, int):
                found[kind] = found.get(kind, 0) + value
    return found

"""Trajectories of spans, however these were written: one for each agent of each trace.

An agent is its span with what lies under it, down to the next one; what lies under none is the trace's own. Of its
calls of a model, in the order they began, each brings what it was asked that had not been said before, and what it
answered. Results of tools that no later call was told come from the spans of tools. A sub-agent's trajectory names its
parent. Agents of one name whose conversation goes on are one, as are the nodes of a graph; and an agent that called no
model itself, but ran one that did, is that one. Spans of one trace may stand in several documents.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from apps.trajectories.field_coverage import FieldUse
from apps.trajectories.formats.record import Record, encoded, too_large
from apps.trajectories.formats.spool import START, ChainedSpool
from apps.trajectories.formats.stated import call_metrics, run_facts
from apps.trajectories.formats.tracing.agent_lightning import final_reward
from apps.trajectories.formats.tracing.agent_runs import AgentRuns, start_of
from apps.trajectories.formats.tracing.genai import span_content
from apps.trajectories.formats.tracing.otel_conversation import conversation, whole_run
from apps.trajectories.formats.tracing.otel_spans import Span, convention, packed, unpacked
from apps.trajectories.formats.tracing.span_content import SpanContent
from workers.errors import InvalidRecord
from workers.schema import Step, Task, Trajectory, clean, from_messages
from workers.schema.decode import require_list, require_object
from workers.schema.messages import build_trajectory

READ = ("/agent", "/parent", "/spans/*/is_root")
REPEATED = ("/spans",)  # each call repeats the messages before it
NO_CALL = "the span is part of no agent's run with a call of a model whose answer was recorded"
_IN_MEMORY = 64 * 2**20
_MOST_LOST = 1000  # paths that are counted separately
_FURTHER_LOST = f"fields that are in no span: only {_MOST_LOST} paths are listed"


class SpanGatherer:
    """The spans of many documents until there are no more, then a record for each run.

    limit: bytes of a trace. read_spans: of a document. lost: its fields that are in none of its spans. refusal: why
    spans are no run, with the pointer of the error.
    """

    def __init__(
        self,
        limit: int,
        *,
        read_spans: Callable[[Any], Iterable[Span]],
        lost: Callable[[Any, list[Span]], list[FieldUse]],
        refusal: Callable[[Iterable[Span]], str],
        pointer: str = "",
    ) -> None:
        self._limit, self._read_spans, self._lost_of = limit, read_spans, lost
        self._refusal, self._pointer = refusal, pointer
        self._spool = ChainedSpool(_IN_MEMORY)
        self._first: int | None = None
        self._traces: dict[str, tuple[int, int, int]] = {}  # line, bytes, where its spans end
        self._lost: Counter[tuple[str, str]] = Counter()  # by path and reason
        self._errors: list[Record] = []

    def add(self, record: Record) -> None:
        """Raises InvalidRecord."""
        if record.error is not None:
            self._errors.append(record)
            return
        self._first = record.line if self._first is None else self._first
        spans = list(self._read_spans(record.document))
        self._count_lost(self._lost_of(record.document, spans))
        for span in spans:
            raw = packed(span)
            line, size, end = self._traces.get(span["trace"], (record.line, 0, START))
            self._traces[span["trace"]] = line, size + len(raw), self._spool.add(end, raw)

    def ready(self, source: str) -> Iterator[Record]:
        return iter(())  # spans of a trace may come at any time

    def records(self) -> Iterator[Record]:
        yield from self._errors
        for (path, reason), count in self._lost.items():
            for _ in range(count):
                yield Record(self._first or 1, pointer=path, skipped=reason)
        has_messages = False
        others: dict[str, Span] = {}
        for line, size, end in self._traces.values():
            if size > self._limit:
                yield Record(line, error=too_large(self._limit))
                continue
            spans = [unpacked(raw) for raw, _ in self._spool.entries(end)]
            outside = {span["id"]: span for span in spans}
            try:
                runs = list(group_by_agent(spans))
            except InvalidRecord as error:
                has_messages = True
                yield Record(line, error=error)
                continue
            for run in runs:
                has_messages = True
                for span in run["spans"]:
                    outside.pop(span["id"], None)
                yield _record(line, run, self._limit)
            for span in outside.values():
                if name := convention(span):
                    others.setdefault(name, span)
                reason = f"written by the convention of {name}, which is not read yet" if name else NO_CALL
                yield Record(line, pointer=f"/spans/{span['name']}", skipped=reason)
        if self._first is not None and not has_messages:
            message = self._refusal(others.values())
            yield Record(self._first, error=InvalidRecord(message, pointer=self._pointer))

    def _count_lost(self, uses: Iterable[FieldUse]) -> None:
        for use in uses:
            key = (use.path, use.reason)
            if key not in self._lost and len(self._lost) >= _MOST_LOST:
                key = ("", _FURTHER_LOST)
            self._lost[key] += 1


def _record(line: int, run: dict[str, Any], limit: int) -> Record:
    raw = encoded(run)
    return Record(line, raw, run) if len(raw) <= limit else Record(line, error=too_large(limit))


def group_by_agent(spans: Iterable[Span]) -> Iterator[dict[str, Any]]:
    """What `read` reads of each agent of a trace: {"trace", "agent": id of its span or "", "parent", "spans"}, and as
    "about" the trace's own record where it is not among them.

    A span that came twice counts once, as it came last. None where no span says what an agent answered.
    """
    known = {span["id"]: span for span in spans}
    contents = {name: span_content(span) for name, span in known.items()}
    agents = AgentRuns(known, contents)
    found = agents.with_calls()
    if not found:
        run = whole_run(list(known.values()), contents)
        if run is not None:
            yield _run(agents.find(run), sorted(known.values(), key=start_of), "", [])
        return
    facts = [span for span in known.values() if span.get("facts") or span.get("final")]
    for agent in found:
        own = sorted(agents.spans[agent], key=start_of)
        above = agents.above(agent)
        while above and above not in found:
            above = agents.above(above)
        names = {span["id"] for span in own}
        yield _run(agent, own, above or "", [span for span in facts if span["id"] not in names])


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    spans: list[Span] = require_list(document.get("spans"), pointer="/spans")
    contents = {span["id"]: span_content(span) for span in spans}
    messages, spans_by_message, copies = conversation(spans, contents)
    about = document.get("about")
    facts = _facts([*(about if isinstance(about, list) else ()), *spans])
    if document.get("parent"):
        facts |= {"success": None, "reward": None}  # what is known of a trace is known of its first agent
    agent = contents.get(document["agent"]) or SpanContent()
    names = [contents[span["id"]] for span in spans]
    model = next((each.model for each in names if each.kind == "model" and each.model), "")
    model = model or next((each.model for each in names if each.model), "")
    metadata = {
        "trace": document["trace"],
        "span": document["agent"],
        "resource": spans[0]["resource"],
        **run_facts(_usage(spans, contents, copies), {"seconds": _seconds(spans)}, model=model),
        "errors": [span["name"] for span in spans if span["status"] == "error"],
        "conversation": next((each.conversation for each in names if each.conversation), ""),
        "parent": f"{document['trace']}/{document['parent']}" if document.get("parent") else "",
        "copies": [{key: span.get(key) for key in ("id", "name", "start", "end")} for span in copies],
    } | {key: value for key, value in facts.items() if key not in ("task", "success", "reward", "agent")}
    name = (
        agent.agent
        or (not document["agent"] and facts.get("agent"))
        or next((each.agent for each in names if each.agent), "")
        or spans[0]["resource"].get("service.name")
        or model
        or spans[0]["name"]
    )
    nodes = {contents[span["id"]].node for span in spans_by_message.values()}
    steps = from_messages(messages, pointer="/spans")
    return build_trajectory(
        tuple(_with_span(step, spans_by_message, contents, has_speakers=len(nodes) > 1) for step in steps),
        Task(id=str(facts.get("task") or "")),
        pointer="/spans",
        id=f"{document['trace']}/{document['agent']}".rstrip("/"),
        agent=str(name),
        agent_version=agent.version,
        success=facts.get("success"),
        reward=facts.get("reward"),
        metadata={key: value for key, value in metadata.items() if value or value is False},
    )


def _run(agent: str, spans: list[Span], parent: str, about: list[Span]) -> dict[str, Any]:
    run = {"trace": spans[0]["trace"], "agent": agent, "parent": parent, "spans": spans}
    return run | ({"about": about} if about else {})


def _facts(spans: list[Span]) -> dict[str, Any]:
    """What is known of the run besides what was said, such as an outcome: the outermost record that says it."""
    found: dict[str, Any] = {}
    for span in spans:
        facts = span.get("facts")
        for key, value in facts.items() if isinstance(facts, dict) else ():
            found.setdefault(key, value)
    return found | final_reward(spans)


def _with_span(
    step: Step, spans: dict[int, Span], contents: dict[str, SpanContent], *, has_speakers: bool
) -> Step:
    """The step of an answer, with the tokens and seconds of its call, and which call it was."""
    span = spans.get(step.extra["source_index"])
    if span is None or step.source != "agent":
        return step
    given = contents[span["id"]]
    seconds = (span["end"] - span["start"]) / 1e9 if span.get("end", 0) > span["start"] else None
    usage = given.usage | ({} if given.cost is None else {"cost": given.cost})
    about = {key: span[key] for key in ("id", "name", "start", "end") if span.get(key)}
    return replace(
        step,
        metrics=call_metrics(usage, seconds),
        extra=step.extra | {"span": about},
        speaker=step.speaker or (given.node or None if has_speakers else None),
    )


def _seconds(spans: list[Span]) -> float | None:
    """From the first start to the last end."""
    ends = [span["end"] for span in spans if span.get("end")]
    starts = [span["start"] for span in spans if span["start"]]
    return (max(ends) - min(starts)) / 1e9 if ends and starts and max(ends) > min(starts) else None


def _usage(spans: list[Span], contents: dict[str, SpanContent], copies: list[Span]) -> dict[str, Any]:
    """Tokens and costs of all calls together, each counted once; without calls, those that an agent states."""
    left_out = {span["id"] for span in copies}
    calls = [contents[span["id"]] for span in spans if span["id"] not in left_out]
    calls = [each for each in calls if each.kind == "model"] or calls[:1]
    found: dict[str, Any] = {}
    for call in calls:
        for kind, value in (call.usage | {"cost": call.cost}).items():
            if kind in ("input_tokens", "output_tokens", "cost") and isinstance(value, int | float):
                found[kind] = found.get(kind, 0) + value
    return found

"""What is said of a file that no format reads: one sentence a file, what it seems to be, and what would be read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rapidfuzz import fuzz, process

from apps.trajectories.formats.record import NotJson, Record
from apps.trajectories.formats.suggested_mapping import suggested_option
from workers.errors import InvalidRecord
from workers.schema.decode import json_type_name

_MOST_WAITING, _MOST_BYTES = 1000, 16 * 2**20
_KEYS_SHOWN, _LONGEST_KEY, _MOST_KEYS = 8, 40, 200
_ALIKE = 85  # of 100: how alike two keys have to be
_DOCS = "docs/formats.md lists every format that is read"


@dataclass(slots=True)
class UnknownFile:
    """The records of a file before the first one that a format recognises; of too many, only how many there were."""

    waiting: list[Record] = field(default_factory=list)
    count: int = 0
    size: int = 0

    def add(self, record: Record) -> None:
        self.count += 1
        self.size += len(record.raw)
        if (len(self.waiting) < _MOST_WAITING and self.size <= _MOST_BYTES) or not self.waiting:
            self.waiting.append(record)

    def taken(self) -> Iterator[Record]:
        """The records, which wait no longer; those beyond the limits as errors."""
        waiting, beyond = self.waiting, self.count - len(self.waiting)
        self.waiting, self.count, self.size = [], 0, 0
        yield from waiting
        if beyond:
            what = f"{beyond:,} records before this one are of no known format, and were not kept in memory."
            yield Record(waiting[-1].line, error=InvalidRecord(f"{what} Put them behind the others."))

    def error(self) -> Record | None:
        """What is wrong, where no record was recognised; None where there was none."""
        if not self.waiting:
            return None
        first = self.waiting[0]
        message = unrecognised([record.document for record in self.waiting], self.count)
        return Record(first.line, first.raw, pointer=first.pointer, error=InvalidRecord(message))


_NAMED_LINES = 3  # lines that are no JSON of which each is named
_BEGINNING = 60  # characters of a text that are shown


@dataclass(slots=True)
class TextLines:
    """The lines of a file that are no JSON, until a record is recognised: of a file of text one sentence is said."""

    waiting: list[Record] = field(default_factory=list)
    count: int = 0
    is_over: bool = False

    def holds(self, record: Record) -> bool:
        """Whether a record waits."""
        if self.is_over or not isinstance(record.error, NotJson):
            return False
        self.count += 1
        if len(self.waiting) < _NAMED_LINES or not self.waiting:
            self.waiting.append(record)
        return True

    def taken(self) -> Iterator[Record]:
        """What is said of them, where a record is recognised, or the file ends."""
        waiting, count = self.waiting, self.count
        self.waiting, self.count = [], 0
        if count <= _NAMED_LINES:
            yield from waiting
            return
        first = waiting[0]
        text = first.raw.decode("utf-8-sig", "replace").strip()[:_BEGINNING]
        what = f"{count:,} lines, the first of them {text!r}, are no JSON."
        yield Record(first.line, first.raw, source=first.source, error=NotJson(f"{what} {_TEXT} {_DOCS}."))


_TEXT = (
    "Text is read where its lines name a person and an agent who speak (`User: ...` and `Assistant: ...`), or have "
    "`Thought:`, `Action:` and `Observation:`."
)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A shape that people most often mean. keys: those that it has. example: the shortest document that is read."""

    name: str
    keys: tuple[str, ...]
    example: str


_SHAPES = (
    _Shape(
        "chat messages",
        ("messages", "id", "role", "content", "tool_calls", "tools", "model"),
        '{"task": "refund", "messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}',
    ),
    _Shape(
        "a prompt and its response",
        ("prompt", "response", "completion", "question", "answer", "instruction", "output"),
        '{"prompt": "...", "response": "...", "reward": 1.0}',
    ),
    _Shape(
        "a comparison of two answers",
        ("prompt", "chosen", "rejected", "winner", "preference"),
        '{"prompt": "...", "chosen": "...", "rejected": "..."}',
    ),
    _Shape(
        "spans of OpenTelemetry",
        ("resourceSpans", "spans", "traceId", "trace_id", "spanId", "span_id", "attributes"),
        '{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "...", "name": "chat", "attributes": []}]}]}]}',
    ),
    _Shape(
        "a trajectory in ATIF",
        ("schema_version", "session_id", "agent", "steps", "trajectory_id"),
        '{"schema_version": "ATIF-v1.7", "session_id": "...", "agent": {"name": "..."}, "steps": []}',
    ),
)
# Files that are often given by mistake, by keys that all of them have: what they are, and what to do.
_NO_RUNS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset(("nbformat", "cells")), "a Jupyter notebook, which holds no run of an agent"),
    (frozenset(("openapi", "paths")), "the description of an API, which holds no run of an agent"),
    (frozenset(("log",)), "a HAR log of HTTP requests; send the bodies of the calls of the model"),
    (
        frozenset(("annotations", "images", "categories")),
        "annotations of pictures, which hold no run of an agent",
    ),
    (
        frozenset(("architectures", "model_type")),
        "the configuration of a model, which holds no run of an agent",
    ),
    (
        frozenset(("results", "versions", "config")),
        "the scores of an evaluation; send its log of samples instead",
    ),
    (
        frozenset(("score_binarized", "task_id")),
        "METR's table of runs, which holds scores only; send the transcripts of the runs",
    ),
    (
        frozenset(("instance_id", "model_patch")),
        "predictions for SWE-bench, which hold patches only; send the trajectories of the runs",
    ),
    (
        frozenset(("n_resolved", "n_unresolved", "results")),
        "results of Terminal-Bench, which hold scores only; send the trajectories of the agents (ATIF)",
    ),
    (
        frozenset(("trial_name", "verifier_result")),
        "the result of a trial of Harbor, which holds scores only; send the trajectory.json of its agent (ATIF)",
    ),
    (
        frozenset(("version", "width", "height", "timestamp")),
        "a recording of a terminal by asciinema, which holds no calls; send the trajectory of the agent",
    ),
    (frozenset(("question_id", "category", "turns")), "questions of MT-Bench; send the answers of a model"),
    (
        frozenset(("name", "memory", "is_success")),
        "results of trials of Reflexion, which hold reflections only; send the logs of the trials",
    ),
    (
        frozenset(("func_name", "arguments", "call_ok")),
        "calls of AutoCodeRover without what they gave back; send its conversations (conversation_round_*.json)",
    ),
    (
        frozenset(("chosen_instruction", "rejected_instruction")),
        "prompts of a judge (Prometheus) without what it answered; send the answers that are judged",
    ),
    (
        frozenset(("gpt4_score", "gpt4_feedback", "instruction")),
        "prompts and scores of a judge (Prometheus); send the answers that are judged",
    ),
    (frozenset(("scores", "run_id")), "scores of a run without what the agent did; send its trajectory"),
)


def unrecognised(documents: list[Any], count: int) -> str:
    """One sentence for each thing to say of the records of a file. count: of all of them."""
    first = documents[0]
    records = (
        "The record is" if count == 1 else f"None of {count:,} records is in a known format: the first is"
    )
    said = [f"{records} {_described(first)}{', in no known format' if count == 1 else ''}."]
    keys = frozenset(first) if isinstance(first, dict) else frozenset[str]()
    if (
        known := next(
            (what for wanted, what in _NO_RUNS if wanted <= keys and (len(wanted) > 1 or wanted == keys)),
            None,
        )
    ) is not None:
        said.append(f"It seems to be {known}.")
    elif option := suggested_option(documents):
        said.append(f"If these are runs of an agent, this reads them: {option}.")
    else:
        nearest, common = _nearest(keys)
        why = f" (it has {', '.join(map(repr, common))})" if common else ""
        said.append(f"Nearest is {nearest.name}{why}, such as {nearest.example}.")
    said.append(f"{_DOCS}.")
    return " ".join(said)


def _described(document: Any) -> str:
    if isinstance(document, dict):
        keys = [repr(str(key)[:_LONGEST_KEY]) for key in document]
        shown = ", ".join(keys[:_KEYS_SHOWN]) + (", ..." if len(keys) > _KEYS_SHOWN else "")
        return f"an object with the keys {shown}" if keys else "an empty object"
    if isinstance(document, list) and document:
        return f"an array whose first element is {_described(document[0])}"
    return json_type_name(document)


def _nearest(keys: frozenset[str]) -> tuple[_Shape, list[str]]:
    """The shape with most keys alike, and these keys of the document."""

    def alike(shape: _Shape) -> list[str]:
        return [
            key
            for key in looked_at
            if process.extractOne(key, shape.keys, scorer=fuzz.ratio, score_cutoff=_ALIKE)
        ]

    looked_at = sorted(key for key in keys if len(key) <= _LONGEST_KEY)[:_MOST_KEYS]
    found = max(_SHAPES, key=lambda shape: len(alike(shape)))
    return found, alike(found)

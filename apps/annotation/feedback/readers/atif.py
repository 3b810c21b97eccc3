"""`atif`: what `export_feedback --format atif` writes: documents with records in `extra.feedback`.

Documents of one task follow each other; a record names the others by their session_id.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, Incoming, StoredTrajectory, UnreadField
from apps.annotation.feedback.readers import record_formats
from apps.annotation.feedback.readers.json_lines import read_json_documents
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.trajectories.attachments import detach_attachments
from apps.trajectories.field_coverage import PathPatterns, field_uses
from apps.trajectories.formats import atif
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean, from_atif
from workers.schema.decode import require_list, require_object
from workers.schema.storage import to_builtins

_PATTERNS = PathPatterns([*atif.READ, "/extra/feedback"])
_Line = tuple[int, dict[str, Any], str]  # number, record, pointer


@dataclass
class _Documents:
    """The documents of one task so far, by session_id, and their records."""

    task: str | None = None
    trajectories: dict[str, Trajectory] = field(default_factory=dict)
    records: list[_Line] = field(default_factory=list)
    repeated: dict[str, _Line] = field(
        default_factory=dict
    )  # in the documents of its other trajectories, by content

    def add(self, line: _Line) -> None:
        _, record, _ = line
        if record.get("this", 0) in (0, "a"):  # a record is in the document of each of its trajectories
            self.records.append(line)
        else:
            self.repeated.setdefault(_content(record), line)

    def lines(self) -> Iterator[_Line]:
        """Each record once, by the document of its first trajectory, or where that is missing by another one."""
        yield from self.records
        known = {_content(record) for _, record, _ in self.records}
        yield from (line for content, line in self.repeated.items() if content not in known)


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    documents = _Documents()
    for number, document in read_json_documents(stream):
        if isinstance(document, InvalidRecord):
            yield number, document
            continue
        try:
            session, trajectory, feedback = _parse(document)
        except InvalidRecord as error:
            yield number, error
            continue
        if trajectory.task.id != documents.task:
            yield from _records(documents)
            documents = _Documents(trajectory.task.id)
        documents.trajectories[session] = trajectory
        for place, record in enumerate(feedback):
            documents.add((number, record, f"/extra/feedback/{place}"))
        for use in field_uses(document, trajectory, _PATTERNS):
            if use.use != "read":
                yield number, UnreadField(use.path, use.use, use.kept_reason)
    yield from _records(documents)


def _parse(document: dict[str, Any]) -> tuple[str, Trajectory, list[dict[str, Any]]]:
    document, _ = clean(document)
    extra = require_object(document.get("extra") or {}, pointer="/extra")
    feedback = require_list(extra.get("feedback", []), pointer="/extra/feedback")
    rest = {name: value for name, value in extra.items() if name != "feedback"}
    trajectory = from_atif(document | {"extra": rest})
    records = [
        require_object(record, pointer=f"/extra/feedback/{place}") for place, record in enumerate(feedback)
    ]
    return str(document.get("session_id") or ""), trajectory, records


def _records(documents: _Documents) -> Iterator[tuple[int, Found]]:
    for number, record, pointer in documents.lines():
        try:
            yield number, _incoming(record, documents)
        except InvalidRecord as error:
            yield number, error.at(pointer)


def _incoming(record: dict[str, Any], documents: _Documents) -> Incoming:
    kind = FEEDBACK_TYPES.get(str(record.get("kind")))
    if kind is None:
        raise InvalidRecord(f"the kind of a record is one of {', '.join(FEEDBACK_TYPES)}.", pointer="/kind")

    def place(session: Any, pointer: str) -> StoredTrajectory:
        trajectory = documents.trajectories.get(session) if isinstance(session, str) else None
        if trajectory is None:
            raise InvalidRecord(f"no document of this task has the session_id {session!r}.", pointer=pointer)
        return StoredTrajectory(content_hash=detach_attachments(trajectory)[0].content_hash, sent=trajectory)

    first = next(iter(documents.trajectories.values()))
    task = to_builtins(first.task)
    rest = {key: value for key, value in record.items() if key not in ("kind", "this")}
    return record_formats.parse_places(kind, {"made": {}, "task": task} | rest, place)


def _content(record: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in record.items() if key != "this"}, sort_keys=True)

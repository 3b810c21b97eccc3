"""`otel`: what `export_feedback --format otel` writes: OTLP/JSON log records with the whole record in an attribute.

A record is in the event of each of its trajectories and steps, and read once. Trajectories are named by their content,
so the project must have them. Events of others are not read: they name no trajectory of the project.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, UnreadField
from apps.annotation.feedback.readers.json_lines import read_json_documents
from apps.annotation.feedback.readers.record_texts import read_record_text
from workers.errors import InvalidRecord
from workers.schema.decode import require_list, require_object

RECORD = "touchstone.record"
_NO_RECORD = f"the event has no attribute {RECORD}"


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    seen: set[str] = set()
    for number, document in read_json_documents(stream):
        if isinstance(document, InvalidRecord):
            yield number, document
            continue
        try:
            for pointer, event in _events(document):
                text = _record_text(event, pointer)
                if text is None:
                    yield (
                        number,
                        UnreadField("/resourceLogs/*/scopeLogs/*/logRecords/*", "dropped", _NO_RECORD),
                    )
                elif text not in seen:
                    seen.add(text)
                    yield number, read_record_text(text, (), pointer=pointer)
        except InvalidRecord as error:
            yield number, error


def _events(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for pointer, resource in _objects(document, "resourceLogs", ""):
        for at, scope in _objects(resource, "scopeLogs", pointer):
            yield from _objects(scope, "logRecords", at)


def _objects(holder: dict[str, Any], name: str, pointer: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, value in enumerate(require_list(holder.get(name), pointer=f"{pointer}/{name}")):
        at = f"{pointer}/{name}/{place}"
        yield at, require_object(value, pointer=at)


def _record_text(event: dict[str, Any], pointer: str) -> str | None:
    for at, attribute in _objects(event, "attributes", pointer):
        if attribute.get("key") == RECORD:
            text = require_object(attribute.get("value"), pointer=f"{at}/value").get("stringValue")
            return text if isinstance(text, str) else None
    return None

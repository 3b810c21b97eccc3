"""The lines of exported dataset versions, for the OpenAPI document: each format is that of the peer it is for."""

from typing import Annotated, Any

from apps.core.http.document_types import described
from workers.schema.jsonschemas import MESSAGE

Json = dict[str, Any]
_TEXT: Json = {"type": "string"}
_MESSAGES: Json = {"type": "array", "items": MESSAGE}
_SIDE: Json = {"anyOf": [_TEXT, _MESSAGES, MESSAGE]}
EXPORTED: Json = {
    "description": "A record. Its keys are those of the format, which is that of a trainer, and more may "
    "come with it.",
    "type": "object",
    "properties": {
        "prompt": _SIDE,
        "chosen": _SIDE,
        "rejected": _SIDE,
        "completion": _SIDE,
        "completions": {"type": "array", "items": _TEXT},
        "messages": _MESSAGES,
        "input": _SIDE,
        "label": {"type": ["boolean", "string", "number", "null"]},
        "margin": {"type": "number"},
        "id": {"type": ["integer", "string"]},
        "chosen_model": _TEXT,
        "rejected_model": _TEXT,
        "origin": {"enum": ["person", "judge", "simulated", "imported"]},
        "kind": {"type": "string", "description": "of a record as it was frozen (format `jsonl`)"},
        "record": {"type": "string", "description": "the record as text, to find it again"},
        "tools": {"type": "array", "items": {"type": "object", "description": "a tool's definition"}},
    },
}

ExportedRecordDocument = Annotated[Json, described("ExportedRecord", EXPORTED)]

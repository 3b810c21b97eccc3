"""The JSON Schemas in docs/schemas, made from the code: `python -m workers.schema.jsonschemas docs/schemas`."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from workers.schema.endpoints import EndpointSpec
from workers.schema.records import RECORD_TYPES, Step, Trajectory

_ANY_OBJECT = {"type": "object"}
_PARTS = {"type": "array", "items": _ANY_OBJECT | {"description": "a content part"}}
_CONTENT = {"anyOf": [{"type": "string"}, _PARTS, {"type": "null"}]}
MESSAGE: dict[str, Any] = {
    "description": "An OpenAI chat message; further keys are read or kept as docs/formats.md says.",
    "type": "object",
    "properties": {"role": {"type": "string"}, "content": _CONTENT},
    "required": ["role"],
}
MESSAGES: dict[str, Any] = {"type": "array", "items": MESSAGE, "description": "OpenAI chat messages"}
ITEM: dict[str, Any] = {
    "title": "Item",
    "description": "Something to be scored: exactly one form, and options.",
    "type": "object",
    "properties": {
        "messages": MESSAGES,
        "trajectory": _ANY_OBJECT
        | {"description": "an ATIF document, v1.4 to v1.8", "required": ["schema_version", "steps"]},
        "prompt": {"anyOf": [{"type": "string"}, MESSAGES]},
        "response": {"anyOf": [{"type": "string"}, MESSAGES]},
        "text": {"type": "string", "description": "one agent step, no template added"},
        "input_ids": {
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 1,
            "description": "scored as they are",
        },
        "features": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "number"}},
            "minItems": 1,
            "description": "[agent steps][features]",
        },
        "trajectory_id": {"type": "string", "description": "a stored trajectory"},
        "reference": {
            "description": "the right answer: a text, or JSON that components of the endpoint read; null is none"
        },
        **{
            name: {"type": ["string", "null"], "description": f"{what}, for models that read it"}
            for name, what in (
                ("goal", "what is to be reached"),
                ("principle", "what to judge by"),
                ("persona", "whom it is for"),
            )
        },
        "group": {"type": ["string", "null"], "description": "items of the same prompt"},
        "session": {"type": ["string", "null"], "description": "this trajectory grows; a cache hint"},
        "logprob": {"type": ["number", "null"], "description": "sum over the response, nats"},
        "ref_logprob": {"type": ["number", "null"], "description": "sum over the response, nats"},
        "metadata": {"type": ["object", "null"], "description": "kept with the sample"},
    },
    "additionalProperties": False,
    "oneOf": [
        {"required": [form]} if form != "prompt" else {"required": ["prompt", "response"]}
        for form in ("messages", "trajectory", "prompt", "text", "input_ids", "features", "trajectory_id")
    ],
}


def schemas() -> dict[str, dict[str, Any]]:
    """By file name without ending: a trajectory, its step, each kind of record, an API item, an endpoint's spec."""
    types: dict[str, Any] = {"trajectory": Trajectory, "step": Step} | dict(RECORD_TYPES)
    types["endpoint"] = EndpointSpec
    made = {name: msgspec.json.schema(type_) for name, type_ in types.items()} | {"item": ITEM}
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {name: in_one_order(dialect | schema) for name, schema in made.items()}


def in_one_order(schema: Any) -> Any:
    """Alternatives in one order (msgspec gives them in that of a set), and lists for tuples."""
    if isinstance(schema, dict):
        return {
            key: sorted(map(in_one_order, value), key=json.dumps)
            if key in ("anyOf", "enum")
            else in_one_order(value)
            for key, value in schema.items()
        }
    return list(map(in_one_order, schema)) if isinstance(schema, list | tuple) else schema


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / f"{name}.json").write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))

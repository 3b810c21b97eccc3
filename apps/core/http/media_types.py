"""Bodies and answers that are not a JSON document of one model, for the OpenAPI document:

@router.get(..., openapi_extra=needs(Scope.TRAIN) | json_lines(RECORD, "a record a line"))
"""

from typing import Any

Json = dict[str, Any]
JSON_LINES = "application/x-ndjson"


def component(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def json_lines(line: Json, description: str, *, others: tuple[str, ...] = ()) -> Json:
    """An answer of JSON lines; `line` is the schema of each. others: media types of binary answers."""
    content = {JSON_LINES: {"schema": line}}
    content |= {
        media_type: {"schema": {"type": "string", "contentEncoding": "binary"}} for media_type in others
    }
    return {
        "responses": {
            200: {"description": f"{description}. The schema is that of a line.", "content": content}
        }
    }


def binary_file(media_type: str, description: str) -> Json:
    """An answer that is a file."""
    content = {media_type: {"schema": {"type": "string", "contentEncoding": "binary"}}}
    return {"responses": {200: {"description": description, "content": content}}}


def json_or_lines(one: Json, description: str) -> Json:
    """A body that is one document, an array of them, or JSON lines."""
    several = {"anyOf": [one, {"type": "array", "items": one}]}
    content = {"application/json": {"schema": several}, JSON_LINES: {"schema": one}}
    text = f"{description}: one, an array of them, or JSON lines, whose schema is that of a line."
    return {"requestBody": {"required": True, "description": text, "content": content}}

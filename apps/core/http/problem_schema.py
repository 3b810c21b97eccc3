"""Problem documents (RFC 9457) in OpenAPI documents."""

from typing import Any

Json = dict[str, Any]
PROBLEM_TYPE = "application/problem+json"
_TEXT: Json = {"type": "string"}
_ERROR: Json = {
    "type": "object",
    "properties": {
        "detail": _TEXT,
        "pointer": {"type": ["string", "null"], "description": "JSON pointer to the place in the body"},
        "parameter": {"type": ["string", "null"], "description": "name of the parameter"},
    },
    "required": ["detail"],
}
PROBLEM: Json = {
    "description": "An error (RFC 9457): what is wrong, where, and what to do.",
    "type": "object",
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "a sentence for people"},
        "pointer": {"type": "string", "description": "JSON pointer to the bad value in the body"},
        "parameter": {"type": "string", "description": "the bad query parameter"},
        "errors": {"type": "array", "items": _ERROR, "description": "where there may be several"},
        "limit": {"type": "number", "description": "that was passed"},
        "limit_name": _TEXT,
        "retry_after": {"type": "number", "description": "seconds, as the header Retry-After"},
        "reference": {"type": "string", "description": "of the server's log"},
    },
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": True,
}


def problem_response(description: str) -> Json:
    reference = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {PROBLEM_TYPE: {"schema": reference}}}

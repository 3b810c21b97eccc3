"""`POST /v1/traces` in the OpenAPI document: OTLP over HTTP, as its specification has it."""

from typing import Any

from apps.core.http.media_types import component
from apps.trajectories.otlp import JSON, PROTOBUF

Json = dict[str, Any]
_TEXT: Json = {"type": "string"}
_BYTES: Json = {"type": "string", "contentEncoding": "binary"}
_FAILURES = {
    "400": "the body is no export of spans",
    "401": "no key, or one that is not valid",
    "403": "the key does not have the scope `ingest`",
    "405": "the method is not POST",
    "413": "the body is over 20 MB, unpacked",
    "415": "the media type or the encoding is not read",
}


def _content(name: str) -> Json:
    return {JSON: {"schema": component(name)}, PROTOBUF: {"schema": _BYTES}}


TRACE_PATHS: Json = {
    "/v1/traces": {
        "post": {
            "operationId": "receive_traces",
            "summary": "Send OpenTelemetry spans",
            "description": "OTLP over HTTP, protobuf or JSON, gzip or deflate. The project is the key's. Query "
            "parameters are ignored. The header X-Touchstone-Dropped names fields that are in no span that is kept.",
            "tags": ["trajectories"],
            "parameters": [],
            "security": [{"key": ["ingest"]}],
            "requestBody": {"required": True, "content": _content("TraceExport")},
            "responses": {
                "200": {"description": "the spans are kept", "content": _content("TraceExportResult")},
                **{
                    status: {"description": why, "content": _content("OtlpStatus")}
                    for status, why in _FAILURES.items()
                },
            },
        }
    }
}


def trace_components() -> dict[str, Json]:
    """The parts that are read; the whole is in opentelemetry-proto, trace/v1/trace.proto."""
    attributes = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"key": _TEXT, "value": {"type": "object", "description": "an AnyValue"}},
        },
    }
    span: Json = {
        "traceId": _TEXT,
        "spanId": _TEXT,
        "parentSpanId": _TEXT,
        "name": _TEXT,
        "startTimeUnixNano": {"type": ["string", "integer"]},
        "endTimeUnixNano": {"type": ["string", "integer"]},
        "attributes": attributes,
        "events": {"type": "array", "items": _object({"name": _TEXT, "attributes": attributes})},
        "status": {
            "type": "object",
            "properties": {"code": {"type": ["integer", "string"]}, "message": _TEXT},
        },
    }
    scope = _object({"spans": _list(_object(span, ["traceId", "spanId"]))})
    resource = _object({"resource": _object({"attributes": attributes}), "scopeSpans": _list(scope)})
    partial = _object({"rejectedSpans": {"type": ["string", "integer"]}, "errorMessage": _TEXT})
    return {
        "TraceExport": _object({"resourceSpans": _list(resource)}),
        "TraceExportResult": _object({"partialSuccess": partial}),
        "OtlpStatus": _object({"code": {"type": "integer"}, "message": _TEXT}),
    }


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _object(properties: Json, required: list[str] | None = None) -> Json:
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})

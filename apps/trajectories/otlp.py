"""OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp): requests of spans and their answers, protobuf or JSON."""

import base64
import json
import zlib
from typing import IO, Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from apps.core.errors import DomainError
from workers.schema import RECORD_LIMITS, parse_json

MAX_BODY_BYTES = 20 * 2**20  # bytes of a request, unpacked: as collectors take by default
PROTOBUF, JSON = "application/x-protobuf", "application/json"
_IDS = ("traceId", "spanId", "parentSpanId")
_WINDOWS = {"gzip": 31, "deflate": 15}  # zlib's wbits


def read_body(stream: IO[bytes], encoding: str, limit: int) -> bytes:
    """The body, unpacked. Raises DomainError: for more than `limit` bytes, sent or unpacked, with status 413."""
    if encoding not in ("", "identity", *_WINDOWS):
        raise DomainError(
            f"Content-Encoding {encoding!r} is not read; send gzip, deflate or none.", status=415
        )
    packed = stream.read(limit + 1)
    try:
        unpacker = zlib.decompressobj(_WINDOWS[encoding]) if encoding in _WINDOWS else None
        body = packed if unpacker is None else unpacker.decompress(packed, limit + 1)
    except zlib.error as error:
        raise DomainError(f"The body is not {encoding}: {error}.") from None
    if max(len(packed), len(body)) > limit:
        raise DomainError(
            f"The request has more than {limit // 2**20} MB; send fewer spans per request.",
            status=413,
        )
    if unpacker is not None and not unpacker.eof:
        raise DomainError(f"The body is not {encoding}, or ends too early.")
    return body


def parse_otlp(body: bytes, media_type: str) -> Any:
    """The request as OTLP JSON. Raises DomainError, InvalidRecord."""
    if media_type == JSON:
        return parse_json(body)
    if media_type != PROTOBUF:
        raise DomainError(f"Content-Type {media_type!r} is not read; send {PROTOBUF} or {JSON}.", status=415)
    try:
        request = ExportTraceServiceRequest.FromString(body)
        _check_parts(request)
        document = MessageToDict(request)
    except DecodeError as error:
        raise DomainError(f"The body is no ExportTraceServiceRequest: {error}.") from None
    for resource in document.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                span |= {key: base64.b64decode(span[key]).hex() for key in _IDS if key in span}
    return document | {"resourceSpans": document.get("resourceSpans", [])}


def _check_parts(request: Message) -> None:
    """An empty attribute is two bytes, and a dictionary once it is decoded: 20 MB of them would be gigabytes."""
    found, waiting = 0, [request]
    while waiting:
        for field, value in waiting.pop().ListFields():
            if field.message_type is None:
                continue
            parts = [value] if isinstance(value, Message) else value
            found += len(parts)
            if found > RECORD_LIMITS.containers:
                raise DomainError(
                    f"The request has over {RECORD_LIMITS.containers:,} spans, attributes and values; send fewer "
                    "spans per request.",
                    status=413,
                )
            waiting.extend(parts)


def success_response(media_type: str, refused: int = 0, why: str = "") -> bytes:
    """An ExportTraceServiceResponse; with the number of rejected spans and the reason."""
    if media_type != PROTOBUF:
        partial = {"partialSuccess": {"rejectedSpans": str(refused), "errorMessage": why}} if refused else {}
        return json.dumps(partial).encode()
    if not refused:
        return ExportTraceServiceResponse().SerializeToString()
    partial_success = ExportTracePartialSuccess(rejected_spans=refused, error_message=why)
    return ExportTraceServiceResponse(partial_success=partial_success).SerializeToString()


def error_response(media_type: str, message: str) -> bytes:
    """A google.rpc.Status, as the protocol wants of every error."""
    if media_type == PROTOBUF:
        return Status(message=message).SerializeToString()
    return json.dumps({"message": message}).encode()

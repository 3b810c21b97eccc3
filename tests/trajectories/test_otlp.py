"""Requests of spans that would become far more than they are."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from apps.core.errors import DomainError
from apps.trajectories.otlp import JSON, PROTOBUF, parse_otlp
from workers.errors import InvalidRecord


def test_empty_attributes_are_counted_before_they_are_built() -> None:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add(name="a")
    span.attributes.add(key="k").value.string_value = "v"
    few = parse_otlp(request.SerializeToString(), PROTOBUF)
    assert few["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] == "a"
    attributes = b"\x4a\x00" * 1_000_001  # field 9 of a span, empty
    for field in (0x12, 0x12, 0x0A):  # spans, scope_spans, resource_spans
        attributes = bytes([field]) + _varint(len(attributes)) + attributes
    with pytest.raises(DomainError, match="over 1,000,000 spans, attributes and values") as error:
        parse_otlp(attributes, PROTOBUF)
    assert error.value.status == 413
    with pytest.raises(InvalidRecord, match="over 1,000,000 arrays and objects"):
        parse_otlp(b'{"resourceSpans": [' + b"{}," * 1_000_001 + b"{}]}", JSON)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])

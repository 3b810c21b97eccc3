"""The frames of Amazon's event streams (`application/vnd.amazon.eventstream`), as recorded answers of Bedrock have
them: the length of all, the length of the headers, a checksum, the headers, a JSON document, a checksum.

A frame of `converse-stream` is named by a header; one of `invoke-with-response-stream` has the event in base64.
"""

import base64
import binascii
import struct
from typing import Any

from workers.schema.bounded import loads

_PRELUDE, _CHECKSUM = 12, 4
_TEXT_HEADER = 7
_NAME = ":event-type"
_BEGIN = "000000"  # of a frame in hexadecimal digits


def framed_events(value: Any) -> list[dict[str, Any]]:
    """The events of bytes, or of their hexadecimal digits, also in several pieces; empty for anything else."""
    if isinstance(value, list) and value and all(isinstance(piece, str) for piece in value):
        value = "".join(value)
    if isinstance(value, str):
        if not value.startswith(_BEGIN):
            return []
        try:
            value = bytes.fromhex(value)
        except ValueError:
            return []
    return _events(value) if isinstance(value, bytes) else []


def _events(data: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    place = 0
    while place + _PRELUDE + _CHECKSUM <= len(data):
        size, headers = struct.unpack_from(">II", data, place)
        if not _PRELUDE + headers + _CHECKSUM <= size <= len(data) - place:
            break
        start = place + _PRELUDE
        name = _event_name(data[start : start + headers])
        event = _event(name, data[start + headers : place + size - _CHECKSUM])
        if event:
            found.append(event)
        place += size
    return found


def _event_name(headers: bytes) -> str:
    place = 0
    while place + 2 < len(headers):
        length = headers[place]
        key = headers[place + 1 : place + 1 + length].decode("utf-8", "replace")
        place += 1 + length
        if headers[place : place + 1] != bytes([_TEXT_HEADER]) or place + 3 > len(headers):
            return ""
        (size,) = struct.unpack_from(">H", headers, place + 1)
        value = headers[place + 3 : place + 3 + size].decode("utf-8", "replace")
        if key == _NAME:
            return value
        place += 3 + size
    return ""


def _event(name: str, payload: bytes) -> dict[str, Any]:
    try:
        document = loads(payload.decode("utf-8"))
        if isinstance(document, dict) and isinstance(document.get("bytes"), str):
            document = loads(base64.b64decode(document["bytes"], validate=True).decode("utf-8"))
            return document if isinstance(document, dict) else {}
    except (ValueError, binascii.Error):
        return {}
    return {name: document} if name and isinstance(document, dict) else {}

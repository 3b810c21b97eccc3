"""Cassettes of VCR: HTTP calls as test suites record them, as YAML or JSON: {"interactions": [{"request": {"body"},
"response": {"body": {"string"}}}]}. Those of model APIs are read, one after another as `call-log` reads them.

Bodies may be text, an object (`parsed_body`), or packed by gzip.
"""

import base64
import binascii
import zlib
from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.chat import call_log
from apps.trajectories.formats.placed import object_at, objects
from apps.trajectories.formats.text_kind import TextKind
from apps.trajectories.formats.yaml_text import read_yaml
from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.decode import require_object

SIGN = "a file that begins with `interactions:`, or an object with `interactions` of a `request` and a `response`"
READ = call_log.READ
_TEXT, _HEADERS = "the text of a call, of which the fields are read", "headers of HTTP, which may hold keys"
LEFT_OUT = {
    f"/{side}/body/{name}": _TEXT for side in ("request", "response") for name in ("string", "base64_string")
}
LEFT_OUT |= {f"/{side}/headers": _HEADERS for side in ("request", "response")}
PLACES = {"/request": "/interactions/*/request", "/response": "/interactions/*/response"}
_NOT_KEPT = ("headers", "cookies", "body", "parsed_body", "content")
_BEGIN = "interactions:"
_MOST_BODY = 64 * 2**20


def sniff(document: Any) -> bool:
    calls = objects(document.get("interactions")) if isinstance(document, dict) else []
    return bool(calls) and all("request" in call and "response" in call for call in calls)


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """Raises InvalidRecord where no call is one of a model API."""
    calls = objects(require_object(document).get("interactions"))
    found = [
        (f"/interactions/{index}", given)
        for index, given in enumerate(calls)
        if call_log.has_answer(_call(given))
    ]
    if not found:
        raise InvalidRecord(
            f"none of {len(calls)} recorded calls is one of a model API that is known.",
            pointer="/interactions",
        )
    yield from found


def read(document: Any) -> Trajectory:
    return call_log.read(_call(require_object(document)))


def _call(given: dict[str, Any]) -> dict[str, Any]:
    """A call without its headers, which may hold keys."""
    found = {key: value for key, value in given.items() if key not in ("request", "response")}
    for side in ("request", "response"):
        holder = object_at(given, side)
        body = holder.get("parsed_body", holder.get("body", holder.get("content")))
        about = {key: value for key, value in holder.items() if key not in _NOT_KEPT}
        found[side] = about | {"body": _text(body)}
    return found


def _text(body: Any) -> Any:
    """What a body says, unpacked."""
    if isinstance(body, dict) and ("string" in body or "base64_string" in body):
        body = body.get("string", body.get("base64_string"))
    if isinstance(body, str) and body[:4] == "H4sI":  # gzip in base64
        try:
            body = base64.b64decode("".join(body.split()), validate=True)
        except (binascii.Error, ValueError):
            return body
    if not isinstance(body, bytes):
        return body
    if body[:2] == b"\x1f\x8b":
        unpacker = zlib.decompressobj(wbits=31)
        try:
            body = unpacker.decompress(body, _MOST_BODY)
        except zlib.error:
            return ""
    return body.decode("utf-8", "replace")


CASSETTE = TextKind(
    "a cassette of recorded calls",
    lambda head: head.startswith(_BEGIN),
    lambda line: line.startswith(_BEGIN),
    lambda lines: read_yaml("".join(lines), "cassette"),
)

"""slime's remote reward model: {"prompt", "response", "label"} -> a number."""

from collections.abc import Mapping

from apps.rewards.serving.requests import ScoreRequest, parse_tags, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.wire.protocol import Wire, pair_item


def parse(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    """The prompt may be a text or messages."""
    document = read_document(body)
    item = pair_item(document.get("prompt"), document.get("response"), "", document.get("label"))
    return ScoreRequest((item,), steps=False, tags=parse_tags(document, headers), pointer=None)


def reply(response: ScoreResponse) -> float:
    return response.rewards[0]


WIRES = (Wire("/compat/slime/{endpoint}", parse, reply),)

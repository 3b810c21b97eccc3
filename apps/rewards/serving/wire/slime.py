"""slime's remote reward model: {"prompt", "response", "label"} -> a number.

The sample's metadata are not sent: a label that is an object has the conditions (`label_values`).
"""

from collections.abc import Mapping

from apps.rewards.serving.requests import ScoreRequest, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.wire.protocol import Wire, pair_item, wire_request, with_label


def parse(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    """The prompt may be a text or messages."""
    document = read_document(body)
    item = pair_item(document.get("prompt"), document.get("response"), "")
    return wire_request(document, headers, [with_label(item, document.get("label"), "/label")])


def reply(response: ScoreResponse) -> float:
    return response.rewards[0]


WIRES = (Wire("/compat/slime/{endpoint}", parse, reply),)

"""NeMo-Gym's verify: {"responses_create_params", "response"} -> the same, with `reward` and `reward_components`.

Both sides are of OpenAI's Responses API: the prompt is `input` (and `instructions`), the response its `output`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from apps.rewards.serving.requests import ScoreRequest, limited, parse_tags, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.wire.protocol import Wire, pair_item, text
from apps.rewards.serving.wire.response_items import ItemReader
from workers.schema.decode import require_list, require_object

Json = dict[str, Any]


def parse(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    document = read_document(body)
    at = "/responses_create_params"
    asked = require_object(document.get("responses_create_params"), pointer=at)
    answered = require_object(document.get("response"), pointer="/response")
    reader = ItemReader()
    prompt = _prompt(asked, at, reader)
    output = limited(require_list(answered.get("output"), pointer="/response/output"), "/response/output")
    response = reader.messages(output, "/response/output")
    if not any(message["role"] == "assistant" for message in response):
        response = [*response, {"role": "assistant", "content": ""}]  # an empty response is scored as one
    item = pair_item(prompt, response, "")
    flags = [*item.flags, *reader.flags, *(["unread:tools"] if asked.get("tools") else [])]
    item = dataclasses.replace(item, flags=tuple(flags))
    return ScoreRequest(
        (item,), steps=False, tags=parse_tags(document, headers), pointer=None, context=document
    )


def reply(response: ScoreResponse) -> Json:
    """reward_components: what each component adds, and what the transforms took away; their sum is the reward."""
    (score,) = response.scores
    components = dict(score.components)
    rest = score.reward - sum(components.values())
    if rest:
        components["transforms"] = rest
    return response.request.context | {"reward": score.reward, "reward_components": components}


def _prompt(asked: Json, at: str, reader: ItemReader) -> list[Json]:
    content = asked.get("input")
    messages = (
        [{"role": "user", "content": content}]
        if isinstance(content, str)
        else reader.messages(require_list(content, pointer=f"{at}/input"), f"{at}/input")
    )
    instructions = asked.get("instructions")
    if instructions is None:
        return messages
    return [{"role": "system", "content": text(instructions, f"{at}/instructions")}, *messages]


WIRES = (
    Wire(
        "/compat/nemo-gym/{endpoint}/verify",
        parse,
        reply,
        "NeMo-Gym: the reward of a response",
        ("responses_create_params", "response"),
    ),
)

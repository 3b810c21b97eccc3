"""NeMo-Gym's verify: {"responses_create_params", "response"} -> the same, with `reward` and `reward_components`.

Both sides are of OpenAI's Responses API: the prompt is `input` (and `instructions`), the response its `output`.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from apps.rewards.serving.requests import ScoreRequest, limited, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.wire.protocol import Wire, pair_item, text, wire_request, with_row
from workers.errors import InvalidRecord
from workers.schema import ScoreInput
from workers.schema.decode import require_list, require_object
from workers.schema.message_shapes import chat_messages
from workers.schema.response_items import NAMED_CALLS, is_item

Json = dict[str, Any]


def parse(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    document = read_document(body)
    at = "/responses_create_params"
    asked = require_object(document.get("responses_create_params"), pointer=at)
    answered = require_object(document.get("response"), pointer="/response")
    prompt = _prompt(asked, at)
    output = limited(require_list(answered.get("output"), pointer="/response/output"), "/response/output")
    response = _items(output, "/response/output")
    if not any(message["role"] == "assistant" for _, message in chat_messages(list(response.values()))):
        response["/response/output"] = {
            "role": "assistant",
            "content": "",
        }  # an empty response is scored as one
    try:
        item = pair_item(list(prompt.values()), list(response.values()), "")
    except InvalidRecord as error:
        raise _placed(error, {"prompt": list(prompt), "response": list(response)}) from None
    unread = [*_unread(asked.get("input")), *_unread(output)]
    flags = dict.fromkeys([*item.flags, *unread, *(["unread:tools"] if asked.get("tools") else [])])
    item = dataclasses.replace(item, flags=tuple(flags))
    return wire_request(document, headers, [_with_row(item, document)], context=document)


def reply(response: ScoreResponse) -> Json:
    """reward_components: what each component adds, and what the transforms took away; their sum is the reward."""
    (score,) = response.scores
    components = dict(score.components)
    rest = score.reward - sum(components.values())
    if rest:
        components["transforms"] = rest
    return response.request.context | {"reward": score.reward, "reward_components": components}


def _with_row(item: ScoreInput, row: Json) -> ScoreInput:
    """Agents send the row of the data set with what they add to it: its own fields come first, then those for the
    verifier, and last the `expected_answer` that rows of right and wrong answers have."""
    metadata = row.get("verifier_metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    answers = {"reference": row.get("expected_answer", metadata.get("expected_answer"))}
    for fields, at in ((row, ""), (metadata, "/verifier_metadata"), (answers, "/expected_answer")):
        item = with_row(item, fields, at)
    return item


def _prompt(asked: Json, at: str) -> dict[str, Json]:
    """Messages by their pointers."""
    content, found = asked.get("input"), dict[str, Json]()
    if (instructions := asked.get("instructions")) is not None:
        place = f"{at}/instructions"
        found[place] = {"role": "system", "content": text(instructions, place)}
    if isinstance(content, str):
        return found | {f"{at}/input": {"role": "user", "content": content}}
    return found | _items(require_list(content, pointer=f"{at}/input"), f"{at}/input")


def _items(items: Sequence[Any], at: str) -> dict[str, Json]:
    """Those that are messages, by their pointers."""
    by_pointer = {
        f"{at}/{index}": require_object(item, pointer=f"{at}/{index}") for index, item in enumerate(items)
    }
    for place, item in by_pointer.items():
        if item.get("type") in NAMED_CALLS:
            text(item.get("name"), f"{place}/name")
    return {place: item for place, item in by_pointer.items() if _is_message(item)}


def _is_message(item: Json) -> bool:
    return "role" in item or is_item(item)


def _unread(items: Any) -> Iterator[str]:
    """Flags of items that are no messages, such as a list of a server's tools."""
    for item in items if isinstance(items, list) else []:
        if not _is_message(item):
            yield f"unread:{str(item.get('type'))[:40]}"


def _placed(error: InvalidRecord, pointers: Mapping[str, Sequence[str]]) -> InvalidRecord:
    """The error at the place in the request of what was read as a message."""
    for side, places in pointers.items():
        for index, place in enumerate(places):
            before, found = f"/{side}/{index}", error.pointer or ""
            if f"{found}/".startswith(f"{before}/"):
                return InvalidRecord(error.message, pointer=place + found.removeprefix(before))
    return error


WIRES = (Wire("/compat/nemo-gym/{endpoint}/verify", parse, reply),)

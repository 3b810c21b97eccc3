"""SGLang's classify: {"model", "text": [...]} -> [{"embedding": [reward], "meta_info": {...}}]; one for a single text.

A pair of texts is a prompt and its response; `input_ids` are scored as they are.
"""

import uuid
from collections.abc import Mapping
from typing import Any

from apps.rewards.serving.requests import ScoreRequest, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.wire.protocol import (
    Wire,
    endpoint_of,
    filled,
    flags_of,
    pair_item,
    text_item,
    wire_request,
)
from workers.engine import ItemScore
from workers.errors import InvalidRecord
from workers.schema import ScoreInput, parse_item


def parse(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    document = read_document(body)
    name = "input_ids" if document.get("text") is None else "text"
    value, at = document.get(name), f"/{name}"
    single = isinstance(value, str) or (
        name == "input_ids" and isinstance(value, list) and value[:1] and isinstance(value[0], int)
    )
    values = [value] if single else filled(value, at)
    items = [_item(text, name, at if single else f"{at}/{index}") for index, text in enumerate(values)]
    return wire_request(
        document,
        headers,
        items,
        endpoint=endpoint_of(document),
        pointer=None if single else at,
        context=bool(single),
    )


def reply(response: ScoreResponse) -> Any:
    found = [_result(response, score) for score in response.scores]
    return found[0] if response.request.context else found


def _item(value: Any, name: str, at: str) -> ScoreInput:
    if name == "input_ids":
        return parse_item({"input_ids": value}, pointer=at)
    if isinstance(value, list):
        if len(value) != 2:
            raise InvalidRecord(f"a pair is a prompt and a response, not {len(value)} texts.", pointer=at)
        return pair_item(value[0], value[1], at)
    return text_item(value, at)


def _result(response: ScoreResponse, score: ItemScore) -> dict[str, Any]:
    info = {
        "id": uuid.uuid4().hex,
        "finish_reason": None,
        "prompt_tokens": score.tokens,
        "cached_tokens": score.cached_tokens,
        "e2e_latency": response.seconds,
    }
    return {"embedding": [score.reward], "meta_info": info | flags_of(score)}


WIRES = (Wire("/compat/sglang/classify", parse, reply, ("POST", "PUT")),)

"""vLLM's pooling server: classify, pooling, score, rerank and embeddings; `model` names the endpoint.

Also what verl's reward loop sends. Numbers are final rewards, no sigmoid, unless `use_activation` (or the older
`activation`) is true. Fields that configure a vLLM server (truncation, padding, priority) are ignored.
"""

import base64
import struct
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from apps.rewards.serving.requests import ScoreRequest, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.wire.protocol import (
    Wire,
    endpoint_of,
    filled,
    flag,
    flags_of,
    pair_item,
    text,
    text_item,
    wire_request,
)
from workers.engine import ItemScore
from workers.errors import InvalidRecord
from workers.schema import ScoreInput, parse_item
from workers.schema.decode import json_type_name
from workers.schema.logistic import logistic
from workers.schema.rendered_items import parse_scored_item

Json = dict[str, Any]
# What a request may call the two sides of its pairs.
_SIDES = (("text_1", "text_2"), ("queries", "documents"), ("queries", "items"), ("data_1", "data_2"))


def parse_inputs(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    """`input`: a text, several, token ids, or several lists of them; or `messages`."""
    document = read_document(body)
    if "messages" in document:
        item = parse_scored_item({"messages": document["messages"]})
        unread = ("unread:tools",) if document.get("tools") else ()
        items, pointer = [replace(item, flags=(*item.flags, *unread))], None
    else:
        value = document.get("input")
        single = isinstance(value, str) or (isinstance(value, list) and value and isinstance(value[0], int))
        pointer = None if single else "/input"
        items = (
            [_input(value, "/input")]
            if single
            else [_input(entry, f"/input/{index}") for index, entry in enumerate(filled(value, "/input"))]
        )
    return _request(document, headers, items, pointer)


def parse_pairs(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    """One text with each of several, or as many with as many."""
    document = read_document(body)
    sides = next((names for names in _SIDES if all(name in document for name in names)), None)
    if sides is None:
        raise InvalidRecord("needs text_1 and text_2, or queries and documents.", pointer="/text_1")
    first, second = (_sides(document[name], f"/{name}") for name in sides)
    if len(first) == 1:
        first *= len(second)
    if len(first) != len(second):
        raise InvalidRecord(
            f"has {len(second)} for {len(first)} of {sides[0]}; send the same number, or a single one there.",
            pointer=f"/{sides[1]}",
        )
    items = [
        pair_item(prompt, answer, f"/{sides[1]}/{index}")
        for index, (prompt, answer) in enumerate(zip(first, second, strict=True))
    ]
    return _request(document, headers, items, f"/{sides[1]}")


def parse_rerank(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    document = read_document(body)
    query, documents = text(document.get("query"), "/query"), _sides(document.get("documents"), "/documents")
    top = document.get("top_n", 0)
    if isinstance(top, bool) or not isinstance(top, int) or top < 0:
        raise InvalidRecord("top_n must be a whole number; 0 means all.", pointer="/top_n")
    items = [
        pair_item(query, document_text, f"/documents/{index}")
        for index, document_text in enumerate(documents)
    ]
    return _request(document, headers, items, "/documents", documents=documents, top=top)


def reply_classify(response: ScoreResponse) -> Json:
    data = [
        {"index": index, "label": "LABEL_0", "probs": [_number(response, score)], "num_classes": 1}
        | flags_of(score)
        for index, score in enumerate(response.scores)
    ]
    return _head(response, "classify") | {"data": data, "usage": _usage(response)}


def reply_pooling(response: ScoreResponse) -> Json:
    """One row for the item; for process rewards (aggregations mean, min, product and last) one for every agent step."""
    data = [
        {"index": index, "object": "pooling", "data": [[row] for row in _rows(response, score)]}
        | flags_of(score)
        for index, score in enumerate(response.scores)
    ]
    return _head(response, "pool") | {"data": data, "usage": _usage(response)}


def reply_score(response: ScoreResponse) -> Json:
    data = [
        {"index": index, "object": "score", "score": _number(response, score)} | flags_of(score)
        for index, score in enumerate(response.scores)
    ]
    return _head(response, "score") | {"data": data, "usage": _usage(response)}


def reply_rerank(response: ScoreResponse) -> Json:
    """Best first; equal ones as they came."""
    documents, top = response.request.context["documents"], response.request.context["top"]
    results: list[Json] = [
        {"index": index, "document": {"text": documents[index]}, "relevance_score": _number(response, score)}
        | flags_of(score)
        for index, score in enumerate(response.scores)
    ]
    results.sort(key=lambda result: -result["relevance_score"])
    usage = {"prompt_tokens": response.tokens, "total_tokens": response.tokens}
    head = {"id": f"rerank-{uuid.uuid4().hex}", "model": response.request.context["model"]}
    return head | {"usage": usage, "results": results[: top or None]}


def reply_embeddings(response: ScoreResponse) -> Json:
    """As OpenAI's; its client requests base64 of little-endian float32 by default."""
    encode: Callable[[float], Any] = (
        _base64 if response.request.context["base64"] else lambda number: [number]
    )
    data = [
        {"object": "embedding", "index": index, "embedding": encode(_number(response, score))}
        | flags_of(score)
        for index, score in enumerate(response.scores)
    ]
    return _head(response, "embd") | {"data": data, "usage": _usage(response)}


def _request(
    document: Json, headers: Mapping[str, str], items: list[ScoreInput], pointer: str | None, **context: Any
) -> ScoreRequest:
    encoding = document.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise InvalidRecord("must be float or base64.", pointer="/encoding_format")
    context |= {
        "model": document.get("model"),
        "activation": flag(document, "use_activation") or flag(document, "activation"),
        "base64": encoding == "base64",
    }
    return wire_request(
        document,
        headers,
        items,
        endpoint=endpoint_of(document),
        pointer=pointer,
        context=context,
    )


def _input(value: Any, at: str) -> ScoreInput:
    if isinstance(value, list):
        return parse_item({"input_ids": value}, pointer=at)
    return text_item(value, at)


def _sides(value: Any, at: str) -> list[str]:
    """Texts, bare or as {"text": ...}."""
    values = [value] if isinstance(value, str | dict) else filled(value, at)
    return [_side(side, f"{at}/{index}") for index, side in enumerate(values)]


def _side(value: Any, at: str) -> str:
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    if not isinstance(value, str):
        raise InvalidRecord(f"expected a text, got {json_type_name(value)}.", pointer=at)
    return value


def _number(response: ScoreResponse, score: ItemScore) -> float:
    return logistic(score.reward) if response.request.context["activation"] else score.reward


def _rows(response: ScoreResponse, score: ItemScore) -> list[float]:
    activation = response.request.context["activation"]
    rows = score.step_scores or (score.reward,)
    return [logistic(row) if activation else row for row in rows]


def _head(response: ScoreResponse, kind: str) -> Json:
    return {
        "id": f"{kind}-{uuid.uuid4().hex}",
        "object": "list",
        "created": int(time.time()),
        "model": response.request.context["model"],
    }


def _usage(response: ScoreResponse) -> Json:
    return {"prompt_tokens": response.tokens, "total_tokens": response.tokens, "completion_tokens": 0}


def _base64(number: float) -> str:
    return base64.b64encode(struct.pack("<f", number)).decode()


_BASE = "/compat/vllm"
WIRES = (
    Wire(f"{_BASE}/classify", parse_inputs, reply_classify),
    Wire(f"{_BASE}/pooling", parse_inputs, reply_pooling),
    Wire(f"{_BASE}/v1/embeddings", parse_inputs, reply_embeddings),
    *(Wire(f"{_BASE}{path}", parse_pairs, reply_score) for path in ("/score", "/v1/score")),
    *(Wire(f"{_BASE}{path}", parse_rerank, reply_rerank) for path in ("/rerank", "/v1/rerank", "/v2/rerank")),
)

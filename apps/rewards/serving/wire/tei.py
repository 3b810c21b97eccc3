"""Text Embeddings Inference: predict and rerank.

predict: {"inputs", "truncate", "raw_scores"} -> [{"score", "label"}], nested for a batch. "a" is one text, ["a"] too,
["a", "b"] one pair, [["a"], ["b", "c"]] a batch. rerank: {"query", "texts"} -> [{"index", "score", "text"?}].
Scores are rewards unless `raw_scores` is false, which asks for their logistic; with `truncate` false, what is too
long is refused.
"""

from collections.abc import Mapping
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
from workers.schema import ScoreInput
from workers.schema.logistic import logistic

Json = dict[str, Any]


def parse_predict(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    document = read_document(body)
    value = document.get("inputs")
    is_batch = isinstance(value, list) and bool(value) and isinstance(value[0], list)
    if isinstance(value, list) and is_batch:
        inputs = [_item(entry, f"/inputs/{index}") for index, entry in enumerate(filled(value, "/inputs"))]
    else:
        inputs = [_item(value, "/inputs")]
    return _request(document, headers, inputs, "/inputs" if is_batch else None, batch=is_batch)


def parse_rerank(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    document = read_document(body)
    query, texts = text(document.get("query"), "/query"), filled(document.get("texts"), "/texts")
    items = [pair_item(query, text(answer, f"/texts/{i}"), f"/texts/{i}") for i, answer in enumerate(texts)]
    shown = texts if flag(document, "return_text") else None
    return _request(document, headers, items, "/texts", texts=shown)


def reply_predict(response: ScoreResponse) -> list[Any]:
    found = [
        [{"score": _number(response, score), "label": "LABEL_0"} | flags_of(score)]
        for score in response.scores
    ]
    return found if response.request.context["batch"] else found[0]


def reply_rerank(response: ScoreResponse) -> list[Json]:
    """Best first; equal ones as they came."""
    texts = response.request.context["texts"]
    ranks = [
        {"index": index, "score": _number(response, score)}
        | ({"text": texts[index]} if texts else {})
        | flags_of(score)
        for index, score in enumerate(response.scores)
    ]
    return sorted(ranks, key=lambda rank: -rank["score"])


def _request(
    document: Json, headers: Mapping[str, str], items: list[ScoreInput], pointer: str | None, **context: Any
) -> ScoreRequest:
    return wire_request(
        document,
        headers,
        items,
        endpoint=endpoint_of(document) if "model" in document else None,
        pointer=pointer,
        no_truncation=flag(document, "truncate") is False,
        context=context | {"raw": flag(document, "raw_scores") is not False},
    )


def _item(value: Any, at: str) -> ScoreInput:
    parts = [value] if isinstance(value, str) else filled(value, at)
    if len(parts) > 2:
        raise InvalidRecord(
            'is a text or a pair of texts; a batch is a list of such lists: [["a"], ["b"]].', pointer=at
        )
    if len(parts) == 1:
        return text_item(parts[0], at)
    return pair_item(text(parts[0], f"{at}/0"), text(parts[1], f"{at}/1"), at)


def _number(response: ScoreResponse, score: ItemScore) -> float:
    return score.reward if response.request.context["raw"] else logistic(score.reward)


WIRES = tuple(
    Wire(f"/compat/tei{place}/{verb}", parse, reply)
    for place in ("/{endpoint}", "")
    for verb, parse, reply in (
        ("predict", parse_predict, reply_predict),
        ("rerank", parse_rerank, reply_rerank),
    )
)

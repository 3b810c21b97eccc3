"""OpenRLHF's remote reward model: one POST per sample, or long lists from older versions.

{"query": [prompt + response], "prompts": [prompt], "labels": [label]}
-> {"rewards": [float], "scores": [0..1], "extra_logs": {name: [float]}}
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from apps.rewards.serving.requests import ScoreRequest, parse_tags, read_document
from workers.engine import Score
from workers.errors import InvalidRecord
from workers.schema import Item, parse_item
from workers.schema.decode import kind_of, require_list

# A tokenizer may put its beginning-of-text mark before the prompt when it decodes the query.
_LONGEST_MARK = 64


def parse_openrlhf(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    """Raises InvalidRecord with the JSON pointer of what is wrong. Keys we do not know are the sender's business."""
    document = read_document(body)
    queries = _texts(document.get("query"), "/query")
    prompts = _texts(document.get("prompts") or [""] * len(queries), "/prompts")
    if len(prompts) != len(queries):
        raise InvalidRecord(
            f"has {len(prompts)} prompts for {len(queries)} queries; send one for each.", pointer="/prompts"
        )
    pairs = enumerate(zip(queries, prompts, strict=True))
    items = tuple(_item(query, prompt, f"/query/{index}") for index, (query, prompt) in pairs)
    return ScoreRequest(
        items, steps=False, uncertainty=True, version=None, tags=parse_tags(document, headers)
    )


def reply(scores: Sequence[Score]) -> dict[str, Any]:
    """rewards: final rewards, no sigmoid. scores: their logistic, for filters that expect 0 to 1."""
    logs = {
        "raw_reward": [score.raw for score in scores],
        "truncated": [float("truncated" in score.flags) for score in scores],
    }
    if all(score.std is not None for score in scores):
        logs["reward_std"] = [score.std for score in scores if score.std is not None]
    return {
        "rewards": [score.reward for score in scores],
        "scores": [logistic(score.reward) for score in scores],
        "extra_logs": logs,
    }


def logistic(x: float) -> float:
    """1 / (1 + exp(-x)), in [0, 1], without overflow."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _item(query: str, prompt: str, at: str) -> Item:
    if not prompt:
        return parse_item({"text": query}, pointer=at)
    start = query.find(prompt)
    if not 0 <= start <= _LONGEST_MARK:
        raise InvalidRecord(
            "does not begin with its prompt, so there is no telling its response.", pointer=at
        )
    return parse_item({"prompt": prompt, "response": query[start + len(prompt) :]}, pointer=at)


def _texts(value: Any, at: str) -> list[str]:
    texts = [value] if isinstance(value, str) else require_list(value, pointer=at)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidRecord(f"expected a string, got {kind_of(text)}.", pointer=f"{at}/{index}")
    return texts

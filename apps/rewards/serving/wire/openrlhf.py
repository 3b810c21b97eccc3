"""OpenRLHF's remote reward model: one POST per sample, or long lists from older versions.

{"query": [prompt + response], "prompts": [prompt], "labels": [label]}; a label that is an object has the conditions
-> {"rewards": [float], "scores": [0..1], "extra_logs": {name: [float]}}
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from touchstone_client.alignment import align

from apps.rewards.serving.requests import ScoreRequest, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.wire.protocol import Wire, pair_item, text_item, texts, wire_request, with_label
from workers.errors import InvalidRecord
from workers.schema import ScoreInput
from workers.schema.decode import require_list
from workers.schema.logistic import logistic


def parse(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    document = read_document(body)
    queries = texts(document.get("query"), "/query")
    prompts = texts(document.get("prompts") or [""] * len(queries), "/prompts")
    labels = document.get("labels")
    if labels is None or labels == []:
        labels = [None] * len(queries)
    labels = labels if isinstance(labels, list) else [labels]
    for name, found in (("prompts", prompts), ("labels", require_list(labels, pointer="/labels"))):
        if len(found) != len(queries):
            raise InvalidRecord(
                f"has {len(found)} {name} for {len(queries)} queries; send one for each.", pointer=f"/{name}"
            )
    items = [
        with_label(_item(query, prompt, f"/query/{index}"), label, f"/labels/{index}")
        for index, (query, prompt, label) in enumerate(zip(queries, prompts, labels, strict=True))
    ]
    return wire_request(document, headers, items, pointer="/query")


def reply(response: ScoreResponse) -> dict[str, Any]:
    """rewards: final rewards, no sigmoid. scores: their logistic, for filters that expect 0 to 1."""
    logs = {
        "raw_reward": [score.raw for score in response.scores],
        "truncated": [float("truncated" in score.flags) for score in response.scores],
        "flagged": [float(bool(score.flags)) for score in response.scores],
    }
    if all(score.std is not None for score in response.scores):
        logs["reward_std"] = [score.std for score in response.scores if score.std is not None]
    return {
        "rewards": response.rewards,
        "scores": [logistic(reward) for reward in response.rewards],
        "extra_logs": logs,
    }


def _item(query: str, prompt: str, at: str) -> ScoreInput:
    if not prompt:
        return text_item(query, at)
    aligned = align(query, prompt)
    if aligned is None:
        raise InvalidRecord(
            "does not begin with its prompt, nor with the end of it, so its response is unknown; send in `prompts` "
            "the text that the query begins with, or an empty prompt to score the query as text.",
            pointer=at,
        )
    item = pair_item(prompt, aligned.response, at)
    return item if aligned.is_exact else dataclasses.replace(item, flags=(*item.flags, "aligned"))


WIRES = (Wire("/compat/openrlhf/{endpoint}/get_reward", parse, reply),)

"""OpenAI's moderations: {"model", "input"} -> {"results": [{"flagged", "categories", "category_scores"}]}.

An input is a text, or a list of texts; each is what the agent would say, alone. It is flagged unless the endpoint's
guard allows it. The categories are the endpoint's: each of its policy checks by name, and `reward` for what a guard
asks a person about because of the reward; their scores are 1 or 0.
"""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from apps.rewards.guard_log import GuardResult
from apps.rewards.serving.guard import PROBABILITY, decide, policy_checks_of
from apps.rewards.serving.requests import ScoreRequest, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.wire.protocol import Wire, endpoint_of, filled, text, wire_request
from workers.errors import InvalidRecord
from workers.schema.rendered_items import parse_scored_item

REWARD = "reward"  # the category of what no check decided


def parse(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    document = read_document(body)
    value = document.get("input")
    is_list = not isinstance(value, str)
    texts = filled(value, "/input") if is_list else [value]
    items = [
        parse_scored_item(
            {"messages": [{"role": "assistant", "content": _text(each, f"/input/{place}")}]}, pointer=""
        )
        for place, each in enumerate(texts)
    ]
    return wire_request(
        document,
        headers,
        items,
        endpoint=endpoint_of(document),
        pointer="/input" if is_list else None,
        same_version=True,
    )


def reply(response: ScoreResponse) -> dict[str, Any]:
    names = [check.name for check in policy_checks_of(response)]
    settings = None if response.spec is None else response.spec.guard
    if settings is not None and settings.has_probability:
        names.append(PROBABILITY)
    return {
        "id": f"modr-{uuid4().hex}",
        "model": response.endpoint,
        "results": [_result(names, decision) for decision in response.guards],
    }


def _result(names: list[str], decision: GuardResult) -> dict[str, Any]:
    broken = {each["rule"] for each in decision.violations} | {decision.rule}
    categories = {name: name in broken for name in names}
    categories[REWARD] = decision.decision == "ask" and decision.rule is None
    return {
        "flagged": decision.decision != "allow",
        "categories": categories,
        "category_scores": {name: float(is_broken) for name, is_broken in categories.items()},
        "category_applied_input_types": {name: ["text"] for name in categories},
        "decision": decision.decision,
        "reason": decision.reason,
    }


def _text(value: Any, at: str) -> str:
    if isinstance(value, dict):
        if value.get("type") != "text":
            raise InvalidRecord("is no text; the guard reads texts only.", pointer=at)
        return text(value.get("text"), f"{at}/text")
    return text(value, at)


WIRES = (Wire("/compat/openai/v1/moderations", parse, reply, finish=decide),)

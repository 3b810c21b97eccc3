"""Spans as Agent-Lightning's store keeps them (agentlightning 0.3, `Span.model_dump_json()`), one a line or in a list.

A span has `rollout_id`, `attempt_id` and `sequence_id` next to its own ids, and times in seconds. The spans of an
attempt have several trace ids: that of the reward which a rollout returns is drawn at random. The attempt is the run.

Rewards are attributes, `agentlightning.reward.N.name` and `.value`, of which the first is the primary one. The last
span that has any is the final reward, as Agent-Lightning's own `find_final_reward` has it. Where that one is no finite
number (pydantic writes NaN as null), the attempt has no reward, and not an earlier one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from apps.trajectories.formats.stated import is_finite

_MOST_REWARDS = 1000


def is_stored_span(given: Mapping[str, Any]) -> bool:
    return all(isinstance(given.get(key), str) and given[key] for key in ("rollout_id", "attempt_id"))


def attempt_name(given: Mapping[str, Any]) -> str:
    """What stands for the trace: the rollout and the attempt."""
    return f"{given['rollout_id']}/{given['attempt_id']}"[:128]


def reward_facts(given: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """{"reward": the primary one, "rewards": {name: value} where there are several, "order": of the span}, or {}. None
    in place of a reward that is no finite number."""
    rewards: dict[str, float | None] = {}
    for number in range(_MOST_REWARDS):
        key = f"agentlightning.reward.{number}.value"
        if key not in attributes:
            break
        name = str(attributes.get(f"agentlightning.reward.{number}.name", number))
        rewards[name] = _number(attributes[key])
    if not rewards:
        return {}
    order = given.get("sequence_id")
    facts = {"reward": next(iter(rewards.values())), "order": order if isinstance(order, int) else 0}
    return facts | ({"rewards": rewards} if len(rewards) > 1 else {})


def final_reward(spans: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Of the spans of an attempt, the reward that came last, without its place."""
    found = [span["final"] for span in spans if isinstance(span.get("final"), dict)][
        ::-1
    ]  # `max` takes the first
    last: dict[str, Any] = max(found, key=lambda facts: int(facts["order"]), default={})
    return {key: value for key, value in last.items() if key != "order"}


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)
    return float(value) if is_number else None

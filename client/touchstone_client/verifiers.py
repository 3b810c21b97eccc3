"""A reward for environments of `verifiers` (Prime Intellect), version 0.4 and its `verifiers.v1`: a file that holds

    from touchstone_client import verifiers_reward

    reward = verifiers_reward(URL, ENDPOINT, KEY)

is plugged into any taskset with `--env.taskset.task.rewards.NAME.fn reward.py:reward`. In a task, await it in a method
with `@vf.reward`. verifiers calls f(task, trace) at the end of each rollout, many of them concurrently.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from touchstone_client.pool import Pool
from touchstone_client.retries import PATIENT, Retries
from touchstone_client.transport import Key
from touchstone_client.values import Item, conditions_of, reference_of

VerifiersReward = Callable[[Any, Any], Awaitable[float]]


def verifiers_reward(
    url: str,
    endpoint: str,
    key: Key,
    *,
    reference: str | None = None,
    run: str | None = None,
    version: int | None = None,
    retries: Retries = PATIENT,
) -> VerifiersReward:
    """Concurrent rollouts are sent in one request.

    reference: the field of the task's data that is sent as the reference answer; its fields `goal`,
    `principle` and `persona` are sent as those. version: the only revision of the endpoint that may answer. Raises
    RewardServiceError, which verifiers records as the error of the rollout.
    """
    pool = Pool(url, endpoint, key, run=run, version=version, retries=retries)

    async def reward(task: Any, trace: Any) -> float:
        """task: the task's data. Records `raw_reward`, `uncertain`, `truncated` and `flagged` as metrics."""
        result = await pool.score(to_item(task, trace.messages, reference))
        trace.record_metrics(
            {
                "raw_reward": result.raw,
                "uncertain": float("uncertain" in result.flags),
                "truncated": float("truncated" in result.flags),
                "flagged": float(bool(result.flags)),
            }
        )
        return result.reward

    return reward


def to_item(data: Any, messages: Sequence[Any], reference: str | None = None) -> Item:
    """data: a `TaskData`. messages: of `verifiers.v1.types`. Raises ValueError where the agent wrote nothing, or the
    data has no field of that name."""
    values: Mapping[str, Any] = data.model_dump()
    if reference is not None and reference not in values:
        raise ValueError(
            f"the task's data has no field {reference!r} for the reference answer; it has {', '.join(values)}"
        )
    converted = [to_message(message) for message in messages]
    if not any(message["role"] == "assistant" for message in converted):
        raise ValueError(f"the trace has {len(converted)} messages and none of the agent: nothing to score")
    conditions = conditions_of(values) | (reference_of(values[reference]) if reference else {})
    return {"messages": converted} | conditions


def to_message(message: Any) -> dict[str, Any]:
    """As OpenAI has it: verifiers keeps a tool call's name and arguments next to its id, not under `function`.

    The provider's own state (`provider_state`) is left out: it is opaque, often encrypted.
    """
    values: dict[str, Any] = message.model_dump(exclude_none=True, exclude={"provider_state"})
    if calls := values.pop("tool_calls", None):
        values["tool_calls"] = [_to_call(call) for call in calls]
    if values["role"] == "assistant":
        values.setdefault("content", None)
    return values


def _to_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """A custom tool's input is free text; it is sent as the arguments, which need not be JSON."""
    space = call.get("namespace")
    name = f"{space}.{call['name']}" if space else call["name"]
    return {"id": call["id"], "type": "function", "function": {"name": name, "arguments": call["arguments"]}}

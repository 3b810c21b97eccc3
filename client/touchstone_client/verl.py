"""A reward function for verl: `custom_reward_function.path` and `.name` of a file that holds

    from touchstone_client import verl_compute_score

    compute_score = verl_compute_score(URL, ENDPOINT, KEY)

verl calls f(data_source, solution_str, ground_truth, extra_info, **kwargs) for each sample, and awaits what is a
coroutine function.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from touchstone_client.pool import Pool
from touchstone_client.retries import PATIENT, Retries
from touchstone_client.transport import Key
from touchstone_client.values import Item

ComputeScore = Callable[..., Awaitable[dict[str, Any]]]


def verl_compute_score(
    url: str,
    endpoint: str,
    key: Key,
    *,
    prompt: str = "prompt",
    run: str | None = None,
    retries: Retries = PATIENT,
) -> ComputeScore:
    """prompt: the key of `extra_info` under which a sample has its prompt (text or messages); without one the solution
    is scored as text. Concurrent samples are sent in one request. The ground truth is sent as the reference if it
    is text.
    """
    pool = Pool(url, endpoint, key, run=run, retries=retries)

    async def compute_score(
        data_source: str = "",
        solution_str: str = "",
        ground_truth: Any = None,
        extra_info: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """{"score": reward, "raw_reward": ..., "uncertain": 0 or 1, ...}: verl logs all but the score."""
        result = await pool.score(to_item(solution_str, ground_truth, extra_info or {}, prompt))
        return {
            "score": result.reward,
            "raw_reward": result.raw,
            "uncertain": float("uncertain" in result.flags),
            "truncated": float("truncated" in result.flags),
        }

    return compute_score


def to_item(solution: str, truth: Any, extra: Mapping[str, Any], prompt: str) -> Item:
    reference = {"reference": truth} if isinstance(truth, str) else {}
    asked = extra.get(prompt)
    if asked is None:
        return {"text": solution} | reference
    messages = asked if isinstance(asked, str) else [dict(message) for message in asked]
    return {"prompt": messages, "response": solution} | reference

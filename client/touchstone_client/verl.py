"""A reward function for verl: `custom_reward_function.path` and `.name` of a file that holds

    from touchstone_client import verl_compute_score

    compute_score = verl_compute_score(URL, ENDPOINT, KEY)

verl calls f(data_source, solution_str, ground_truth, extra_info, **kwargs) for each sample, and awaits what is a
coroutine function.
"""

import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from touchstone_client.pool import Pool
from touchstone_client.retries import PATIENT, Retries
from touchstone_client.rewards import RewardClient
from touchstone_client.transport import Key
from touchstone_client.values import Item, Result, conditions_of, plain, reference_of

ComputeScore = Callable[..., Awaitable[dict[str, Any]]]
SyncComputeScore = Callable[..., dict[str, Any]]
BatchComputeScore = Callable[..., list[dict[str, Any]]]


def verl_compute_score(
    url: str,
    endpoint: str,
    key: Key,
    *,
    prompt: str = "prompt",
    messages: str | None = None,
    run: str | None = None,
    version: int | None = None,
    retries: Retries = PATIENT,
) -> ComputeScore:
    """prompt: the key of `extra_info` under which a sample has its prompt (text or messages); without one the solution
    is scored as text. messages: the key under which an agent loop puts the whole conversation, with tool calls and
    their results, as OpenAI messages (`extra_fields` of its output); it is then scored instead of prompt and solution.
    Concurrent samples are sent in one request. The ground truth is sent as the reference, as JSON
    if it is no text; what `extra_info` has under `goal`, `principle` and `persona` as those. version: the only revision
    of the endpoint that may answer.
    """
    pool = Pool(url, endpoint, key, run=run, version=version, retries=retries)

    async def compute_score(
        data_source: str = "",
        solution_str: str = "",
        ground_truth: Any = None,
        extra_info: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """{"score": reward, "raw_reward": ..., "uncertain": 0 or 1, ...}: verl logs all but the score."""
        return to_reply(
            await pool.score(to_item(solution_str, ground_truth, extra_info or {}, prompt, messages))
        )

    return compute_score


def verl_compute_score_sync(
    url: str,
    endpoint: str,
    key: Key,
    *,
    prompt: str = "prompt",
    messages: str | None = None,
    run: str | None = None,
    version: int | None = None,
    retries: Retries = PATIENT,
) -> SyncComputeScore:
    """As verl_compute_score, for verl's synchronous reward managers (`verl/workers/reward_manager`), which do not await
    what they call: one request for each sample."""
    client = RewardClient(url, endpoint, key, run=run, version=version, retries=retries)

    def compute_score(
        data_source: str = "",
        solution_str: str = "",
        ground_truth: Any = None,
        extra_info: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        item = to_item(solution_str, ground_truth, extra_info or {}, prompt, messages)
        (result,) = client.score([item]).results
        return to_reply(result)

    weakref.finalize(compute_score, client.close)
    return compute_score


def verl_compute_score_batch(
    url: str,
    endpoint: str,
    key: Key,
    *,
    prompt: str = "prompt",
    messages: str | None = None,
    run: str | None = None,
    version: int | None = None,
    retries: Retries = PATIENT,
) -> BatchComputeScore:
    """As verl_compute_score, for verl's reward manager `batch`, which calls it once for all samples: one request."""
    client = RewardClient(url, endpoint, key, run=run, version=version, retries=retries)

    def compute_score(
        data_sources: Sequence[str],
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Sequence[Mapping[str, Any] | None],
        **more: Any,
    ) -> list[dict[str, Any]]:
        items = [
            to_item(solution, truth, extra or {}, prompt, messages)
            for solution, truth, extra in zip(solution_strs, ground_truths, extra_infos, strict=True)
        ]
        return [to_reply(result) for result in client.score(items).results]

    weakref.finalize(compute_score, client.close)
    return compute_score


def to_reply(result: Result) -> dict[str, Any]:
    """flagged: whether the result has any flag; see the documentation of the trainer guides for what they say."""
    return {
        "score": result.reward,
        "raw_reward": result.raw,
        "uncertain": float("uncertain" in result.flags),
        "truncated": float("truncated" in result.flags),
        "flagged": float(bool(result.flags)),
    }


def to_item(
    solution: str, truth: Any, extra: Mapping[str, Any], prompt: str, messages: str | None = None
) -> Item:
    """Raises ValueError where `messages` names a key and a sample has no conversation under it."""
    reference = reference_of(truth) | conditions_of(extra)
    if messages is not None:
        conversation = plain(extra.get(messages))
        if not isinstance(conversation, list) or not conversation:
            raise ValueError(
                f"extra_info[{messages!r}] has no messages; the agent loop has to put the conversation into "
                f"extra_fields[{messages!r}] of its output"
            )
        return {"messages": _messages(conversation)} | reference
    asked = plain(extra.get(prompt))
    if asked is None:
        return {"text": solution} | reference
    return {"prompt": asked if isinstance(asked, str) else _messages(asked), "response": solution} | reference


def _messages(asked: Any) -> Any:
    """Messages without the empty fields that Arrow gives all rows of a column."""
    if not isinstance(asked, list):
        return asked
    return [
        {key: value for key, value in message.items() if value is not None or key == "content"}
        if isinstance(message, Mapping)
        else message
        for message in asked
    ]

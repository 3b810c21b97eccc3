"""A reward script for OpenRLHF: `--reward.remote_url reward.py` (or `--remote_rm_url`) with a file that holds

    from touchstone_client import openrlhf_reward_func

    reward_func = openrlhf_reward_func(URL, ENDPOINT, KEY)

OpenRLHF calls f(queries, prompts, labels) and reads `rewards`, `scores` and `extra_logs`. Without a script its own HTTP
client calls `/compat/openrlhf/ENDPOINT/get_reward?key=KEY`, for the same rewards.
"""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from touchstone_client.retries import PATIENT, Retries
from touchstone_client.rewards import RewardClient
from touchstone_client.transport import Key
from touchstone_client.values import Item, Result

RewardFunc = Callable[..., dict[str, Any]]
_LONGEST_MARK = 64  # a tokenizer may put its beginning-of-text mark before the prompt


def openrlhf_reward_func(
    url: str, endpoint: str, key: Key, *, run: str | None = None, retries: Retries = PATIENT
) -> RewardFunc:
    """The response is the query without its prompt; with an empty prompt the query is scored as text."""
    client = RewardClient(url, endpoint, key, run=run, retries=retries)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **more: Any
    ) -> dict[str, Any]:
        items = [
            to_item(query, prompt, label)
            for query, prompt, label in zip(queries, prompts, labels, strict=True)
        ]
        return to_reply(client.score(items, steps=False).results)

    weakref.finalize(reward_func, client.close)
    return reward_func


def to_item(query: str, prompt: str, label: Any) -> Item:
    """Raises ValueError where the query does not begin with its prompt."""
    reference = {"reference": label} if isinstance(label, str) else {}
    if not prompt:
        return {"text": query} | reference
    start = query.find(prompt)
    if not 0 <= start <= _LONGEST_MARK:
        raise ValueError("the query does not begin with its prompt, so its response is unknown")
    return {"prompt": prompt, "response": query[start + len(prompt) :]} | reference


def to_reply(results: Sequence[Result]) -> dict[str, Any]:
    """rewards: tensors where torch is installed, as OpenRLHF's examples return them; else lists."""
    rewards = [result.reward for result in results]
    logs = {
        "raw_reward": [result.raw for result in results],
        "truncated": [float("truncated" in result.flags) for result in results],
    }
    tensor = _tensor()
    return {
        "rewards": tensor(rewards),
        "scores": tensor([_logistic(reward) for reward in rewards]),
        "extra_logs": {name: tensor(values) for name, values in logs.items()},
    }


def _tensor() -> Callable[[list[float]], Any]:
    try:
        import torch
    except ImportError:
        return list
    return torch.tensor


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))

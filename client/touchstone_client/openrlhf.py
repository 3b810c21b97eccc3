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

from touchstone_client.alignment import align
from touchstone_client.retries import PATIENT, Retries
from touchstone_client.rewards import RewardClient
from touchstone_client.transport import Key
from touchstone_client.values import Item, Result, label_values

RewardFunc = Callable[..., dict[str, Any]]


def openrlhf_reward_func(
    url: str,
    endpoint: str,
    key: Key,
    *,
    run: str | None = None,
    version: int | None = None,
    retries: Retries = PATIENT,
) -> RewardFunc:
    """The response is the query without its prompt; with an empty prompt the query is scored as text.

    A label that is an object with keys of `reference`, `goal`, `principle` and `persona` is sent as these, any other
    as the reference. version: the only revision of the endpoint that may answer.
    """
    client = RewardClient(url, endpoint, key, run=run, version=version, retries=retries)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **more: Any
    ) -> dict[str, Any]:
        items, inexact = [], []
        for query, prompt, label in zip(queries, prompts, labels, strict=True):
            item, is_exact = to_item(query, prompt, label)
            items.append(item)
            inexact.append(not is_exact)
        return to_reply(client.score(items, steps=False).results, inexact)

    weakref.finalize(reward_func, client.close)
    return reward_func


def to_item(query: str, prompt: str, label: Any) -> tuple[Item, bool]:
    """The item, and whether the query has its prompt letter for letter. Raises ValueError where it does not begin with
    its prompt."""
    values = label_values(label)
    if not prompt:
        return {"text": query} | values, True
    aligned = align(query, prompt)
    if aligned is None:
        raise ValueError(
            "the query does not begin with its prompt, nor with the end of it, so its response is unknown"
        )
    return {"prompt": prompt, "response": aligned.response} | values, aligned.is_exact


def to_reply(results: Sequence[Result], inexact: Sequence[bool]) -> dict[str, Any]:
    """rewards: tensors where torch is installed, as OpenRLHF's examples return them; else lists. inexact: which queries
    were aligned with their prompts."""
    rewards = [result.reward for result in results]
    logs = {
        "raw_reward": [result.raw for result in results],
        "truncated": [float("truncated" in result.flags) for result in results],
        "flagged": [
            float(bool(result.flags) or aligned) for result, aligned in zip(results, inexact, strict=True)
        ],
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

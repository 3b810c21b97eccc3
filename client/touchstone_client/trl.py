"""Reward functions for TRL's trainers (GRPO, RLOO, ...): `reward_funcs=[trl_reward(url, endpoint, key)]`.

TRL calls f(prompts=..., completions=..., completion_ids=..., trainer_state=..., **columns) and takes a list of floats.
Conversational prompts and completions are message lists; both go to the endpoint as they are.
"""

import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from touchstone_client.retries import PATIENT, Retries
from touchstone_client.rewards import AsyncRewardClient, RewardClient
from touchstone_client.transport import Key
from touchstone_client.values import CONDITIONS, Item, conditions_of, reference_of

RewardFunction = Callable[..., list[float]]
AsyncRewardFunction = Callable[..., Awaitable[list[float]]]


def trl_reward(
    url: str,
    endpoint: str,
    key: Key,
    *,
    run: str | None = None,
    name: str | None = None,
    reference: str | None = None,
    version: int | None = None,
    retries: Retries = PATIENT,
) -> RewardFunction:
    """name: under which TRL logs the rewards; the endpoint's by default. Connections live as long as it.

    reference: the column of the dataset whose values are sent as references, for endpoints that use them; a row whose
    value is None has none. Columns named `goal`, `principle` and `persona` are sent as those. version: the
    only revision of the endpoint that may answer.
    """
    client = RewardClient(url, endpoint, key, run=run, version=version, retries=retries)

    def reward(
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None = None,
        trainer_state: Any = None,
        **columns: Any,
    ) -> list[float]:
        items = to_items(prompts, completions, columns[reference] if reference else None, columns)
        policy = policy_of(trainer_state)
        return client.score(items, steps=False, uncertainty=False, policy_version=policy).rewards

    reward.__name__ = reward.__qualname__ = name or endpoint
    weakref.finalize(reward, client.close)
    return reward


def trl_reward_async(
    url: str,
    endpoint: str,
    key: Key,
    *,
    run: str | None = None,
    name: str | None = None,
    reference: str | None = None,
    version: int | None = None,
    retries: Retries = PATIENT,
) -> AsyncRewardFunction:
    """As trl_reward; TRL awaits several such functions concurrently."""

    async def reward(
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None = None,
        trainer_state: Any = None,
        **columns: Any,
    ) -> list[float]:
        items = to_items(prompts, completions, columns[reference] if reference else None, columns)
        policy = policy_of(trainer_state)
        # One client for each call: connections do not outlive their event loop.
        async with AsyncRewardClient(url, endpoint, key, run=run, version=version, retries=retries) as client:
            return (await client.score(items, steps=False, uncertainty=False, policy_version=policy)).rewards

    reward.__name__ = reward.__qualname__ = name or endpoint
    return reward


def to_items(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    references: Sequence[Any] | None = None,
    columns: Mapping[str, Any] | None = None,
) -> list[Item]:
    """One item for each completion. columns: of the dataset, of which those named as conditions are sent. Raises
    ValueError when there is not a prompt (and reference) for each."""
    if len(prompts) != len(completions):
        raise ValueError(f"{len(prompts)} prompts for {len(completions)} completions")
    items = [
        {"prompt": prompt, "response": completion}
        for prompt, completion in zip(prompts, completions, strict=True)
    ]
    known = {name: columns[name] for name in CONDITIONS if columns is not None and name in columns}
    for place, item in enumerate(items):
        item |= conditions_of({name: values[place] for name, values in known.items()})
    if references is None:
        return list(items)
    return [item | reference_of(reference) for item, reference in zip(items, references, strict=True)]


def policy_of(trainer_state: Any) -> str | None:
    """The policy's version: the trainer's step."""
    step = getattr(trainer_state, "global_step", None)
    return None if step is None else f"step-{step}"

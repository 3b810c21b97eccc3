"""One conversation, scored as a trainer would: over HTTP, by the client."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from touchstone_client import Result, RewardClient, RewardServiceError

from apps.core.errors import DomainError
from apps.demo.world import actions_of, hidden_reward
from apps.rewards.models import EndpointRevision
from workers.schema import Trajectory, to_messages

PICK_UP_SECONDS = 60.0


@dataclass(frozen=True)
class ScoredTrajectory:
    """body: a request of the same kind, short enough to be printed."""

    name: str
    actions: list[str]
    result: Result
    hidden: float
    body: dict[str, Any]


def score_trajectory(
    url: str, key: str, revision: EndpointRevision, trajectory: Trajectory, *, check: Callable[[], None]
) -> ScoredTrajectory:
    """Wait until the service has this revision, then score. check: raises when a process died."""
    messages = to_messages(trajectory)
    with RewardClient(url, revision.endpoint.name, key) as client:
        _await_revision(client, revision, check)
        try:
            scores = client.score([{"messages": messages}], version=revision.number)
        except RewardServiceError as error:
            raise DomainError(f"Scoring over HTTP failed: {error}") from error
    result = scores.results[0]
    actions = actions_of(messages)
    if not math.isfinite(result.reward) or len(result.steps or ()) != len(actions):
        raise DomainError(f"Expected a finite reward and {len(actions)} step rewards, got {result}.")
    opening = next(message for message in messages if message["role"] == "user")
    short = [opening, {"role": "assistant", "content": "Thank you for writing, I am looking into it."}]
    body = {"inputs": [{"messages": short}], "steps": True}
    return ScoredTrajectory(
        trajectory.id or "", actions, result, hidden_reward(messages, trajectory.task.id), body
    )


def _await_revision(client: RewardClient, revision: EndpointRevision, check: Callable[[], None]) -> None:
    """The service hears of a deployment within moments; until then it answers with the one before, or not at all."""
    deadline = time.monotonic() + PICK_UP_SECONDS
    while True:
        try:
            said = f"revision {(found := client.describe()['version'])}"
            if found == revision.number:
                return
        except RewardServiceError as error:
            said = str(error)
        if time.monotonic() > deadline:
            raise DomainError(
                f"{revision.endpoint.name} does not serve revision {revision.number} "
                f"after {PICK_UP_SECONDS:.0f} s: {said}"
            )
        check()
        time.sleep(0.5)

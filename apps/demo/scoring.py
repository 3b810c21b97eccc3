"""Conversations, scored as a trainer would: over HTTP, by the client."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from touchstone_client import Result, RewardClient, RewardServiceError

from apps.core.errors import DomainError
from apps.demo.world import actions_of, hidden_reward
from apps.rewards.models import EndpointRevision
from workers.schema import PreferenceRecord, Trajectory, to_messages

PICK_UP_SECONDS = 60.0
MOST_COMPARISONS = 40


@dataclass(frozen=True)
class ScoredTrajectory:
    name: str
    actions: list[str]
    result: Result
    hidden: float


@dataclass(frozen=True)
class ScoredPair:
    """Two trajectories of one task, the one with the higher reward first."""

    higher: ScoredTrajectory
    lower: ScoredTrajectory

    @property
    def lead(self) -> float:
        """By how much the hidden reward is higher too; below 0 where the model is wrong."""
        return self.higher.hidden - self.lower.hidden


@dataclass(frozen=True)
class DemoScores:
    """right: a pair on which the model and the hidden reward agree; wrong: one on which they do not, None where the
    model is never wrong. body: a request of the same kind, short enough to be printed."""

    count: int
    right: ScoredPair
    wrong: ScoredPair | None
    body: dict[str, Any]


def score_comparisons(
    url: str,
    key: str,
    revision: EndpointRevision,
    preferences: Sequence[PreferenceRecord],
    *,
    check: Callable[[], None],
) -> DemoScores:
    """Wait until the service has this revision, then score the first comparisons. check: raises when a process died.
    Raises DomainError."""
    compared = [(record.a, record.b) for record in preferences[:MOST_COMPARISONS]]
    with RewardClient(url, revision.endpoint.name, key) as client:
        _await_revision(client, revision, check)
        try:
            items = [{"messages": to_messages(each)} for pair in compared for each in pair]
            results = client.score(items, version=revision.number).results
        except RewardServiceError as error:
            raise DomainError(f"Scoring over HTTP failed: {error}") from error
    pairs = [
        _pair(_scored(a, results[2 * place]), _scored(b, results[2 * place + 1]))
        for place, (a, b) in enumerate(compared)
    ]
    right, wrong = (pick(pairs, key=lambda pair: pair.lead) for pick in (max, min))
    if right.lead <= 0:
        raise DomainError("The rewards order none of the held-out comparisons as the hidden reward does.")
    opening = next(message for message in to_messages(compared[0][0]) if message["role"] == "user")
    short = [opening, {"role": "assistant", "content": "Thank you for writing, I am looking into it."}]
    body = {"inputs": [{"messages": short}], "steps": True}
    return DemoScores(len(items), right, wrong if wrong.lead < 0 else None, body)


def _scored(trajectory: Trajectory, result: Result) -> ScoredTrajectory:
    messages = to_messages(trajectory)
    actions = actions_of(messages)
    if not math.isfinite(result.reward) or len(result.steps or ()) != len(actions):
        raise DomainError(f"Expected a finite reward and {len(actions)} step rewards, got {result}.")
    return ScoredTrajectory(trajectory.id or "", actions, result, hidden_reward(messages, trajectory.task.id))


def _pair(a: ScoredTrajectory, b: ScoredTrajectory) -> ScoredPair:
    return ScoredPair(a, b) if a.result.reward >= b.result.reward else ScoredPair(b, a)


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

"""External verifiers: HTTP services of an endpoint's spec, called through the guard of outgoing calls."""

import asyncio
import logging
import math
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus

import msgspec

from apps.core.errors import DomainError
from apps.core.http import outgoing
from apps.core.http.outgoing import CallLimits, NoReply
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.thread_pools import OwnerPools
from workers.engine import Overloaded, VerifierScore, Verify
from workers.schema import ScoreInput, item_json
from workers.schema.components import Verifier

logger = logging.getLogger(__name__)
CONCURRENT_CALLS = 16  # requests to the verifiers of a project
MOST_WAITING = 1000  # requests of a project
_SOON = 5  # seconds
MOST_BYTES = 2**20  # of an answer
RETRY_AFTER = {"Retry-After": f"{_SOON}"}


class _VerifierReply(msgspec.Struct, frozen=True):
    rewards: list[float]
    steps: list[list[float] | None] | None = None


class Verifiers:
    """Asks them in a thread pool for each project. On the event loop only."""

    def __init__(self) -> None:
        self._pools = OwnerPools[str]("touchstone-verifier", CONCURRENT_CALLS)

    def verifier(self, project: str) -> Verify:
        """The function that asks the verifiers of a project's endpoints."""
        return partial(self._ask, project)

    async def _ask(
        self, project: str, verifier: Verifier, items: Sequence[ScoreInput]
    ) -> list[VerifierScore]:
        """A verdict for each item. Raises Problem 503 without a reply, 502 for an invalid one: never a guess.
        Overloaded where too many wait."""
        pool = self._pools.get(project)
        if pool.waiting >= MOST_WAITING:
            raise Overloaded(
                f"{pool.waiting} requests of the project {project} are waiting for its verifiers; the limit is "
                f"{MOST_WAITING}. Try again in {_SOON} s, with fewer items.",
                retry_after=_SOON,
            )
        with pool.holding(1):
            return await asyncio.get_running_loop().run_in_executor(pool.threads, ask, verifier, items)

    def close(self) -> None:
        self._pools.close()


def ask(verifier: Verifier, items: Sequence[ScoreInput]) -> list[VerifierScore]:
    body = msgspec.json.encode({"inputs": [item_json(item) for item in items]})
    try:
        answer = _post(verifier, body)
    except DomainError as error:
        logger.warning("the verifier %s does not respond: %r", verifier.name, error)
        raise Problem(
            f"The verifier {verifier.name} does not respond: {error.message} Without it there is no reward. Try again "
            "shortly.",
            status=503,
            headers=RETRY_AFTER,
        ) from error
    verdicts = _verdicts(answer, items)
    if verdicts is None:
        logger.warning("the verifier %s gave an invalid reply: %.200r", verifier.name, answer)
        raise Problem(
            f"The verifier {verifier.name} did not reply with a finite number for each of {len(items)} items: "
            'it must send {"rewards": [number, ...]}, and if it sends "steps", for each item null or a number for each '
            "agent step, which sum to its reward.",
            status=502,
            headers=RETRY_AFTER,
        )
    return verdicts


def _post(verifier: Verifier, body: bytes) -> bytes:
    limits = CallLimits(seconds=verifier.timeout_seconds, body=MOST_BYTES)
    headers = {"Content-Type": "application/json"}
    reply = outgoing.request("POST", verifier.url, body=body, headers=headers, limits=limits)
    if not HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        raise NoReply(f"It answered {reply.status}.")
    return reply.body


def _verdicts(answer: bytes, items: Sequence[ScoreInput]) -> list[VerifierScore] | None:
    """None for a reply that is not a finite number for each item, or whose steps do not fit."""
    try:
        reply = msgspec.json.decode(answer, type=_VerifierReply)
    except (ValueError, RecursionError):  # of msgspec, and of bytes that are no text
        return None
    steps = [None] * len(items) if reply.steps is None else reply.steps
    if not len(reply.rewards) == len(steps) == len(items) or not all(map(math.isfinite, reply.rewards)):
        return None
    for reward, parts, item in zip(reply.rewards, steps, items, strict=True):
        if parts is not None and not (
            len(parts) == item.step_count and math.isclose(sum(parts), reward, rel_tol=1e-6, abs_tol=1e-6)
        ):
            return None
    return [
        VerifierScore(reward, None if parts is None else tuple(parts))
        for reward, parts in zip(reply.rewards, steps, strict=True)
    ]

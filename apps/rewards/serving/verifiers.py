"""External verifiers: HTTP services of an endpoint's spec, called through the guard of outgoing calls."""

import asyncio
import logging
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
import msgspec

from apps.core import outgoing
from apps.core.errors import DomainError
from apps.rewards.serving.problems import Problem
from workers.schema import Item, item_json
from workers.schema.endpoints import Verifier

logger = logging.getLogger(__name__)
AT_ONCE = 16
MOST_BYTES = 2**20  # of an answer
RETRY_AFTER = {"Retry-After": "5"}


class Verifiers:
    """Asks them in threads of its own: one that hangs holds up nobody but those who wait for it."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="touchstone-verifier")

    async def __call__(self, verifier: Verifier, items: Sequence[Item]) -> list[float]:
        """A number for each item. Raises Problem 503 where there is no answer, 502 where it is none: never a guess."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, ask, verifier, items)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def ask(verifier: Verifier, items: Sequence[Item]) -> list[float]:
    body = msgspec.json.encode({"inputs": [item_json(item) for item in items]})
    try:
        answer = _post(verifier, body)
    except (httpx.HTTPError, DomainError) as error:
        logger.warning("the verifier %s does not answer: %r", verifier.name, error)
        raise Problem(
            f"The verifier {verifier.name} does not answer ({type(error).__name__}: {error}); without it there is no "
            "reward. Try again shortly.",
            status=503,
            headers=RETRY_AFTER,
        ) from error
    rewards = _rewards(answer)
    if rewards is None or len(rewards) != len(items):
        logger.warning("the verifier %s answered what is none: %.200r", verifier.name, answer)
        raise Problem(
            f"The verifier {verifier.name} did not answer with a finite number for each of {len(items)} items: "
            '{"rewards": [number, ...]} is what it is to send.',
            status=502,
            headers=RETRY_AFTER,
        )
    return rewards


def _post(verifier: Verifier, body: bytes) -> bytes:
    headers = {"Content-Type": "application/json"}
    with outgoing.client() as http:
        timeout = httpx.Timeout(verifier.timeout_seconds)
        with http.stream("POST", verifier.url, content=body, headers=headers, timeout=timeout) as reply:
            reply.raise_for_status()
            answer = bytearray()
            for chunk in reply.iter_bytes():
                answer += chunk
                if len(answer) > MOST_BYTES:
                    raise DomainError(f"its answer is over {MOST_BYTES} bytes")
            return bytes(answer)


def _rewards(answer: bytes) -> list[float] | None:
    try:
        found = msgspec.json.decode(answer, type=dict[str, object]).get("rewards")
        rewards = msgspec.convert(found, list[float])
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
        return None
    return rewards if all(map(math.isfinite, rewards)) else None

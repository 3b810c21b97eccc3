"""One decision for a message of the assistant, however many of its calls ask for it."""

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future

from touchstone_client.values import GuardDecision, Item

_SECONDS, _MOST = 60.0, 10_000


def message_key(messages: Sequence[Item], action: Item) -> str:
    text = json.dumps([list(messages), action], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def refusal(decision: GuardDecision) -> str:
    """For the model, in place of what the tool would have returned."""
    rule = f" by the rule {decision.rule!r}" if decision.rule else ""
    if decision.decision == "ask":
        return f"This was not done: a person has to approve it{rule}. {decision.reason}".rstrip()
    return f"This was not done: it was denied{rule}. {decision.reason}".rstrip()


class RecentDecisions:
    """Kept for a minute by the content of the conversation and the action. None that was made without the service."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, tuple[float, Future[GuardDecision]]] = {}

    def decide(self, key: str, ask: Callable[[], GuardDecision]) -> GuardDecision:
        future, is_new = self._future(key)
        if is_new:
            try:
                future.set_result(ask())
            except BaseException as error:
                future.set_exception(error)
        return self._settled(key, future)

    async def decide_async(self, key: str, ask: Callable[[], Awaitable[GuardDecision]]) -> GuardDecision:
        future, is_new = self._future(key)
        if is_new:
            try:
                future.set_result(await ask())
            except BaseException as error:
                future.set_exception(error)
        await asyncio.wait([asyncio.wrap_future(future)])
        return self._settled(key, future)

    def _future(self, key: str) -> tuple[Future[GuardDecision], bool]:
        now = time.monotonic()
        with self._lock:
            if len(self._found) >= _MOST:
                self._found.clear()
            made, future = self._found.get(key, (0.0, None))
            if future is not None and now - made < _SECONDS:
                return future, False
            future = Future()
            self._found[key] = (now, future)
            return future, True

    def _settled(self, key: str, future: Future[GuardDecision]) -> GuardDecision:
        try:
            decision = future.result()
        except BaseException:
            self._forget(key, future)
            raise
        if decision.has_failed:
            self._forget(key, future)
        return decision

    def _forget(self, key: str, future: Future[GuardDecision]) -> None:
        with self._lock:
            if self._found.get(key, (0.0, None))[1] is future:
                del self._found[key]

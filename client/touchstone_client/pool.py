"""Many single items asked for at once, sent together."""

import asyncio
import weakref
from dataclasses import dataclass, field

from touchstone_client.retries import PATIENT, Retries
from touchstone_client.rewards import RewardClient
from touchstone_client.transport import Key
from touchstone_client.values import Item, Result

Waiting = list[tuple[Item, "asyncio.Future[Result]"]]


@dataclass(eq=False)
class _Loop:
    """Who waits on one event loop."""

    waiting: Waiting = field(default_factory=list)
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)


class Pool:
    """`await score(item)` from many tasks: what gathers within `wait_seconds` is one request, of at most `batch` items.

    Raises RewardServiceError, for all items of the request that failed. Requests run in threads on connections that are
    kept: an event loop may end, and the next one go on with them. They are closed when the pool is gone.
    """

    def __init__(
        self,
        url: str,
        endpoint: str,
        key: Key,
        *,
        run: str | None = None,
        policy_version: str | None = None,
        retries: Retries = PATIENT,
        batch: int = 64,
        wait_seconds: float = 0.005,
    ) -> None:
        self._client = RewardClient(
            url, endpoint, key, run=run, policy_version=policy_version, batch=batch, retries=retries
        )
        self._batch, self._wait = batch, wait_seconds
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = weakref.WeakKeyDictionary()
        weakref.finalize(self, self._client.close)

    async def score(self, item: Item) -> Result:
        loop = asyncio.get_running_loop()
        own = self._loops.setdefault(loop, _Loop())
        future: asyncio.Future[Result] = loop.create_future()
        own.waiting.append((item, future))
        if len(own.waiting) == 1:
            loop.call_later(self._wait, self._send, own)
        elif len(own.waiting) >= self._batch:
            self._send(own)
        return await future

    def _send(self, own: _Loop) -> None:
        waiting, own.waiting = own.waiting, []
        if waiting:
            task = asyncio.ensure_future(_answer(self._client, waiting))
            own.tasks.add(task)
            task.add_done_callback(own.tasks.discard)


async def _answer(client: RewardClient, waiting: Waiting) -> None:
    try:
        scores = await asyncio.to_thread(client.score, [item for item, _ in waiting])
    except Exception as error:
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)
        return
    for (_, future), result in zip(waiting, scores.results, strict=True):
        if not future.done():
            future.set_result(result)

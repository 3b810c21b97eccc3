"""Concurrent requests for single items, sent in one request."""

import asyncio
import weakref
from dataclasses import dataclass, field

from touchstone_client.retries import PATIENT, Retries
from touchstone_client.rewards import RewardClient
from touchstone_client.transport import Key
from touchstone_client.values import Item, Result

Waiting = list[tuple[Item, "asyncio.Future[Result]"]]


@dataclass(eq=False)
class _LoopQueue:
    """The requests that wait on one event loop."""

    waiting: Waiting = field(default_factory=list)
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)


class Pool:
    """`await score(item)` from many tasks: items that arrive within `wait_seconds` are one request,
    of at most `batch` items.

    Raises RewardServiceError, for all items of the request that failed. Requests run in threads on kept
    connections, which outlive an event loop and are closed with the pool.
    """

    def __init__(
        self,
        url: str,
        endpoint: str,
        key: Key,
        *,
        run: str | None = None,
        policy_version: str | None = None,
        version: int | None = None,
        retries: Retries = PATIENT,
        batch: int = 64,
        wait_seconds: float = 0.005,
    ) -> None:
        self._client = RewardClient(
            url,
            endpoint,
            key,
            run=run,
            policy_version=policy_version,
            version=version,
            batch=batch,
            retries=retries,
        )
        self._batch, self._wait = batch, wait_seconds
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopQueue] = (
            weakref.WeakKeyDictionary()
        )
        weakref.finalize(self, self._client.close)

    async def score(self, item: Item) -> Result:
        loop = asyncio.get_running_loop()
        queue = self._loops.setdefault(loop, _LoopQueue())
        future: asyncio.Future[Result] = loop.create_future()
        queue.waiting.append((item, future))
        if len(queue.waiting) == 1:
            loop.call_later(self._wait, self._send, queue)
        elif len(queue.waiting) >= self._batch:
            self._send(queue)
        return await future

    def _send(self, queue: _LoopQueue) -> None:
        waiting, queue.waiting = queue.waiting, []
        if waiting:
            task = asyncio.ensure_future(_answer(self._client, waiting))
            queue.tasks.add(task)
            task.add_done_callback(queue.tasks.discard)


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

"""One thread computes for all models; callers hand it rendered items and wait for a future.

Micro-batches are filled to a budget of tokens, one model and set of criteria at a time, in the order of `fair_order`:
oldest first of one caller, callers in turn; and with the first item those of its caller with the same prefix. An idle
thread waits a few milliseconds for more items; a busy one takes what has arrived meanwhile. Equal items of a caller
wait for one computation.
"""

import itertools
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from workers.engine.duplicate_cache import DuplicateCache, Key
from workers.engine.fair_order import NO_CALLER, Caller, FairOrder
from workers.engine.protocol import ModelScore, RenderedInput, Scorer
from workers.errors import RewardError, Unavailable

logger = logging.getLogger(__name__)

_LEAST_PART = 8  # of the budget, that a batch has where more waits
_served_numbers = itertools.count(1)


class Overloaded(RewardError):
    """More tokens are waiting than the limit. retry_after: seconds until there is probably room."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(eq=False, slots=True)
class ServedModel:
    """A model and what belongs to its serving. name: `project/name@version`.

    cache: what the model keeps between batches, with a `forget` for when it is no longer served; or None.
    own_batcher: for a model that another server computes.
    number: of this process alone, and never used again; an `id()` is, so a later model would get the cached scores of
    one that is gone.
    """

    name: str
    model: Scorer
    cache: Any = None
    own_batcher: "Batcher | None" = None
    number: int = field(default_factory=lambda: next(_served_numbers), init=False)


@dataclass(eq=False, slots=True)
class _Request:
    """Some items of one caller; `future` is done when the last of them is, or with the first error."""

    results: list[ModelScore | None]
    missing: int
    future: "Future[list[ModelScore]]" = field(default_factory=Future)


_Queue = tuple[int, tuple[str, ...]]
_Family = tuple[Caller, bytes]
_Pending = tuple[Caller, Key]  # no caller waits for another caller's place in the queue


@dataclass(eq=False, slots=True)
class _Entry:
    """One computation, and the requests that wait for it, each with the place of the item in it.

    turn: of FairOrder. order: of arrival.
    """

    turn: float
    order: int
    caller: Caller
    served: ServedModel
    rendered: RenderedInput
    criteria: tuple[str, ...]
    waiters: list[tuple[_Request, int]]
    at: float = field(default_factory=time.monotonic)

    @property
    def key(self) -> Key:
        return self.served.number, self.rendered.key, self.criteria

    @property
    def pending(self) -> "_Pending":
        return self.caller, self.key

    @property
    def queue(self) -> "_Queue":
        return self.served.number, self.criteria

    @property
    def has_waiting_request(self) -> bool:
        return any(not request.future.done() for request, _ in self.waiters)


class Batcher:
    """Its threads start with it; `close` ends them. `submit` may be called from any thread.

    threads: more than one only for models that wait for another server.
    """

    def __init__(
        self,
        *,
        batch_tokens: int = 8192,
        queue_tokens: int = 500_000,
        wait_seconds: float = 0.002,
        duplicate_bytes: int = 64 * 2**20,
        threads: int = 1,
    ) -> None:
        self.batch_tokens = batch_tokens
        self.queue_tokens = queue_tokens
        self.wait_seconds = wait_seconds
        self.duplicate_bytes = duplicate_bytes
        self.duplicates = DuplicateCache(duplicate_bytes)
        self.batches = 0
        self.computed_tokens = 0
        self.waited = 0  # items that were taken from the queue, and the seconds that they waited together
        self.waited_seconds = 0.0
        self._finished_seconds = 0.0
        self._started: dict[int, float] = {}  # by thread, the batch that it computes
        self._tokens_per_second = 5_000.0  # a guess until something was computed; only Retry-After reads it
        self._fair = FairOrder()
        self._queues: dict[_Queue, dict[_Family, deque[_Entry]]] = {}
        self._pending: dict[_Pending, _Entry] = {}
        self._order = 0
        self._closed = False
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._wanted_threads = 0
        self.set_threads(threads)

    @property
    def queued(self) -> int:
        """Tokens that wait."""
        return self._fair.queued

    @property
    def threads(self) -> int:
        """Batches that can be computed at the same time."""
        return self._wanted_threads

    @property
    def busy_seconds(self) -> float:
        """Of all threads together, since the start, those in which a batch was computed."""
        with self._changed:
            now = time.monotonic()
            return self._finished_seconds + sum(now - started for started in self._started.values())

    @property
    def oldest_wait(self) -> float:
        """Seconds that the oldest of what waits has waited; 0 where nothing waits."""
        with self._changed:
            heads = [queue[0].at for families in self._queues.values() for queue in families.values()]
        return time.monotonic() - min(heads) if heads else 0.0

    def clone_limits(self, threads: int) -> "Batcher":
        """Another batcher with the same limits."""
        return Batcher(
            batch_tokens=self.batch_tokens,
            queue_tokens=self.queue_tokens,
            wait_seconds=self.wait_seconds,
            duplicate_bytes=self.duplicate_bytes,
            threads=threads,
        )

    def set_threads(self, count: int) -> None:
        """Batches that are computed at the same time. Fewer: the others end after what they compute."""
        with self._changed:
            if self._closed:
                return
            self._wanted_threads = count
            new = [
                threading.Thread(target=self._run, name="touchstone-model", daemon=True)
                for _ in range(count - len(self._threads))
            ]
            self._threads += new
            self._changed.notify_all()
        for thread in new:
            thread.start()

    def submit(
        self,
        served: ServedModel,
        batch: Sequence[RenderedInput],
        criteria: tuple[str, ...] = (),
        caller: Caller = NO_CALLER,
    ) -> "Future[list[ModelScore]]":
        """The scores of `batch`, in order, by each of the criteria too. Raises Overloaded immediately.

        caller: whose share of the queue it takes.

        The future raises RewardError with the pointer `/<index>` of the item that could not be scored.
        """
        request = _Request([None] * len(batch), len(batch))
        with self._changed:
            if self._closed:
                raise RuntimeError("the batcher is closed")
            self._refuse_overload(served, batch, criteria, caller)
            for index, rendered in enumerate(batch):
                self._enqueue(request, index, served, rendered, criteria, caller)
            complete = request.missing == 0
            self._changed.notify()
        if complete:
            request.future.set_result(_complete(request))
        return request.future

    def evict(self, served: ServedModel) -> None:
        """Drop the cached scores of a model that is no longer served."""
        with self._changed:
            self.duplicates.evict_model(served.number)
        if served.cache is not None:
            served.cache.forget()

    def close(self) -> None:
        """End the threads after what they are computing; what still waits is cancelled."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in list(self._threads):
            thread.join()
        for entry in self._pending.values():
            for request, _ in entry.waiters:
                request.future.cancel()

    def _refuse_overload(
        self, served: ServedModel, batch: Sequence[RenderedInput], criteria: tuple[str, ...], caller: Caller
    ) -> None:
        """A request is accepted as a whole or refused; one above the limit is accepted when nothing waits."""
        new = sum(
            rendered.tokens
            for rendered in batch
            if self.duplicates.get((served.number, rendered.key, criteria)) is None
        )
        if not self._fair.has_room(caller, new, self.queue_tokens):
            seconds = min(max(math.ceil(self.queued / self._tokens_per_second), 1), 60)
            raise Overloaded(
                f"{self.queued} tokens are waiting, {self._fair.waiting(caller)} of them yours, and this request has "
                f"{new} more; "
                f"the limit is {self.queue_tokens}. Try again in {seconds} s.",
                retry_after=seconds,
            )

    def _enqueue(
        self,
        request: _Request,
        index: int,
        served: ServedModel,
        rendered: RenderedInput,
        criteria: tuple[str, ...],
        caller: Caller,
    ) -> None:
        key = served.number, rendered.key, criteria
        remembered = self.duplicates.get(key)
        if remembered is not None:
            request.results[index] = remembered
            request.missing -= 1
        elif (entry := self._pending.get((caller, key))) is not None:
            entry.waiters.append((request, index))
        else:
            self._order += 1
            turn = self._fair.put(caller, rendered.tokens)
            entry = _Entry(turn, self._order, caller, served, rendered, criteria, [(request, index)])
            self._pending[entry.pending] = entry
            families = self._queues.setdefault(entry.queue, {})
            families.setdefault((caller, rendered.family or rendered.key), deque()).append(entry)

    def _run(self) -> None:
        while (batch := self._take()) is not None:
            thread, started = threading.get_ident(), time.monotonic()
            with self._changed:
                self._started[thread] = started
            self._compute(batch)
            tokens, seconds = sum(entry.rendered.tokens for entry in batch), time.monotonic() - started
            rate = len(self._threads) * tokens / max(seconds, 1e-6)
            with self._changed:
                del self._started[thread]
                self._finished_seconds += seconds
                self.batches += bool(batch)
                self.computed_tokens += tokens
                self._tokens_per_second = max(0.8 * self._tokens_per_second + 0.2 * rate, 1.0)

    def _take(self) -> list[_Entry] | None:
        """The next micro-batch; None for a thread that ends."""
        with self._changed:
            if not self._queues and not self._must_end:
                self._changed.wait_for(lambda: self._queues or self._must_end)
                self._changed.wait_for(self._is_full, timeout=self.wait_seconds)
            if self._must_end:
                if not self._closed:
                    self._threads.remove(threading.current_thread())
                return None
            if not self._queues:  # another thread took it
                return []
            name, families = min(self._queues.items(), key=lambda pair: _first(pair[1]))
            batch = self._fill(families)
            if not families:
                del self._queues[name]
            return batch

    def _fill(self, families: dict[_Family, deque[_Entry]]) -> list[_Entry]:
        """Up to the budget, counting what members of a family share once. The family of the first comes first."""
        batch: list[_Entry] = []
        tokens, budget, now = 0, self._budget(), time.monotonic()
        for family in sorted(families, key=lambda name: _turn(families[name])):
            queue, before = families[family], None
            while queue:
                entry = queue[0]
                new = entry.rendered.tokens - (entry.rendered.shared(before) if before is not None else 0)
                if batch and tokens + new > budget:
                    return batch
                queue.popleft()
                self._fair.take(entry.caller, entry.rendered.tokens, entry.turn)
                if entry.has_waiting_request:
                    self.waited += 1
                    self.waited_seconds += now - entry.at
                    batch.append(entry)
                    tokens += new
                    before = entry.rendered
                else:
                    del self._pending[entry.pending]
            del families[family]
        return batch

    def _budget(self) -> int:
        """Tokens of a batch: where several threads take some, each its part of what waits."""
        if self._wanted_threads == 1:
            return self.batch_tokens
        part = math.ceil(self.queued / self._wanted_threads)
        return min(max(part, self.batch_tokens // _LEAST_PART), self.batch_tokens)

    @property
    def _must_end(self) -> bool:
        """Whether the thread that asks is one too many."""
        return self._closed or len(self._threads) > self._wanted_threads

    def _is_full(self) -> bool:
        return self._must_end or self.queued >= self.batch_tokens

    def _compute(self, batch: list[_Entry]) -> None:
        """Score a micro-batch. If it fails, each item is scored alone: only the bad one's request fails."""
        if not batch:
            return
        served = batch[0].served
        try:
            scores = served.model.score(
                [entry.rendered for entry in batch], cache=served.cache, criteria=batch[0].criteria
            )
            if len(scores) != len(batch):
                raise RuntimeError(f"{served.name} gave {len(scores)} scores for {len(batch)} items")  # noqa: TRY301
        except Exception as error:
            if len(batch) == 1 or isinstance(error, Unavailable):
                for entry in batch:
                    self._fail(entry, error)
                return
            logger.warning("a batch of %d items failed, scoring each alone: %s", len(batch), error)
            for entry in batch:
                self._compute([entry])
            return
        for entry, score in zip(batch, scores, strict=True):
            if _is_finite(score):
                self._finish(entry, score)
            else:
                message = f"The model {served.name} gave no finite reward for this item."
                self._fail(entry, RewardError(message))

    def _finish(self, entry: _Entry, score: ModelScore) -> None:
        done: list[_Request] = []
        with self._changed:
            self.duplicates.put(entry.key, score)
            del self._pending[entry.pending]
            for request, index in entry.waiters:
                request.results[index] = score
                request.missing -= 1
                if request.missing == 0:
                    done.append(request)
        for request in done:
            with suppress(InvalidStateError):  # the caller has left, or had an error
                request.future.set_result(_complete(request))

    def _fail(self, entry: _Entry, error: Exception) -> None:
        with self._changed:
            del self._pending[entry.pending]
        for request, index in entry.waiters:
            placed: Exception = error
            if isinstance(error, RewardError) and not isinstance(error, Unavailable):
                placed = error.at(f"/{index}")
            with suppress(InvalidStateError):
                request.future.set_exception(placed)


def _turn(queue: deque[_Entry]) -> tuple[float, int]:
    return queue[0].turn, queue[0].order


def _first(families: dict[_Family, deque[_Entry]]) -> tuple[float, int]:
    return min(map(_turn, families.values()))


def _complete(request: _Request) -> list[ModelScore]:
    return [score for score in request.results if score is not None]


def _is_finite(score: ModelScore) -> bool:
    numbers = (score.raw, score.offset, 0.0 if score.std is None else score.std)
    return all(map(math.isfinite, (*numbers, *score.step_rewards, *score.criteria.values())))

"""What a scaler needs to know, at /metrics: by engine, which is this process or a server, and by replica."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from apps.rewards.servers import ServerKey
from apps.rewards.serving.servers import ReplicaState, ServerPool
from workers.engine import Batcher

TARGET_LOAD = 0.7  # of what a replica computes, that it is to have
TARGET_WAIT = 2.0  # seconds within which what waits is to be computed
WINDOW_SECONDS = 60.0
LOCAL: ServerKey = ("", "")  # models that this process computes
STATES = ("serving", "out", "other model", "draining")


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """arrived: tokens computed or waiting, since the start."""

    at: float
    busy: float
    computed: int
    arrived: int


class _Window:
    """Of one batcher: what happened since about a minute ago."""

    def __init__(self, batcher: Batcher) -> None:
        self._batcher = batcher
        self._snapshots = deque([self._now()])

    def since(self) -> tuple[_Snapshot, _Snapshot]:
        """Then, and now."""
        now = self._now()
        while len(self._snapshots) > 1 and self._snapshots[1].at <= now.at - WINDOW_SECONDS:
            self._snapshots.popleft()
        self._snapshots.append(now)
        return self._snapshots[0], now

    def _now(self) -> _Snapshot:
        batcher = self._batcher
        computed = batcher.computed_tokens
        return _Snapshot(time.monotonic(), batcher.busy_seconds, computed, computed + batcher.queued)


def replicas_needed(*, arrival: float, queued: float, capacity: float) -> float:
    """How many replicas the load is worth, not rounded, so that processes add up.

    arrival, capacity: tokens per second, the latter of one replica. queued: tokens.
    (arrival + queued / TARGET_WAIT) / (TARGET_LOAD * capacity)
    """
    return (arrival + queued / TARGET_WAIT) / (TARGET_LOAD * capacity)


class ScalingMetrics:
    """A collector of prometheus_client. batchers: by engine, LOCAL for this process. pools: of the servers."""

    def __init__(
        self,
        batchers: Callable[[], Mapping[ServerKey, Batcher]],
        pools: Callable[[], Mapping[ServerKey, ServerPool]],
    ) -> None:
        self._batchers, self._pools = batchers, pools
        self._windows: dict[ServerKey, _Window] = {}
        self.collect_engines()  # the window begins now

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield from self.collect_engines()
        yield from self._replicas()

    def collect_engines(self) -> list[Metric]:
        labels = ["project", "server"]
        queued = GaugeMetricFamily("touchstone_engine_queue_tokens", "Tokens that wait.", labels=labels)
        oldest = GaugeMetricFamily(
            "touchstone_engine_oldest_wait_seconds",
            "How long the oldest of what waits has waited.",
            labels=labels,
        )
        waits = SummaryMetricFamily(
            "touchstone_engine_wait_seconds",
            "How long items waited before they were computed.",
            labels=labels,
        )
        threads = GaugeMetricFamily(
            "touchstone_engine_threads", "Batches that can be computed at the same time.", labels=labels
        )
        busy = CounterMetricFamily(
            "touchstone_engine_busy_seconds",
            "Seconds of threads in which a batch was computed.",
            labels=labels,
        )
        tokens = CounterMetricFamily("touchstone_engine_tokens", "Tokens computed.", labels=labels)
        utilisation = GaugeMetricFamily(
            "touchstone_engine_utilisation",
            "Share of the threads that was busy in the last minute.",
            labels=labels,
        )
        needed = GaugeMetricFamily(
            "touchstone_engine_replicas_needed",
            "Replicas that the load of the last minute is worth, not rounded; once a speed was measured.",
            labels=labels,
        )
        states = {key: pool.states() for key, pool in self._pools().items()}
        for key, batcher in self._batchers().items():
            then, now = self._windows.setdefault(key, _Window(batcher)).since()
            seconds = max(now.at - then.at, 1e-6)
            queued.add_metric(key, batcher.queued)
            oldest.add_metric(key, batcher.oldest_wait)
            waits.add_metric(key, batcher.waited, batcher.waited_seconds)
            threads.add_metric(key, batcher.threads)
            busy.add_metric(key, now.busy)
            tokens.add_metric(key, now.computed)
            utilisation.add_metric(key, min((now.busy - then.busy) / (seconds * batcher.threads), 1.0))
            if capacity := _capacity(then, now, states.get(key)):
                arrival = max(now.arrived - then.arrived, 0) / seconds
                needed.add_metric(
                    key, replicas_needed(arrival=arrival, queued=batcher.queued, capacity=capacity)
                )
        return [queued, oldest, waits, threads, busy, tokens, utilisation, needed]

    def _replicas(self) -> list[Metric]:
        labels = ["project", "server", "replica"]
        count = GaugeMetricFamily(
            "touchstone_replicas", "Replicas of a server, by state.", labels=["project", "server", "state"]
        )
        outstanding = GaugeMetricFamily(
            "touchstone_replica_outstanding_tokens", "Tokens sent and not answered.", labels=labels
        )
        batches = CounterMetricFamily("touchstone_replica_batches", "Batches sent.", labels=labels)
        errors = CounterMetricFamily(
            "touchstone_replica_errors", "Batches and probes that failed.", labels=labels
        )
        tokens = CounterMetricFamily("touchstone_replica_tokens", "Tokens computed.", labels=labels)
        for key, pool in self._pools().items():
            states = pool.states()
            for state in STATES:
                count.add_metric([*key, state], sum(replica.state == state for replica in states))
            for replica in states:
                place = [*key, replica.address]
                outstanding.add_metric(place, replica.outstanding)
                batches.add_metric(place, replica.requests)
                errors.add_metric(place, replica.errors)
                tokens.add_metric(place, replica.tokens)
        return [count, outstanding, batches, errors, tokens]


def _capacity(then: _Snapshot, now: _Snapshot, states: Sequence[ReplicaState] | None) -> float:
    """Tokens per second of one replica, as measured; of this process, while it computed. 0: not measured."""
    if states is None:
        busy = now.busy - then.busy
        return (now.computed - then.computed) / busy if busy > 0 else 0.0
    speeds = [state.tokens_per_second for state in states if state.tokens_per_second]
    return sum(speeds) / len(speeds) if speeds else 0.0

"""Metrics for Prometheus, at /metrics."""

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from apps.rewards.serving.registry import EndpointInfo
from apps.rewards.serving.scaling_metrics import ScalingMetrics
from apps.rewards.serving.usage_writer import UsageWriter
from apps.rewards.usage import LATENCY_MS
from workers.engine import Batcher

MEDIA_TYPE = CONTENT_TYPE_LATEST


class PrometheusMetrics:
    """Of one process. Endpoints are labels: the port they are read at is not the public one.

    batchers: the current ones.
    """

    def __init__(
        self, batchers: Callable[[], Sequence[Batcher]], usage: UsageWriter, scaling: ScalingMetrics
    ) -> None:
        self._registry = registry = CollectorRegistry()
        registry.register(scaling)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        seconds = [edge / 1000 for edge in LATENCY_MS]
        self._requests = Counter(
            "touchstone_requests_total",
            "Requests, by status.",
            ["project", "endpoint", "status"],
            registry=registry,
        )
        self._latency = Histogram(
            "touchstone_request_seconds",
            "Of those answered.",
            ["project", "endpoint"],
            buckets=seconds,
            registry=registry,
        )
        self._items = Counter(
            "touchstone_items_total", "Items scored.", ["project", "endpoint"], registry=registry
        )
        self._tokens = Counter(
            "touchstone_tokens_total",
            "Tokens of items scored.",
            ["project", "endpoint", "cached"],
            registry=registry,
        )
        self._gauge(
            "queue_tokens",
            "Tokens waiting to be scored.",
            lambda: sum(batcher.queued for batcher in batchers()),
        )
        self._gauge(
            "queue_limit_tokens",
            "Beyond it, requests are refused.",
            lambda: sum(batcher.queue_tokens for batcher in batchers()),
        )
        self._gauge(
            "batches_total", "Micro-batches computed.", lambda: sum(batcher.batches for batcher in batchers())
        )
        self._gauge("usage_waiting", "Requests whose usage is not written yet.", lambda: usage.waiting)
        self._gauge("usage_lost_total", "Requests whose usage is lost.", lambda: usage.lost)

    def answered(self, info: EndpointInfo, seconds: float, items: int, tokens: int, cached: int) -> None:
        labels = (info.project, info.name)
        self._requests.labels(*labels, "200").inc()
        self._latency.labels(*labels).observe(seconds)
        self._items.labels(*labels).inc(items)
        self._tokens.labels(*labels, "no").inc(tokens - cached)
        self._tokens.labels(*labels, "yes").inc(cached)

    def refused(self, info: EndpointInfo, status: int) -> None:
        self._requests.labels(info.project, info.name, str(status)).inc()

    def shown(self) -> bytes:
        return generate_latest(self._registry)

    def _gauge(self, name: str, help_: str, read: Callable[[], float]) -> None:
        gauge = Gauge(f"touchstone_{name}", help_, registry=self._registry)
        gauge.set_function(read)

"""What lives as long as the process: the engine, the deployments, access, and the threads that parse requests."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeVar

from django.conf import settings

from apps.accounts.key_gate import KeyGate
from apps.core.errors import DomainError
from apps.core.storage import artifacts
from apps.rewards.serving.access import Access
from apps.rewards.serving.change_listener import ChangeListener
from apps.rewards.serving.deployments import Deployments, Load
from apps.rewards.serving.intake import BODIES, Intake, KeySlots
from apps.rewards.serving.judges import Judges
from apps.rewards.serving.prometheus_metrics import PrometheusMetrics
from apps.rewards.serving.registry import EndpointRegistry
from apps.rewards.serving.run_versions import RunVersions
from apps.rewards.serving.scaling_metrics import ScalingMetrics
from apps.rewards.serving.servers import ModelServers
from apps.rewards.serving.shadow import ShadowScorer
from apps.rewards.serving.usage_writer import EVERY_SECONDS, UsageWriter
from apps.rewards.serving.verifiers import Verifiers
from workers.engine import Batcher, Scorer
from workers.schema.parents import DECODER_KINDS, GOAL_LIKENESS

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
PARSERS = 4
EXPLAINERS = 2  # threads that look for reasons: they take seconds, and hold up no parsing
WRITTEN_SECONDS = 3 * EVERY_SECONDS  # until usage is in the database, at most


@dataclass(eq=False)
class ServiceState:
    deployments: Deployments
    servers: ModelServers
    parsers: ThreadPoolExecutor
    explainers: KeySlots
    usage: UsageWriter = field(default_factory=UsageWriter)
    metrics: PrometheusMetrics = field(init=False)
    shadow: ShadowScorer = field(init=False)
    has_been_ready: bool = False
    gate: KeyGate = field(default_factory=KeyGate)
    intake: Intake = field(init=False)
    listener: ChangeListener = field(init=False)
    access: Access = field(init=False)
    run_versions: RunVersions = field(default_factory=RunVersions)

    def __post_init__(self) -> None:
        self.listener = ChangeListener(self.follow)
        self.access = Access(self.deployments, self.listener, self.gate)
        self.intake = Intake(BODIES * settings.REWARDS_MAX_BODY_BYTES, self.parsers, PARSERS)
        scaling = ScalingMetrics(lambda: self.deployments.batchers_by_engine, lambda: self.servers.pools)
        self.metrics = PrometheusMetrics(lambda: self.deployments.batchers, self.usage, scaling)
        self.shadow = ShadowScorer(self.usage, self.parsers)

    def follow(self, registry: EndpointRegistry) -> None:
        self.access.registry = registry
        self.servers.follow(registry.servers)
        self.deployments.update(registry.endpoints)
        self.gate.learn(registry.used_today, before=registry.read_at - WRITTEN_SECONDS)

    @property
    def is_ready(self) -> bool:
        return self.status == "ready"

    @property
    def status(self) -> Literal["starting", "ready", "failed"]:
        """failed: there are revisions to serve, and not one can be."""
        if not self._was_tried:
            return "starting"
        active = [deployment.active for deployment in self.deployments.by_key.values()]
        failures = [slot for slot in active if slot.failure is not None and slot.version is None]
        is_served = any(slot.version is not None for slot in active)
        return "failed" if failures and not is_served else "ready"

    @property
    def _was_tried(self) -> bool:
        """What was deployed at the start; once true it stays true."""
        if not self.has_been_ready and self.access.registry is not None:
            self.has_been_ready = all(
                deployment.active.has_result for deployment in self.deployments.by_key.values()
            )
        return self.has_been_ready

    async def run_in_parser_pool(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.parsers, lambda: function(*args, **kwargs))


class StoredModels:
    """Loads stored artifacts on the device of the settings, each with the cache its kind has.

    Chunks are kept by content and encoder, so a new version on the same encoder starts warm; a project sees only its
    own. Each decoder has its own session cache.
    """

    def __init__(self) -> None:
        self._chunks: Any = None
        self._sessions: Any = None

    def __call__(self, artifact: str, project: str) -> tuple[Scorer, Any]:
        # torch, which importing this module should not cost
        from workers.device import DeviceError
        from workers.models import ChunkCache, LoadedModel, SessionCache, load_scorer

        if self._chunks is None:
            self._chunks = ChunkCache(settings.REWARDS_CACHE_BYTES)
            self._sessions = SessionCache(settings.REWARDS_SESSION_BYTES)
        device = settings.REWARDS_DEVICE
        try:
            model = load_scorer(
                artifacts.stage(artifact), device=device, precision=settings.REWARDS_PRECISION
            )
        except DeviceError as error:
            raise DomainError(
                f"the server has a wrong device setting, TOUCHSTONE_REWARDS_DEVICE={device}: {error.message}"
            ) from error
        if not isinstance(model, LoadedModel):  # a generative model keeps nothing
            return model, None
        kind = model.model.backbone.kind
        if kind in ("step-encoder", "hybrid", GOAL_LIKENESS):
            return model, self._chunks.within(project)
        return model, self._sessions.within() if kind in DECODER_KINDS else None


@asynccontextmanager
async def running_state(load: Load) -> AsyncIterator[ServiceState]:
    batcher = Batcher(
        batch_tokens=settings.REWARDS_BATCH_TOKENS,
        queue_tokens=settings.REWARDS_QUEUE_TOKENS,
        duplicate_bytes=settings.REWARDS_CACHE_BYTES // 4,
    )
    parsers = ThreadPoolExecutor(PARSERS, thread_name_prefix="touchstone-parser")
    explainers = ThreadPoolExecutor(EXPLAINERS, thread_name_prefix="touchstone-explainer")
    verifiers = Verifiers()
    servers = ModelServers()
    judges = Judges(settings.REWARDS_CACHE_BYTES // 8)
    deployments = Deployments(batcher, load, verifiers.verifier, servers, judges.asker)
    state = ServiceState(deployments, servers, parsers, KeySlots(explainers, EXPLAINERS))
    watching = asyncio.create_task(state.listener.run())
    counting = asyncio.create_task(state.usage.run())
    comparing = asyncio.create_task(state.shadow.run())
    tasks = (watching, counting, comparing)
    for task in tasks:
        task.add_done_callback(_report)
    try:
        yield state
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await state.usage.flush()
        state.deployments.close()
        verifiers.close()
        await asyncio.to_thread(judges.close)
        await asyncio.to_thread(state.listener.close)
        await asyncio.to_thread(state.usage.close)
        state.run_versions.close()
        for pool in (parsers, explainers):
            pool.shutdown(wait=False, cancel_futures=True)
        for engine in state.deployments.batchers:
            await asyncio.to_thread(engine.close)
        await asyncio.to_thread(servers.close)


def _report(task: "asyncio.Task[None]") -> None:
    """None of them should end: without one, revoked keys stay live, or usage is no longer counted."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.critical("the reward service no longer follows the database, or writes to it", exc_info=error)

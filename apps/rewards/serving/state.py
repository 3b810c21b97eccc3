"""What lives as long as the process: the engine, the directory, the deployments, the threads that read requests."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from django.conf import settings

from apps.accounts.key_gate import KeyGate
from apps.core.storage import artifacts
from apps.rewards.serving.deployments import Deployments, Load
from apps.rewards.serving.directory import Directory
from apps.rewards.serving.intake import BODIES, Intake
from apps.rewards.serving.judges import Judges
from apps.rewards.serving.metrics import Metrics
from apps.rewards.serving.shadow import Shadow
from apps.rewards.serving.usage import EVERY_SECONDS, Usage
from apps.rewards.serving.verifiers import Verifiers
from apps.rewards.serving.vllm_server import VllmServers
from apps.rewards.serving.watch import Watcher
from workers.engine import Batcher, Scorer

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
READERS = 4
WRITTEN_SECONDS = 3 * EVERY_SECONDS  # usage of a moment is in the database so much later


@dataclass(eq=False)
class State:
    """directory is None until the database was read once."""

    deployments: Deployments
    readers: ThreadPoolExecutor
    usage: Usage = field(default_factory=Usage)
    metrics: Metrics = field(init=False)
    shadow: Shadow = field(init=False)
    directory: Directory | None = None
    was_ready: bool = False
    gate: KeyGate = field(default_factory=KeyGate)
    intake: Intake = field(init=False)
    watcher: Watcher = field(init=False)

    def __post_init__(self) -> None:
        self.watcher = Watcher(self.follow)
        self.intake = Intake(BODIES * settings.REWARDS_MAX_BODY_BYTES, READERS)
        self.metrics = Metrics(lambda: self.deployments.batchers, self.usage)
        self.shadow = Shadow(self.usage, self.readers)

    def follow(self, directory: Directory) -> None:
        self.directory = directory
        self.deployments.update(directory.endpoints)
        self.gate.learn(directory.used_today, before=directory.read_at - WRITTEN_SECONDS)

    @property
    def is_ready(self) -> bool:
        """Whether what was deployed at the start has been tried; once true it stays true."""
        if not self.was_ready and self.directory is not None:
            self.was_ready = all(one.active.was_tried for one in self.deployments.by_key.values())
        return self.was_ready

    async def in_reader(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.readers, lambda: function(*args, **kwargs))


class StoredModels:
    """Loads stored artifacts on the device of the settings, each with the cache its kind has.

    Chunks are kept by content and encoder, so a new version on the same encoder begins warm; a project sees its own
    only. What decoders keep of growing trajectories is theirs alone.
    """

    def __init__(self) -> None:
        self._chunks: Any = None
        self._sessions: Any = None

    def __call__(self, artifact: str, project: str) -> tuple[Scorer, Any]:
        # torch, which importing this module should not cost
        from workers.models import ChunkCache, LoadedModel, SessionCache, load_scorer

        if self._chunks is None:
            self._chunks = ChunkCache(settings.REWARDS_CACHE_BYTES)
            self._sessions = SessionCache(settings.REWARDS_SESSION_BYTES)
        model = load_scorer(
            artifacts.stage(artifact), device=settings.REWARDS_DEVICE, precision=settings.REWARDS_PRECISION
        )
        if not isinstance(model, LoadedModel):  # one that writes keeps nothing
            return model, None
        kind = model.model.backbone.kind
        caches = {"step-encoder": self._chunks.within(project), "decoder": self._sessions.within()}
        return model, caches.get(kind)


@asynccontextmanager
async def running_state(load: Load) -> AsyncIterator[State]:
    batcher = Batcher(
        batch_tokens=settings.REWARDS_BATCH_TOKENS,
        queue_tokens=settings.REWARDS_QUEUE_TOKENS,
        duplicate_bytes=settings.REWARDS_CACHE_BYTES // 4,
    )
    readers = ThreadPoolExecutor(READERS, thread_name_prefix="touchstone-reader")
    verifiers = Verifiers()
    servers = VllmServers()
    judges = Judges(settings.REWARDS_CACHE_BYTES // 8)
    state = State(Deployments(batcher, load, verifiers.of, servers, judges.of), readers)
    watching = asyncio.create_task(state.watcher.run())
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
        await asyncio.to_thread(state.watcher.close)
        await asyncio.to_thread(state.usage.close)
        readers.shutdown(wait=False, cancel_futures=True)
        for each in state.deployments.batchers:
            await asyncio.to_thread(each.close)
        servers.close()


def _report(task: "asyncio.Task[None]") -> None:
    """None ends by itself: if one does, revoked keys are no longer seen, or usage is no longer counted."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.critical("the reward service no longer follows the database, or writes to it", exc_info=error)

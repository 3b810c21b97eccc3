"""What lives as long as the process: the engine, the directory, the deployments, the threads that read requests."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from django.conf import settings

from apps.core import artifacts
from apps.rewards.serving.deployments import Deployments, Load
from apps.rewards.serving.directory import Directory
from apps.rewards.serving.watch import Watcher
from workers.engine import Batcher, RewardModel

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
READERS = 4


@dataclass(eq=False)
class State:
    """directory is None until the database was read once."""

    batcher: Batcher
    deployments: Deployments
    readers: ThreadPoolExecutor
    directory: Directory | None = None
    was_ready: bool = False
    watcher: Watcher = field(init=False)

    def __post_init__(self) -> None:
        self.watcher = Watcher(self.follow)

    def follow(self, directory: Directory) -> None:
        self.directory = directory
        self.deployments.update(directory.endpoints)

    @property
    def is_ready(self) -> bool:
        """Whether what was deployed at the start has been tried; once true it stays true."""
        if not self.was_ready and self.directory is not None:
            self.was_ready = all(one.was_tried for one in self.deployments.by_name.values())
        return self.was_ready

    async def in_reader(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.readers, lambda: function(*args, **kwargs))


class StoredModels:
    """Loads stored artifacts on the device of the settings. Chunks are kept by content and encoder, so all share one
    cache: a new version on the same encoder begins warm.
    """

    def __init__(self) -> None:
        self._cache: Any = None

    def __call__(self, artifact: str) -> tuple[RewardModel, Any]:
        from workers.models import ChunkCache, load  # torch, which importing this module should not cost

        if self._cache is None:
            self._cache = ChunkCache(settings.REWARDS_CACHE_BYTES)
        return load(artifacts.stage(artifact), device=settings.REWARDS_DEVICE), self._cache


@asynccontextmanager
async def running_state(load: Load) -> AsyncIterator[State]:
    batcher = Batcher(
        batch_tokens=settings.REWARDS_BATCH_TOKENS,
        queue_tokens=settings.REWARDS_QUEUE_TOKENS,
        duplicate_bytes=settings.REWARDS_CACHE_BYTES // 4,
    )
    readers = ThreadPoolExecutor(READERS, thread_name_prefix="touchstone-reader")
    state = State(batcher, Deployments(batcher, load), readers)
    watching = asyncio.create_task(state.watcher.run())
    watching.add_done_callback(_report)
    try:
        yield state
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        state.deployments.close()
        await asyncio.to_thread(state.watcher.close)
        readers.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(batcher.close)


def _report(task: "asyncio.Task[None]") -> None:
    """Watching never ends by itself: if it does, revisions and revoked keys are no longer seen."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.critical("the reward service no longer follows the database", exc_info=error)

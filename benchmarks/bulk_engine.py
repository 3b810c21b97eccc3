"""The engine alone over trajectories in memory: `python -m benchmarks.bulk_engine MODEL_DIR ITEMS.json`.

Prints {seconds, cpu_seconds, loading_cpu_seconds, rewards}: of the quicker of `workers.engine` and of `workers.bulk`.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.peers import version_of
from workers.bulk.scoring import open_work
from workers.schema import ScoreInput, Trajectory
from workers.schema.bulk_items import BulkConfig

_AT_ONCE, _CHUNK = 256, 500


def by_engine(folder: Path, trajectories: list[Trajectory]) -> dict[str, Any]:
    """Rendering, batching, scoring and composition of `workers.engine`."""
    version, batcher = version_of(folder)
    batcher.queue_tokens, batcher.wait_seconds = 10**9, 0.0
    version.warm_up()
    items = [ScoreInput(content=trajectory) for trajectory in trajectories]
    began, cpu = time.perf_counter(), time.process_time()
    for start in range(0, len(items), _AT_ONCE):
        asyncio.run(version.score(version.render(items[start : start + _AT_ONCE])))
    found = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
    batcher.close()
    return found


def by_chunks(folder: Path, trajectories: list[Trajectory]) -> dict[str, Any]:
    """What the process of a bulk job calls for each chunk."""
    began_loading = time.process_time()
    work = open_work(BulkConfig(work="score", folder=str(folder), device="cpu"))
    began, cpu = time.perf_counter(), time.process_time()
    rewards = {}
    for start in range(0, len(trajectories), _CHUNK):
        for item in work.compute(work.read(trajectories[start : start + _CHUNK])):
            rewards[str(item.trajectory)] = item.reward
    return {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "loading_cpu_seconds": cpu - began_loading,
        "rewards": rewards,
    }


def main() -> None:
    imported = time.process_time()
    folder, items = Path(sys.argv[1]), Path(sys.argv[2])
    trajectories = msgspec.json.decode(items.read_bytes(), type=list[Trajectory])
    found = by_chunks(folder, trajectories)
    found["loading_cpu_seconds"] += imported
    engine = by_engine(folder, trajectories)
    found |= min(found, engine, key=lambda each: each["seconds"]) | {"rewards": found["rewards"]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()

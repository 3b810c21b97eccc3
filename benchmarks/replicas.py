"""Replicas of a pooling server behind one name: how load spreads, and what the way through us costs:
 `python -m benchmarks.replicas [--quick] [--json]`.

Servers are processes that simulate a device of a stated speed; see `benchmarks.pooling_server`. Direct: the same
batches, posted to the same servers by as many threads, each thread with a server of its own.
"""

import argparse
import itertools
import json
import os
import random
import resource
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import django

from tests.ports import free_port

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
django.setup()

from apps.rewards.serving.servers import ReplicaInfo, ServerPool  # noqa: E402
from apps.rewards.serving.servers.replica import Replica, ReplicaModel  # noqa: E402
from benchmarks.pooling_server import PoolingProcess, pooling_processes, probe  # noqa: E402
from workers.errors import Unavailable  # noqa: E402
from workers.schema.remote_models import LogitsPrompt  # noqa: E402

SPEED = 20_000.0  # tokens per second of a server
BATCH, LONGEST = 16, 400  # items of a batch, tokens of an item
Json = dict[str, Any]


def batches(count: int) -> list[list[LogitsPrompt]]:
    chance = random.Random(0)
    found = []
    for _ in range(count):
        items = [[chance.randrange(500) for _ in range(chance.randrange(40, LONGEST))] for _ in range(BATCH)]
        found.append([LogitsPrompt(ids, [len(ids) - 1]) for ids in items])
    return found


@contextmanager
def watched_pool(servers: Sequence[PoolingProcess]) -> Iterator[ServerPool]:
    pool, ends = ServerPool("gpu"), threading.Event()
    pool.follow([ReplicaInfo(server.address, guarded=False) for server in servers])

    def watch() -> None:
        while not ends.wait(0.5):
            for call in pool.due_checks():
                call()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield pool
    finally:
        ends.set()
        thread.join()
        pool.close()


def timed(work: Sequence[Any], run: Callable[[Any], object], threads: int) -> tuple[float, list[float]]:
    """Seconds of all, and of each."""

    def one(entry: Any) -> float:
        began = time.perf_counter()
        run(entry)
        return time.perf_counter() - began

    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as executor:
        seconds = list(executor.map(one, work))
    return time.perf_counter() - began, seconds


def spread(count: int) -> Json:
    """Shares of three servers alike, and of three of which one has a fifth of the speed."""
    found: Json = {}
    for name, speeds in (("alike", (1.0, 1.0, 1.0)), ("one_slow", (1.0, 1.0, 0.2))):
        servers = [PoolingProcess(free_port(), tokens_per_second=SPEED * speed) for speed in speeds]
        with pooling_processes(servers), watched_pool(servers) as pool:
            ask, work = pool.connect(probe()), batches(count)
            seconds, each = timed(work, ask, 12)
            tokens = [state.tokens for state in pool.states()]
            capacity = SPEED * sum(speeds)
            found[name] = {
                "shares": [round(part / sum(tokens), 3) for part in tokens],
                "ideal": [round(speed / sum(speeds), 3) for speed in speeds],
                "of_capacity": round(sum(tokens) / seconds / capacity, 3),
                "p50_seconds": round(statistics.median(each), 4),
                "p99_seconds": round(sorted(each)[int(0.99 * len(each))], 4),
            }
    return found


def overhead(count: int) -> Json:
    """Throughput through the pool over that of direct calls: by servers that take time, and by some that take none."""
    found: Json = {}
    for name, speed in (("busy", SPEED), ("instant", 0.0)):
        servers = [PoolingProcess(free_port(), tokens_per_second=speed) for _ in range(3)]
        with pooling_processes(servers), watched_pool(servers) as pool:
            ask, work = pool.connect(probe()), batches(count)
            direct = [Replica(ReplicaInfo(server.address, guarded=False)) for server in servers]
            served = direct[0].identify(probe())
            ask_directly = partial(_ask_in_turn, direct, served, itertools.count())
            timed(work[:24], ask, 12)  # both warm
            timed(work[:24], ask_directly, 12)
            ratios = []
            for _ in range(3):
                seconds_direct, _ = timed(work, ask_directly, 12)
                seconds, _ = timed(work, ask, 12)
                ratios.append(seconds_direct / seconds)
            found[name] = {"ratio": round(statistics.median(ratios), 3), "goal": 0.9}
            for replica in direct:
                replica.close()
    return found


def _ask_in_turn(
    replicas: Sequence[Replica], served: ReplicaModel, turns: Iterator[int], prompts: list[LogitsPrompt]
) -> object:
    return replicas[next(turns) % len(replicas)].ask(served, prompts, 1, 60.0)


def failures(count: int) -> Json:
    """One of three servers is killed while they are asked."""
    servers = [PoolingProcess(free_port(), tokens_per_second=SPEED) for _ in range(3)]
    with pooling_processes(servers), watched_pool(servers) as pool:
        ask, lost = pool.connect(probe()), []

        def try_asking(prompts: list[LogitsPrompt]) -> None:
            try:
                ask(prompts)
            except Unavailable as error:
                lost.append(error)

        killing = threading.Timer(0.3, servers[1].kill)
        killing.start()
        _, seconds = timed(batches(count), try_asking, 12)
        killing.join()
        return {"batches": count, "lost": len(lost), "slowest_seconds": round(max(seconds), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicas", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    count = 30 if options.quick else 200
    found = {
        "spread": spread(count),
        "overhead": overhead(count),
        "failures": failures(count),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(found, indent=None if options.json else 2))


if __name__ == "__main__":
    main()

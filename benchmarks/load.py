"""Many clients, one sample to a request, each sending its next one when it has its answer."""

import asyncio
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp


@dataclass(frozen=True)
class Load:
    """rewards: in the order of the items. milliseconds: of each request, in the order they ended."""

    seconds: float
    rewards: list[float]
    milliseconds: list[float]

    @property
    def per_second(self) -> float:
        return len(self.rewards) / self.seconds

    def percentiles(self) -> dict[str, float]:
        cuts = statistics.quantiles(self.milliseconds, n=100, method="inclusive")
        return {"p50_ms": cuts[49], "p95_ms": cuts[94], "p99_ms": cuts[98]}


def joined(loads: Sequence[Load]) -> Load:
    return Load(
        sum(load.seconds for load in loads),
        [reward for load in loads for reward in load.rewards],
        [ms for load in loads for ms in load.milliseconds],
    )


def ask(
    url: str, items: Sequence[dict[str, Any]], *, clients: int, headers: dict[str, str] | None = None
) -> Load:
    """Raises where an answer is not 200: nothing is measured of a server that refuses."""
    return asyncio.run(_ask(url, items, clients, headers or {}))


async def _ask(url: str, items: Sequence[dict[str, Any]], clients: int, headers: dict[str, str]) -> Load:
    rewards: list[float] = [0.0] * len(items)
    milliseconds: list[float] = []
    places = iter(range(len(items)))
    connector = aiohttp.TCPConnector(limit=clients)
    async with aiohttp.ClientSession(
        connector=connector, headers=headers, timeout=aiohttp.ClientTimeout(total=None)
    ) as session:

        async def client(mine: Iterable[int]) -> None:
            for place in mine:
                began = time.perf_counter()
                async with session.post(url, json={"inputs": [items[place]]}) as reply:
                    if reply.status != 200:
                        raise RuntimeError(f"{reply.status}: {(await reply.text())[:500]}")
                    result = (await reply.json())["results"][0]
                milliseconds.append(1000 * (time.perf_counter() - began))
                rewards[place] = result.get("raw", result["reward"])

        began = time.perf_counter()
        await asyncio.gather(*(client(places) for _ in range(clients)))
        return Load(time.perf_counter() - began, rewards, milliseconds)

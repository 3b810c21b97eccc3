"""Whether processes grow with what they did: resident memory after the first part of a load, and after all of it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from tests.faults.drivers import Browser
from tests.faults.ledger import Ledger
from tests.faults.prepare import DATASET, ENDPOINT, PROJECT
from tests.faults.scenario import Installation
from tests.faults.stack import Stack, until

CLIENTS, AT_ONCE = 16, 100  # requests sent together
QUICK = {"epochs": 1, "width": 16, "attention_heads": 1, "chunk_tokens": 64, "patience": 0}


def resident(stack: Stack, *names: str) -> float:
    """MiB, of all processes with these names."""
    return sum(process.memory_info().rss for name in names for process in stack.processes(name)) / 2**20


def grown(work: Callable[[int], None], measure: Callable[[], float], times: int, warm: int) -> dict[str, Any]:
    """Do `work` `times` over; memory after the first `warm`, after every quarter of the rest, and at the end."""
    ends = [warm + (times - warm) * quarter // 4 for quarter in range(5)]
    seen, done = list[float](), 0
    for end in ends:
        for number in range(done, end):
            work(number)
        done = end
        seen.append(measure())
    return {"times": times, "warm": warm, "mib": seen, "growth_mib": seen[-1] - seen[0]}


def requests(installed: Installation, count: int) -> dict[str, Any]:
    """One new text to a request, so that every cache meets its bound."""
    headers = {"Authorization": f"Bearer {installed.told['key']}"}
    path = f"/api/v1/rewards/{ENDPOINT}/score"
    with (
        httpx.Client(
            base_url=installed.stack.rewards_url, headers=headers, timeout=120, trust_env=False
        ) as client,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):

        def ask(place: int) -> None:
            body = {"inputs": [{"text": f"order {place}"}]}
            # A replica may have been started a moment ago.
            until(lambda: client.post(path, json=body).status_code == 200, 60, "nothing is scored")

        def work(number: int) -> None:
            list(pool.map(ask, range(AT_ONCE * number, AT_ONCE * (number + 1))))

        times = count // AT_ONCE
        found = grown(work, lambda: resident(installed.stack, "rewards"), times, max(6, times // 5))
    return found | {"requests": times * AT_ONCE}


def page_views(installed: Installation, count: int) -> dict[str, Any]:
    """The pages a researcher has, one after the other."""
    told = installed.told
    owner = Browser(installed.stack.url, Ledger(), threading.Event(), "reader", told)
    owner.login = told["owner"]
    base = f"/p/{PROJECT}"
    pages = [
        f"{base}/", f"{base}/trajectories/", f"{base}/campaigns/", f"{base}/campaigns/{told['campaign']}/",
        f"{base}/datasets/", f"{base}/training/runs/", f"{base}/training/models/", f"{base}/endpoints/",
        f"{base}/campaigns/{told['campaign']}/work/", f"{base}/audit",
    ]  # fmt: skip

    def work(number: int) -> None:
        page = owner.page(pages[number % len(pages)])
        assert page.status_code == 200, (page.status_code, page.url)

    found = grown(work, lambda: resident(installed.stack, "web"), count, count // 5)
    owner.client.close()
    return found


def runs(installed: Installation, count: int) -> dict[str, Any]:
    """Small runs one after the other, by one worker that lives all the while."""
    headers = {"Authorization": f"Bearer {installed.told['key']}"}
    with httpx.Client(base_url=installed.stack.url, headers=headers, timeout=60, trust_env=False) as client:

        def work(number: int) -> None:
            body = {"dataset": DATASET, "recipe": QUICK, "name": "quick", "seed": number}
            run = client.post(f"/api/v1/projects/{PROJECT}/runs", json=body).raise_for_status().json()["run"]

            def done() -> bool:
                state: str = client.get(f"/api/v1/runs/{run}").json()["state"]
                assert state != "failed", client.get(f"/api/v1/runs/{run}").json()["error"]
                return state == "succeeded"

            until(done, 120, f"run {run} does not end")

        return grown(work, lambda: resident(installed.stack, "gpu"), count, max(1, count // 5))


def environment() -> dict[str, str]:
    """Small caches, so that they are full after the first part."""
    return {"TOUCHSTONE_REWARDS_CACHE_MB": "8"}

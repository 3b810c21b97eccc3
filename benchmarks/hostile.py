"""Does an installation stand up to input that means no good, and does another project notice?

    python -m benchmarks.hostile [--json] [--quick] [--count 10000] [--seed 0] [--attackers 4]

One project's keys and annotator send uploads, bodies, queries and headers, and its servers answer with replies, of the
kinds of `hostile_inputs` and `hostile_server`, to a running stack; memory of each process is watched, and another
project goes on scoring and reading meanwhile. It ends with 1 where a 500 was answered, a 503 without `Retry-After`,
something hung, a process passed 1.5 times its resting memory plus the stated limits, the other project's 95th
percentile more than doubled, or its rewards changed.
"""

import argparse
import collections
import contextlib
import itertools
import json
import logging
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from benchmarks.hostile_inputs import HELD, Outcome, Target, attacks, sent
from benchmarks.hostile_server import HostileServer, hostile_server
from tests.faults.drivers import fields_of
from tests.faults.models import ITEMS
from tests.faults.prepare import ENDPOINT, PROJECT
from tests.faults.scenario import Installation, installation
from tests.faults.stack import Stack, family, kind_of, until

COUNT, QUICK, ATTACKERS = 10_000, 200, 4
OTHER = "other"  # the project that should notice nothing; its endpoint has the name of the attacker's
RESTING_SECONDS = 20.0
PAUSE = 0.1  # between two requests of the other project
WATCHED = ("web", "rewards", "default", "gpu", "beat")
# Small limits, so that what passes them is seen: MiB that one request may make a process hold.
FORM, RECORD, BODY, CACHE = 4, 16, 16, 32
ENVIRONMENT = {
    "TOUCHSTONE_MAX_FORM_MB": str(FORM),
    "TOUCHSTONE_MAX_RECORD_MB": str(RECORD),
    "TOUCHSTONE_MAX_UNPACKED_MB": "64",
    "TOUCHSTONE_REWARDS_MAX_MB": str(BODY),
    "TOUCHSTONE_REWARDS_CACHE_MB": str(CACHE),
    "TOUCHSTONE_REWARDS_SESSION_MB": str(CACHE),
    "TOUCHSTONE_OUTGOING_ALLOW": "127.0.0.0/8",
    "TOUCHSTONE_LOGIN_FAILURES": "100",
}


@dataclass
class Watch:
    """peaks: MiB of each kind of process. milliseconds: of the other project's requests, by what they are."""

    peaks: dict[str, float] = field(default_factory=dict)
    milliseconds: dict[str, list[float]] = field(default_factory=lambda: {"score": [], "read": []})
    failures: list[str] = field(default_factory=list)
    rewards: set[float] = field(default_factory=set)

    def p95(self) -> dict[str, float]:
        return {
            name: round(statistics.quantiles(times, n=20, method="inclusive")[18], 1)
            for name, times in self.milliseconds.items()
            if len(times) > 1
        }


def memory_of(stack: Stack) -> dict[str, float]:
    found = dict.fromkeys(WATCHED, 0.0)
    for process in family(stack.home):
        with contextlib.suppress(Exception):  # a process that has just ended
            if (name := kind_of(process)) in found:
                found[name] = max(found[name], process.memory_info().rss / 2**20)
    return found


@contextlib.contextmanager
def watching(stack: Stack, key: str) -> Iterator[Watch]:
    """Memory of the stack, and the other project at work, for the length of the block."""
    watch, stop = Watch(), threading.Event()
    threads = [
        threading.Thread(target=_watch_memory, args=(stack, watch, stop), daemon=True),
        threading.Thread(target=_work, args=(stack, key, watch, stop), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def _watch_memory(stack: Stack, watch: Watch, stop: threading.Event) -> None:
    while not stop.wait(0.25):
        for name, mib in memory_of(stack).items():
            watch.peaks[name] = max(watch.peaks.get(name, 0.0), mib)


def _work(stack: Stack, key: str, watch: Watch, stop: threading.Event) -> None:
    """A trainer of the other project, and someone who reads its trajectories."""
    headers = {"Authorization": f"Bearer {key}"}
    calls: dict[str, tuple[str, str, Any]] = {
        "score": ("POST", f"{stack.rewards_url}/api/v1/rewards/{ENDPOINT}/score", {"inputs": ITEMS[:1]}),
        "read": ("GET", f"{stack.url}/api/v1/projects/{OTHER}/trajectories?limit=5", None),
    }
    with httpx.Client(headers=headers, timeout=60, trust_env=False) as client:
        for name in itertools.cycle(calls):
            if stop.wait(PAUSE):
                return
            method, url, body = calls[name]
            began = time.perf_counter()
            try:
                answer = client.request(method, url, json=body)
            except httpx.TransportError as error:
                watch.failures.append(f"{name}: {type(error).__name__}")
                continue
            watch.milliseconds[name].append(1000 * (time.perf_counter() - began))
            if answer.status_code != 200:
                watch.failures.append(f"{name}: {answer.status_code} {answer.text[:200]}")
            elif name == "score":
                watch.rewards.add(answer.json()["results"][0]["reward"])


def prepare_other(installed: Installation, models: Path) -> str:
    """The other project, with a model behind an endpoint of the same name; its key."""
    stack = installed.stack
    stack.call("create_project", OTHER)
    model = stack.call("import_model", OTHER, str(models / "b"), "--name", "b")["model"]
    stack.call("deploy", model, ENDPOINT)
    key: str = stack.call("create_api_key", OTHER, "--scopes", "reward,ingest")["key"]
    return key


def prepare_evil(installed: Installation, server: HostileServer) -> None:
    """An endpoint of the attacker's whose verifier is theirs too."""
    verifier = {
        "name": "v",
        "type": "verifier",
        "url": f"{server.url}/v",
        "weight": 1.0,
        "timeout_seconds": 5,
    }
    model = {"name": "m", "type": "reward_model", "model": installed.told["models"]["a"]}
    headers = {"Authorization": f"Bearer {installed.told['key']}"}
    path = f"{installed.stack.url}/api/v1/projects/{PROJECT}/endpoints/evil"
    spec = {"components": [model, verifier]}
    httpx.put(path, json=spec, headers=headers, timeout=60, trust_env=False).raise_for_status()
    described = f"{installed.stack.rewards_url}/api/v1/rewards/evil/"

    def served() -> bool:
        answer = httpx.get(described, headers=headers, timeout=10, trust_env=False)
        return answer.status_code == 200 and answer.json()["version"] is not None

    until(served, 60, "the endpoint with the hostile verifier is not served")


@contextlib.contextmanager
def target_of(installed: Installation) -> Iterator[Target]:
    stack, told = installed.stack, installed.told
    options: dict[str, Any] = {"timeout": 90, "trust_env": False}
    with (
        httpx.Client(**options) as browser,
        httpx.Client(**options) as owner,
        httpx.Client(**options, headers={"Authorization": f"Bearer {told['key']}"}) as client,
    ):
        for who, login in ((browser, told["annotators"][0]), (owner, told["owner"])):
            form = fields_of(who.get(f"{stack.url}/login").text)
            fields = form | {"username": login["email"], "password": login["password"]}
            assert who.post(f"{stack.url}/login", data=fields).status_code == 302
        yield Target(stack.url, stack.rewards_url, told["key"], browser, owner, client)


def attack(target: Target, *, count: int, seed: int, attackers: int) -> list[tuple[str, Outcome, float]]:
    """What became of each: its kind, how it ended, and seconds."""

    def one(drawn: Any) -> tuple[str, Outcome, float]:
        kind, dice = drawn
        began = time.perf_counter()
        outcome = sent(kind, dice, target)
        return kind.__name__, outcome, time.perf_counter() - began

    with ThreadPoolExecutor(attackers) as pool:
        done = list(pool.map(one, itertools.islice(attacks(seed), count)))
    while HELD:
        HELD.pop().close()
    return done


def honest(target: Target, seconds: float, attackers: int) -> None:
    """As many clients as attackers, at ordinary work: what every process needs is loaded by it."""
    stop = time.monotonic() + seconds

    def work(number: int) -> None:
        for turn in itertools.count():
            if time.monotonic() > stop:
                return
            body = {"inputs": [{"text": f"an honest answer {number} {turn}"}]}
            target.client.post(f"{target.url}/api/v1/rewards/{ENDPOINT}/score", json=body)
            target.browser.get(f"{target.url}/p/{PROJECT}/campaigns/")
            document = {
                "task": "honest",
                "messages": [
                    {"role": "user", "content": f"a word {number} {turn} " * 2000},
                    {"role": "assistant", "content": "ok"},
                ],
            }
            path = f"{target.url}/api/v1/projects/{PROJECT}/trajectories?format=openai"
            target.client.post(path, content=json.dumps(document))

    with ThreadPoolExecutor(attackers) as pool:
        list(pool.map(work, range(attackers)))


def allowed(resting: Mapping[str, float], attackers: int) -> dict[str, float]:
    """MiB: 1.5 times the resting memory, and what the stated limits let so many requests hold at once.

    A document is held as bytes and as objects: at most eight times its bytes by the limits of what it may hold.
    """
    limits = {"web": attackers * (FORM + 8 * RECORD), "rewards": attackers * 8 * BODY + 2 * CACHE}
    return {name: 1.5 * mib + limits.get(name, 0) for name, mib in resting.items()}


def faults_of(outcomes: list[tuple[str, Outcome, float]]) -> list[str]:
    found = []
    for kind, outcome, _ in outcomes:
        is_fault = outcome.status.startswith("5") and outcome.status not in ("501", "502", "503")
        if is_fault or outcome.status == "hung" or (outcome.status == "503" and outcome.retry_after is None):
            found.append(f"{kind}: {outcome.status} {outcome.text}")
    return found


def run(*, count: int, seed: int, attackers: int, models: Path, resting_seconds: float) -> dict[str, Any]:
    """The figures, and what was not kept of what is promised."""
    with installation(models, ENVIRONMENT) as installed, hostile_server(seed) as server:
        key = prepare_other(installed, models)
        prepare_evil(installed, server)
        stack = installed.stack
        with target_of(installed) as target:
            honest(target, resting_seconds / 4, attackers)
            with watching(stack, key) as quiet:
                time.sleep(resting_seconds / 2)
            with watching(stack, key) as busy:
                honest(target, resting_seconds, attackers)
            resting = memory_of(stack)
            began = time.perf_counter()
            with watching(stack, key) as attacked:
                outcomes = attack(target, count=count, seed=seed, attackers=attackers)
            seconds = time.perf_counter() - began
            with watching(stack, key) as after:
                time.sleep(resting_seconds / 2)
        return _report(
            installed, outcomes, seconds, (quiet, busy, attacked, after), resting, attackers, server
        )


def _report(
    installed: Installation,
    outcomes: list[tuple[str, Outcome, float]],
    seconds: float,
    watches: tuple[Watch, Watch, Watch, Watch],
    resting: Mapping[str, float],
    attackers: int,
    server: HostileServer,
) -> dict[str, Any]:
    quiet, busy, attacked, after = watches
    statuses: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    slowest: dict[str, float] = {}
    for kind, outcome, took in outcomes:
        statuses[kind][outcome.status] += 1
        slowest[kind] = max(slowest.get(kind, 0.0), round(took, 1))
    bounds = allowed(resting, attackers)
    faults = faults_of(outcomes)
    faults += [
        f"{name} had {attacked.peaks[name]:.0f} MiB, above {bound:.0f}"
        for name, bound in bounds.items()
        if attacked.peaks.get(name, 0.0) > bound
    ]
    faults += [
        f"the other project's p95 of {name} went from {busy.p95()[name]} to {p95} ms"
        for name, p95 in attacked.p95().items()
        if p95 > 2 * max(busy.p95().get(name, 0.0), 20.0)
    ]
    faults += [f"the other project: {failure}" for failure in attacked.failures[:20]]
    if len(quiet.rewards | busy.rewards | attacked.rewards | after.rewards) != 1:
        faults.append("the other project's reward changed")
    faults += [f"traceback: {traceback}" for traceback in installed.stack.tracebacks()]
    return {
        "count": len(outcomes),
        "seconds": round(seconds),
        "statuses": {kind: dict(counts) for kind, counts in sorted(statuses.items())},
        "slowest_seconds": slowest,
        "replies": server.answered,
        "memory_mib": {
            name: {
                "resting": round(resting.get(name, 0.0)),
                "peak": round(attacked.peaks.get(name, 0.0)),
                "allowed": round(bounds.get(name, 0.0)),
                "after": round(after.peaks.get(name, 0.0)),
            }
            for name in WATCHED
        },
        "other_p95_ms": {
            "quiet": quiet.p95(), "honest_load": busy.p95(), "attacked": attacked.p95(), "after": after.p95()
        },
        "faults": faults,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} inputs")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--attackers", type=int, default=ATTACKERS)
    options = parser.parse_args()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as models:
        found = run(
            count=QUICK if options.quick else options.count,
            seed=options.seed,
            attackers=options.attackers,
            models=Path(models),
            resting_seconds=RESTING_SECONDS / (4 if options.quick else 1),
        )
    show: Callable[[Any], str] = json.dumps if options.json else lambda value: json.dumps(value, indent=1)
    print(show(found))
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""`rewards` under many clients while replicas are killed, versions swapped, the database hangs, an artifact is spoilt,
and the queue is full."""

import random
import signal
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.faults.drivers import TOLERANCE, Swapper
from tests.faults.ledger import Ledger
from tests.faults.models import ITEMS
from tests.faults.prepare import ENDPOINT, PROJECT
from tests.faults.scenario import Installation, versions_of
from tests.faults.stack import until
from tests.ports import free_port

RETRYABLE = frozenset({429, 502, 503, 504})


@dataclass
class Client(threading.Thread):
    """One item to a request, as trainers send them; every answer kept, nothing tried again within it.

    wrong: answers that are neither a reward nor a refusal that says when to try again.
    """

    url: str
    key: str
    seed: int
    stop: threading.Event
    seen: list[tuple[int, int, float]] = field(default_factory=list)  # version, place, reward
    milliseconds: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    finished: bool = False

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def run(self) -> None:
        draw, headers = random.Random(self.seed), {"Authorization": f"Bearer {self.key}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=120, trust_env=False) as client:
            while not self.stop.is_set():
                place, began = draw.randrange(len(ITEMS)), time.perf_counter()
                try:
                    answer = client.post(f"/api/v1/rewards/{ENDPOINT}/score", json={"inputs": [ITEMS[place]]})
                except httpx.TransportError as error:
                    self.answers[type(error).__name__] += 1
                    self.stop.wait(0.2)
                    continue
                self.answers[str(answer.status_code)] += 1
                if answer.status_code == 200:
                    self.milliseconds.append(1000 * (time.perf_counter() - began))
                    document = answer.json()
                    self.seen.append((document["version"], place, document["results"][0]["reward"]))
                    continue
                if answer.status_code not in RETRYABLE or "Retry-After" not in answer.headers:
                    self.wrong.append(f"{answer.status_code}: {dict(answer.headers)} {answer.text[:300]}")
                self.stop.wait(min(float(answer.headers.get("Retry-After", 1)), 1.0))
        self.finished = True

    def __hash__(self) -> int:
        return id(self)


def run(
    installed: Installation, *, clients: int, seconds: float, kills: int, database_away: float
) -> dict[str, Any]:
    """A second replica is started, and both are used through the web process. The table of docs/operations.md."""
    stack, ledger, stop = installed.stack, Ledger(), threading.Event()
    port = int(stack.environment["TOUCHSTONE_REWARDS_ADDRESS"].rpartition(":")[2])
    stack.add("second rewards", "rewards", f"--port={port}")
    ready = f"http://127.0.0.1:{port}/readyz"
    until(lambda: httpx.get(ready, trust_env=False).status_code == 200, 60, "the second replica is not ready")
    asking = [Client(stack.url, installed.told["key"], seed, stop) for seed in range(clients)]
    swapper = Swapper(stack.url, ledger, stop, "swapper-load", installed.told)
    swapper.pause = max(1.0, seconds / 20)
    for thread in (*asking, swapper):
        thread.start()
    events = _strike(installed, seconds, kills, database_away, swapper)
    stop.set()
    for thread in (*asking, swapper):
        thread.join(150)
    for client in asking:
        if not client.finished:
            ledger.violate(f"client {client.seed} hangs, or ended on an answer it could not read")
    table = _table(installed, asking, ledger, events) | {"seconds": seconds, "clients": clients}
    return table | {"usage": _usage(installed, asking)}


def _strike(
    installed: Installation, seconds: float, kills: int, database_away: float, swapper: Swapper
) -> Counter[str]:
    """Replicas die in turn; in the middle the database hangs for a while, then an artifact is spoilt, and the queue
    filled."""
    stack, events, began = installed.stack, Counter[str](), time.monotonic()
    hung = False
    for number in range(1, kills + 1):
        at = began + seconds * number / (kills + 2)
        while time.monotonic() < at:
            stack.tend()
            time.sleep(0.2)
        if stack.signal("rewards", signal.SIGKILL, number):
            events["replicas killed"] += 1
        if 2 * number >= kills and not hung:
            hung = True
            _hang_database(installed, database_away)
            events["seconds without a database"] += round(database_away)
            with swapper.held:
                events["spoilt artifacts refused"] += _spoil_artifact(installed)
            events.update(_fill_queue(installed))
    while time.monotonic() < began + seconds:
        stack.tend()
        time.sleep(0.2)
    return events


def _hang_database(installed: Installation, seconds: float) -> None:
    """Every process of the server is paused: connections are neither answered nor refused."""
    for name in ("postgres", "backend", "auxiliary"):
        for process in installed.stack.processes(name):
            process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    installed.stack.wake()


def _spoil_artifact(installed: Installation) -> int:
    """A bit of a model's weights is turned, the model deployed, fixed, and deployed again. Asserts that the revision
    before it went on answering, and that the endpoint and the log said why."""
    stack, before = installed.stack, deploy(installed, "a")
    time.sleep(2.0)  # until every replica has let go of the other model
    ((artifact,),) = stack.query("SELECT artifact FROM training_rewardmodel WHERE name = 'b'")
    weights = stack.home / "artifacts" / artifact / "mixer.safetensors"
    saved = weights.read_bytes()
    weights.write_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    try:
        said = deploy(installed, "b")
    finally:
        weights.write_bytes(saved)
    assert said["failure"] is not None and "is not the file that was saved" in said["failure"]["detail"], said
    assert said["version"] == before["version"], said
    assert f"@{said['failure']['version']} cannot be served" in stack.logged(), "the log does not say it"
    assert deploy(installed, "b")["failure"] is None
    return 1


def _fill_queue(installed: Installation, senders: int = 24) -> Counter[str]:
    """More tokens at once than are let in: everyone is answered at once, with a reward or when to come again."""
    seen: Counter[str] = Counter()
    url, headers = installed.stack.url, {"Authorization": f"Bearer {installed.told['key']}"}
    lock = threading.Lock()

    def send(number: int) -> None:
        texts = [{"text": f"{number} {place} " + "refund the order " * 300} for place in range(20)]
        with httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False) as client:
            answer = client.post(f"/api/v1/rewards/{ENDPOINT}/score", json={"inputs": texts})
        told = answer.status_code == 200 or "Retry-After" in answer.headers
        with lock:
            seen[f"large requests answered {answer.status_code}{'' if told else ' without Retry-After'}"] += 1

    threads = [threading.Thread(target=send, args=(number,)) for number in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(150)
    return seen


def _usage(installed: Installation, asking: Sequence[Client]) -> dict[str, int]:
    """What was counted next to what was answered: killed replicas lose what they had not written."""
    time.sleep(3.0)
    ((counted,),) = installed.stack.query(
        "SELECT coalesce(sum(requests), 0)::bigint FROM rewards_scorerollup"
    )
    return {"answered": sum(client.answers["200"] for client in asking), "counted": counted}


def deploy(installed: Installation, name: str) -> dict[str, Any]:
    """Put a model on the endpoint, and wait until it is served or refused; what the endpoint says of itself then."""
    stack, headers = installed.stack, {"Authorization": f"Bearer {installed.told['key']}"}
    model = installed.told["models"][name]
    spec = {"components": [{"name": "reward", "model": model, "weight": 1.0}], "transforms": []}
    with httpx.Client(base_url=stack.url, headers=headers, timeout=30, trust_env=False) as client:
        put = client.put(f"/api/v1/projects/{PROJECT}/endpoints/{ENDPOINT}", json=spec)
        number = put.raise_for_status().json()["revision"]["number"]
        said: dict[str, Any] = {}

        def settled() -> bool:
            answer = client.get(f"/api/v1/rewards/{ENDPOINT}/")
            if answer.status_code != 200:  # a replica that was killed a moment ago
                return False
            said.clear()
            said.update(answer.json())
            refused = said["failure"] is not None and said["failure"]["version"] == number
            return refused or said["version"] == number

        until(settled, 60, f"revision {number} is neither served nor refused")
    return said


def judge(installed: Installation, asking: Sequence[Client]) -> tuple[float, set[int]]:
    """The largest difference of an answer from the engine's own reward, and the versions that answered."""
    return max(_differences(installed, asking)), {
        version for client in asking for version, _, _ in client.seen
    }


def _differences(installed: Installation, asking: Sequence[Client]) -> list[float]:
    models = versions_of(installed.stack)
    seen = [request for client in asking for request in client.seen]
    return [abs(reward - installed.rewards[models[version]][place]) for version, place, reward in seen]


def _table(
    installed: Installation, asking: Sequence[Client], ledger: Ledger, events: Counter[str]
) -> dict[str, Any]:
    differences = _differences(installed, asking)
    answers = sum((client.answers for client in asking), Counter[str]())
    times = sorted(ms for client in asking for ms in client.milliseconds)
    cuts = statistics.quantiles(times, n=100)
    refused = [said for client in asking for said in client.wrong]
    return {
        "answers": dict(answers),
        "right": sum(difference <= TOLERANCE for difference in differences),
        "wrong": sum(difference > TOLERANCE for difference in differences),
        "largest_difference": max(differences),
        "not_retryable": refused[:20],
        "tracebacks": installed.stack.tracebacks(),
        "versions_served": len({version for client in asking for version, _, _ in client.seen}),
        "swaps": len(ledger.versions),
        **events,
        "p50_ms": cuts[49],
        "p95_ms": cuts[94],
        "p99_ms": cuts[98],
        "violations": ledger.violations,
    }


def environment() -> dict[str, str]:
    """Settings of an installation whose web process knows of a second replica, with a queue that can be filled."""
    return {
        "TOUCHSTONE_REWARDS_ADDRESS": f"http://127.0.0.1:{free_port()}",
        "TOUCHSTONE_REWARDS_QUEUE_TOKENS": "60000",
    }

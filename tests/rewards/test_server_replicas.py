"""Replicas behind one server name: the least loaded is asked, failed ones are left out and come back, and no score is
another model's."""

import json
import random
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from apps.rewards.serving.scaling_metrics import LOCAL, ScalingMetrics, replicas_needed
from apps.rewards.serving.servers import ReplicaInfo, ServerPool
from apps.rewards.serving.servers import pool as pools
from apps.rewards.serving.servers import replica as replicas
from apps.rewards.serving.servers.replica import FIRST_PAUSE, LONGEST_PAUSE, Outage, Replica
from benchmarks.pooling_server import PoolingProcess, logits, pooling_processes, probe
from tests.ports import free_port
from tests.rewards.conftest import wait_until
from workers.engine import Batcher
from workers.errors import Unavailable
from workers.schema.remote_models import Ask, LogitsPrompt, ModelProbe, WrongModel


@pytest.fixture
def servers() -> Iterator[list[PoolingProcess]]:
    found = [PoolingProcess(free_port(), tokens_per_second=50_000.0) for _ in range(3)]
    with pooling_processes(found):
        yield found


@pytest.fixture
def pool(servers: list[PoolingProcess], monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerPool]:
    """With what the process does every second done every 20 ms, and short pauses."""
    monkeypatch.setattr(replicas, "FIRST_PAUSE", 0.1)
    monkeypatch.setattr(replicas, "LONGEST_PAUSE", 0.3)
    found, ends = ServerPool("gpu"), threading.Event()
    found.follow([ReplicaInfo(server.address, guarded=False) for server in servers])

    def watch() -> None:
        with ThreadPoolExecutor(4) as checks:
            while not ends.wait(0.02):
                list(checks.map(lambda call: call(), found.due_checks()))

    thread = threading.Thread(target=watch)
    thread.start()
    yield found
    ends.set()
    thread.join()
    found.close()


def prompts_of(number: int) -> list[LogitsPrompt]:
    chance = random.Random(number)
    batch = []
    for _ in range(4):
        ids = [chance.randrange(500) for _ in range(chance.randrange(5, 40))]
        batch.append(LogitsPrompt(ids, [len(ids) // 2, len(ids) - 1]))
    return batch


def ask_many(ask: Ask, count: int, *, threads: int = 12, factor: float = 1.0) -> tuple[int, list[float]]:
    """How many batches failed, and the seconds of each. Every number that came is the model's own."""

    def ask_one(number: int) -> tuple[bool, float]:
        began, prompts = time.monotonic(), prompts_of(number)
        try:
            found = ask(prompts)
        except Unavailable:
            return False, time.monotonic() - began
        for prompt, rows in zip(prompts, found, strict=True):
            wanted = logits(prompt.ids, factor)
            assert [list(row) for row in rows] == [pytest.approx(wanted[place]) for place in prompt.places]
        return True, time.monotonic() - began

    with ThreadPoolExecutor(threads) as executor:
        results = list(executor.map(ask_one, range(count)))
    return sum(not is_answered for is_answered, _ in results), [seconds for _, seconds in results]


def states(pool: ServerPool) -> list[str]:
    return [state.state for state in pool.states()]


def test_load_spreads_and_what_is_killed_slow_or_another_model_costs_no_request_and_no_reward(
    servers: list[PoolingProcess], pool: ServerPool
) -> None:
    ask = pool.connect(probe())
    assert ask_many(ask, 300)[0] == 0
    shares = [state.requests / 300 for state in pool.states()]
    assert all(share > 0.05 for share in shares), f"on a busy machine, too: {shares}"

    slow, killed, other = servers
    slow.kill()
    slow.tokens_per_second = 5_000.0
    slow.start()
    kill = threading.Timer(0.2, killed.kill)
    kill.start()
    before = [state.requests for state in pool.states()]
    assert ask_many(ask, 400)[0] == 0
    kill.join()
    asked = [state.requests - count for state, count in zip(pool.states(), before, strict=True)]
    assert asked[2] > 2 * asked[0], f"the slow one gets less: {asked}"
    wait_until(lambda: states(pool) == ["serving", "out", "serving"])

    other.kill()
    other.start(factor=-2.0)
    assert ask_many(ask, 100)[0] == 0
    wait_until(lambda: states(pool) == ["serving", "out", "other model"])
    assert "another model" in pool.states()[2].reason
    killed.start()
    wait_until(lambda: states(pool)[1] == "serving")
    assert ask_many(ask, 60)[0] == 0
    other.kill()
    other.start(factor=1.0)
    wait_until(lambda: states(pool) == ["serving"] * 3)


def test_two_models_share_a_server_while_its_replicas_change_over(
    servers: list[PoolingProcess], pool: ServerPool
) -> None:
    first = pool.connect(probe())
    servers[2].kill()
    servers[2].start(factor=3.0)
    second = pool.connect(probe(3.0))
    assert ask_many(first, 40)[0] == 0
    assert ask_many(second, 40, factor=3.0)[0] == 0
    assert states(pool) == ["serving"] * 3, "each serves one of the two"


def test_a_drained_replica_gets_nothing_and_a_removed_one_is_forgotten(
    servers: list[PoolingProcess], pool: ServerPool
) -> None:
    ask = pool.connect(probe())
    infos = [ReplicaInfo(server.address, guarded=False) for server in servers]
    pool.follow([infos[0], ReplicaInfo(servers[1].address, guarded=False, is_draining=True)])
    before = servers[1].asked(), servers[2].asked()
    assert ask_many(ask, 30)[0] == 0
    assert (servers[1].asked(), servers[2].asked()) == before
    assert states(pool) == ["serving", "draining"]
    pool.follow([])
    with pytest.raises(Unavailable, match="has no replica in service"):
        ask(prompts_of(1))


def test_without_a_replica_requests_are_told_when_to_come_again(
    servers: list[PoolingProcess], pool: ServerPool
) -> None:
    ask = pool.connect(probe())
    for server in servers:
        server.kill()
    with pytest.raises(
        Unavailable, match=r"None of the 3 replicas of the server gpu .*does not respond"
    ) as said:
        ask(prompts_of(1))
    assert 1 <= said.value.retry_after <= LONGEST_PAUSE
    servers[1].start()
    assert ask_many(ask, 1)[0] == 0, "the request itself tries again"


def test_a_hung_replica_is_left_for_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    quick, hung = PoolingProcess(free_port()), PoolingProcess(free_port())
    with pooling_processes([quick, hung]):
        pool = ServerPool("gpu")
        pool.follow([ReplicaInfo(each.address, guarded=False) for each in (quick, hung)])
        ask = pool.connect(probe())
        assert ask_many(ask, 40, threads=2)[0] == 0
        hung.kill()
        hung.tokens_per_second = 1.0
        hung.start()
        monkeypatch.setattr(pools, "_LEAST_SECONDS", 0.3)
        failed, seconds = ask_many(ask, 10, threads=2)
        assert failed == 0
        assert max(seconds) < 5.0
        pool.close()


def test_the_pause_doubles_unless_the_server_says_how_long() -> None:
    failure = pools.ServerFailure("answers 500")
    outage, pauses = None, []
    for _ in range(7):
        outage = Outage.after(outage, failure)
        pauses.append(round(outage.retry_at - time.monotonic()))
    assert pauses == [FIRST_PAUSE, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE]
    asked = Outage.after(None, pools.ServerFailure("answers 429", retry_after=7))
    assert round(asked.retry_at - time.monotonic()) == 7


def test_the_factor_of_a_slow_replica() -> None:
    replica = Replica(ReplicaInfo("http://127.0.0.1:9", guarded=False))
    assert pools._load(replica, 100, 0.001) == 100, "of one that was not measured yet"
    for _ in range(5):
        replica.measure(seconds=0.15, tokens=100)
    replica.measure(seconds=10.0, tokens=100)  # once is no speed
    assert pools._load(replica, 100, 0.001) == 100, "up to twice the fastest makes no difference"
    replica.forget_speed()
    for _ in range(5):
        replica.measure(seconds=1.0, tokens=100)
    replica.outstanding = 50
    assert pools._load(replica, 100, 0.001) == pytest.approx(1500)
    replica.close()


def test_a_model_waits_for_the_trial_of_the_only_replica(
    servers: list[PoolingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, tries, going_on = ServerPool("gpu"), threading.Event(), threading.Event()
    pool.follow([ReplicaInfo(servers[0].address, guarded=False)])
    identify = Replica.identify

    def slow(replica: Replica, known: ModelProbe) -> Any:
        tries.set()
        going_on.wait(10)
        return identify(replica, known)

    monkeypatch.setattr(Replica, "identify", slow)
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(pool.connect, probe())
        assert tries.wait(10)
        second = callers.submit(pool.connect, probe())
        threading.Timer(0.1, going_on.set).start()
        assert first.result(20) is not second.result(20)
    pool.close()


def test_the_probe_tells_models_apart_at_a_few_places_too() -> None:
    own = probe()
    few = own.prompt(whole=False)
    assert list(few.places) == [2, 5, 8, 11]
    own.require_same(few.places, [own.values[place] for place in few.places])
    with pytest.raises(WrongModel, match="off by 2"):
        own.require_same(few.places, [[-value for value in own.values[place]] for place in few.places])
    short = ModelProbe((7,), ((1.0, 2.0),), 8)
    assert list(short.prompt(whole=False).places) == [0]


def test_a_scaler_reads_load_speed_and_replicas(servers: list[PoolingProcess], pool: ServerPool) -> None:
    ask, local, batcher = pool.connect(probe()), Batcher(), Batcher(threads=12)
    metrics = ScalingMetrics(
        lambda: {LOCAL: local, ("desk", "gpu"): batcher}, lambda: {("desk", "gpu"): pool}
    )
    registry = CollectorRegistry()
    registry.register(metrics)
    assert ask_many(ask, 60)[0] == 0
    servers[2].kill()
    wait_until(lambda: states(pool)[2] == "out")
    families = {
        each.name: each for each in text_string_to_metric_families(generate_latest(registry).decode())
    }

    def value(name: str, **labels: str) -> float:
        wanted = {"project": "desk", "server": "gpu"} | labels
        (found,) = [
            sample.value
            for family in families.values()
            for sample in family.samples
            if sample.name == f"touchstone_{name}" and sample.labels == wanted
        ]
        return found

    assert value("replicas", state="serving") == 2
    assert value("replicas", state="out") == 1
    assert value("engine_threads") == 12
    assert value("engine_replicas_needed") == 0.0, "nothing came through the engine"
    assert 0.0 <= value("engine_utilisation") <= 1.0
    assert value("replica_batches_total", replica=servers[0].address) > 5
    assert value("replica_outstanding_tokens", replica=servers[0].address) == 0
    asked = yaml.safe_load_all(Path("docs/operations/autoscaling.yaml").read_text())
    text = json.dumps(list(asked)) + Path("docs/operations/autoscaling.md").read_text()
    named = set(re.findall(r"touchstone_(?:engine|replica)\w*", text))
    there = {sample.name for family in families.values() for sample in family.samples}
    assert named <= there | {name.removesuffix("_total") for name in there}, "of what the documentation names"
    local.close()
    batcher.close()


def test_the_replicas_that_a_load_needs() -> None:
    """2,100 tokens/s at 70 % of 1,000 are three replicas; 2,800 that wait, to be done within 2 s, are two more."""
    assert replicas_needed(arrival=2100, queued=0, capacity=1000) == pytest.approx(3)
    assert replicas_needed(arrival=2100, queued=2800, capacity=1000) == pytest.approx(5)


def test_the_log_has_a_failure_once_and_the_return(
    servers: list[PoolingProcess], pool: ServerPool, caplog: pytest.LogCaptureFixture
) -> None:
    """While a replica is away it is tried again and again, and every trial fails in the same way."""
    caplog.set_level("INFO", logger=pools.__name__)
    ask = pool.connect(probe())
    away = servers[0].address

    def logged() -> list[str]:
        return [message for message in caplog.messages if away in message or "127.0.0.1:" in message]

    servers[0].kill()
    wait_until(lambda: pool.states()[0].errors >= 4)
    (failure,) = logged()
    assert failure.startswith(
        f"the replica {away} of the server gpu failed: it does not respond (ConnectError"
    )
    servers[0].start()
    wait_until(lambda: states(pool)[0] == "serving")
    assert ask_many(ask, 1)[0] == 0
    assert [message for message in logged() if message.endswith("is back")] == logged()[-1:]
    assert len(logged()) == 2

"""Random faults with one's own PostgreSQL and broker; `python -m benchmarks.faults` runs more of them, and longer."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import psycopg
import pytest
from kombu import Connection

from tests.faults import chaos, load, scenario
from tests.faults.drivers import TOLERANCE
from tests.faults.ledger import Ledger
from tests.faults.outside import BROKERS, SERVER, Wire, outside_database, wired
from tests.faults.scenario import Installation, installation
from tests.faults.stack import until

pytestmark = pytest.mark.long
SECONDS = 5.0


@pytest.fixture(scope="module")
def on(models: Path) -> Iterator[Callable[[str], Installation]]:
    """One installation, stopped and started again to move it to another broker."""
    with ExitStack() as stack:
        installed: Installation | None = None
        at = ""

        def move(broker: str) -> Installation:
            nonlocal installed, at
            _skip_unless_there(broker)
            if installed is None:
                database = stack.enter_context(outside_database("touchstone_faults"))
                environment, wires = stack.enter_context(wired(database, BROKERS[broker]))
                outside = {"wires": wires, "direct": database}
                installed = stack.enter_context(installation(models, environment, **outside))
            elif broker != at:
                wire = stack.enter_context(closing(Wire(BROKERS[broker])))
                assert installed.stack.stop() == 0
                installed.stack.environment["CELERY_BROKER_URL"] = wire.url
                installed.stack.wires["broker"] = wire
                installed.stack.start()
            at = broker
            return installed

        yield move


# The broker is cut, hangs and is emptied, and the supervisor killed; the database hangs, and who asks it is killed.
@pytest.mark.parametrize(("broker", "seed"), [("redis", 3), ("rabbitmq", 4)])
def test_random_faults(on: Callable[[str], Installation], broker: str, seed: int) -> None:
    plans = {seed: chaos.plan(seed, SECONDS, every=1.2, outside=True)}
    ledger = scenario.endure(on(broker), plans, SECONDS)
    assert ledger.violations == [], ledger.faults
    assert ledger.judgements and ledger.trajectories and ledger.runs and ledger.answers["scorer 200"]


def test_rewards_need_no_database_once_they_serve(on: Callable[[str], Installation]) -> None:
    """Known keys and revisions are answered, and rightly, however long it is away: here for seconds."""
    installed = on("rabbitmq")
    stop = threading.Event()
    asking = [
        load.Client(installed.stack.rewards_url, installed.told["key"], seed, stop) for seed in range(4)
    ]
    for client in asking:
        client.start()
    wire = installed.stack.wires["database"]
    wire.cut()
    try:
        health = f"{installed.stack.rewards_url}/readyz"
        until(lambda: httpx.get(health, trust_env=False).json()["database"] == "unreachable", 30, "unnoticed")
        before = [len(client.seen) for client in asking]
        until(
            lambda: all(len(client.seen) > was + 20 for client, was in zip(asking, before, strict=True)),
            60,
            "rewards are no longer given",
        )
    finally:
        wire.mend()
    until(lambda: httpx.get(health, trust_env=False).json()["database"] == "ok", 30, "it is not seen again")
    stop.set()
    for client in asking:
        client.join(60)
        assert client.wrong == [] and set(client.answers) == {"200"}
    worst, _ = load.judge(installed, asking)
    assert worst <= TOLERANCE


def test_at_the_end_nothing_is_left(on: Callable[[str], Installation]) -> None:
    ledger = Ledger()
    scenario.end(on("rabbitmq"), ledger)
    assert ledger.violations == []


def _skip_unless_there(broker: str) -> None:
    try:
        with (
            psycopg.connect(SERVER, connect_timeout=3),
            Connection(BROKERS[broker], connect_timeout=3) as link,
        ):
            link.ensure_connection(max_retries=1, timeout=3)
    except Exception as error:
        pytest.skip(
            f"no PostgreSQL at {SERVER}, or no {broker} at {BROKERS[broker]}: {error}; .ci/run starts both"
        )

"""One installation with everything embedded, through faults at chosen moments, and out of its backup.

In this order and on one worker, since starting one takes longer than most of these. `test_random.py` has
faults at random. The backup, which starts a second installation, is among the long tests; tests/core/test_backup.py
restores a smaller one.
"""

import re
import signal
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from apps.core.storage import private_files
from tests.faults import load, scenario
from tests.faults.drivers import TOLERANCE, fields_of
from tests.faults.ledger import Ledger
from tests.faults.prepare import PROJECT
from tests.faults.restored import check_restored
from tests.faults.scenario import Installation, installation
from tests.faults.stack import Stack, until

pytestmark = pytest.mark.slow
_CLAIMING = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'datasets_datasetversion'::regclass"


@pytest.fixture(scope="module")
def installed(models: Path, forked_programs: None) -> Iterator[Installation]:
    with installation(models) as installed:
        yield installed


def _annotator(installed: Installation) -> tuple[httpx.Client, str, dict[str, str]]:
    """Signed in, with a form to send: the client, its address, its fields."""
    client = httpx.Client(base_url=installed.stack.url, timeout=30, trust_env=False, follow_redirects=False)
    login = installed.told["annotators"][0]
    form = fields_of(client.get("/login").text) | {"username": login["email"], "password": login["password"]}
    assert client.post("/login", data=form).status_code == 302
    text = client.get(f"/p/{PROJECT}/campaigns/{installed.told['campaign']}/work/").text
    action = re.search(r'id="decision"[^>]*action="([^"]+)"', text)
    assert action is not None
    return client, action[1], fields_of(text)


def test_the_web_process_is_killed_between_request_and_commit(installed: Installation) -> None:
    """The judgement waits for a row someone holds, and its process dies; sent again, it is there once."""
    stack = installed.stack
    client, action, form = _annotator(installed)
    form |= {"choice": "right-2", "active_seconds": "3"}
    item = "SELECT item_id FROM annotation_assignment WHERE id = %s"
    ((number,),) = stack.query(item, int(action.rstrip("/").split("/")[-2]))
    with psycopg.connect(stack.database_url) as held:
        held.execute("SELECT 1 FROM annotation_item WHERE id = %s FOR UPDATE", (number,))
        killer = _when(stack, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'", "web")
        with pytest.raises(httpx.TransportError):
            client.post(action, data=form)
        killer.join(30)
    count = "SELECT count(*) FROM annotation_annotation WHERE idempotency_key = %s"
    assert stack.query(count, uuid.UUID(form["idempotency_key"])) == [(0,)]
    until(lambda: client.get("/healthz").status_code == 200, 60, "web does not come back")
    for _ in range(2):  # the browser tries again, and once more
        assert client.post(action, data=form).status_code == 302
    assert stack.query(count, uuid.UUID(form["idempotency_key"])) == [(1,)]
    client.close()


def _when(stack: Stack, true: str, name: str) -> threading.Thread:
    """Kill the process `name` as soon as the query finds something."""

    def kill() -> None:
        until(lambda: stack.query(true), 20, "nobody waits")
        stack.signal(name, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def _freeze(installed: Installation, name: str) -> None:
    headers = {"Authorization": f"Bearer {installed.told['key']}"}
    url = f"{installed.stack.url}/api/v1/projects/{PROJECT}/datasets"
    assert (
        httpx.post(url, json={"name": name}, headers=headers, timeout=30, trust_env=False).status_code == 202
    )


def _dataset_version(installed: Installation, name: str) -> tuple[str, int]:
    ((state, attempt),) = installed.stack.query(
        "SELECT state, attempt FROM datasets_datasetversion WHERE name = %s", name
    )
    return state, attempt


def test_a_worker_is_killed_while_it_claims(installed: Installation) -> None:
    """It waits for the table it claims from; the next worker's claim is the first attempt."""
    stack = installed.stack
    _freeze(installed, "busy")
    until(
        lambda: _dataset_version(installed, "busy")[0] == "succeeded", 60, "the dataset version is not built"
    )
    with psycopg.connect(stack.database_url) as held:
        held.execute(
            "UPDATE datasets_datasetversion SET state = 'queued', attempt = 0, heartbeat_at = NULL, finished_at = NULL "
            "WHERE name = 'busy'"
        )
        held.commit()
        held.execute("LOCK TABLE datasets_datasetversion IN EXCLUSIVE MODE")
        if _dataset_version(installed, "busy") != ("queued", 0):
            pytest.fail("it was claimed before the table was locked")
        killer = _when(stack, _CLAIMING, "default")
        killer.join(30)
    until(
        lambda: _dataset_version(installed, "busy") == ("succeeded", 1),
        60,
        "the dataset version is not built",
    )


def test_a_worker_is_killed_after_it_claimed(installed: Installation) -> None:
    """Its claim grows stale, and a second attempt does the work."""
    stack = installed.stack
    with psycopg.connect(stack.database_url) as held:
        held.execute("LOCK TABLE annotation_annotation IN ACCESS EXCLUSIVE MODE")  # what it reads first
        _freeze(installed, "after")
        until(lambda: _dataset_version(installed, "after") == ("running", 1), 30, "nobody claims it")
        assert stack.signal("default", signal.SIGKILL)
    until(
        lambda: _dataset_version(installed, "after") == ("succeeded", 2),
        60,
        "the dataset version is not built",
    )


def test_a_damaged_artifact_is_not_served(installed: Installation) -> None:
    """Asked all the while, the old revision goes on; fixed and deployed again, it is the newest that answers."""
    stack, stop = installed.stack, threading.Event()
    load.deploy(installed, "a")
    ((artifact,),) = stack.query("SELECT artifact FROM training_rewardmodel WHERE name = 'b'")
    weights = stack.home / "artifacts" / artifact / "mixer.safetensors"
    saved = weights.read_bytes()
    asking = [load.Client(stack.url, installed.told["key"], seed, stop) for seed in range(4)]
    for client in asking:
        client.start()
    weights.write_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    failure = load.deploy(installed, "b")["failure"]
    assert "mixer.safetensors is not the file that was saved" in failure["detail"]
    weights.write_bytes(saved)
    assert load.deploy(installed, "b")["failure"] is None
    stop.set()
    for client in asking:
        client.join(60)
        assert client.wrong == [] and set(client.answers) == {"200"}
    worst, versions = load.judge(installed, asking)
    assert worst <= TOLERANCE
    assert failure["version"] not in versions


@pytest.mark.long
def test_all_of_it_comes_back_from_a_backup(installed: Installation) -> None:
    check_restored(installed)


def test_nothing_in_the_home_is_open_to_others(installed: Installation) -> None:
    assert private_files.open_paths(installed.stack.home, 100_000) == []


def test_at_the_end_nothing_is_left(installed: Installation) -> None:
    ledger = Ledger()
    scenario.end(installed, ledger)
    assert ledger.violations == []

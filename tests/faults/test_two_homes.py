"""Two machines: homes of their own, one PostgreSQL, one broker, and artifacts in S3 (moto's server)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from moto.server import ThreadedMotoServer

from tests.core.homes import open_home
from tests.faults import scenario
from tests.faults.drivers import TOLERANCE
from tests.faults.invariants import weights_of
from tests.faults.models import ITEMS, RECIPE, reference_of, rewards_of
from tests.faults.outside import outside_database
from tests.faults.prepare import DATASET, ENDPOINT, PROJECT
from tests.faults.scenario import Installation, await_endpoint
from tests.faults.stack import Stack, until
from tests.migrated import fill_home

pytestmark = pytest.mark.long
BUCKET = "touchstone-artifacts"


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """Settings of a bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    secrets = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret"}
    url, region = f"http://{host}:{port}", "us-east-1"
    names = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing-secret"}
    client = boto3.client("s3", endpoint_url=url, region_name=region, **names)
    client.create_bucket(Bucket=BUCKET)
    client.close()
    yield {"TOUCHSTONE_S3_BUCKET": BUCKET, "TOUCHSTONE_S3_URL": url, "AWS_DEFAULT_REGION": region, **secrets}
    server.stop()


@pytest.fixture
def pair(models: Path, s3: dict[str, str]) -> Iterator[tuple[Installation, Stack]]:
    with open_home() as first, open_home() as second, outside_database("touchstone_two_homes") as database:
        shared = {"DATABASE_URL": database, "TOUCHSTONE_SECRET_KEY": "one-secret-for-both-0123456789", **s3}
        installed = scenario.install(first, models, shared)
        two = Stack(second, shared)
        try:
            two.start()
            yield installed, two
        finally:
            installed.stack.destroy()
            two.destroy()


def test_two_machines_serve_the_same_and_one_ends_what_the_other_began(
    pair: tuple[Installation, Stack], models: Path, tmp_path: Path
) -> None:
    installed, two = pair
    one, key = installed.stack, installed.told["key"]
    await_endpoint(two, key)
    for stack in (one, two):
        assert scenario.rewards(stack, key) == pytest.approx(installed.rewards["a"], abs=TOLERANCE)

    body = {"dataset": DATASET, "recipe": RECIPE, "name": "trained", "seed": 7}
    run = _post(one, key, f"/api/v1/projects/{PROJECT}/runs", body)["run"]
    until(lambda: one.processes("training") or two.processes("training"), 60, "the run does not start")
    holds, other = (one, two) if one.processes("training") else (two, one)
    until(lambda: list(holds.home.glob("runs/*/checkpoints/*.pt")), 60, "no checkpoint is written")
    holds.kill_supervisor()  # the machine is gone, with the checkpoint
    until(lambda: not holds.processes("training"), 20, "the training process outlives its machine")
    until(lambda: _state(other, run) == [("succeeded", 2)], 120, f"nobody ends it:\n{other.said()}")

    # Trained again on another machine, it is the model an uninterrupted run makes.
    data = next(other.home.glob("cache/artifacts/snapshots/*"))
    reference = reference_of(models, installed.told["snapshot"]["hash"], data)
    other.call("export_model", f"{PROJECT}/trained", str(tmp_path / "exported"))
    weights, exported = weights_of(reference), weights_of(tmp_path / "exported")
    assert exported.keys() == weights.keys()
    assert all(exported[name].equal(weights[name]) for name in weights)

    other.call("deploy", f"{PROJECT}/trained", ENDPOINT)
    expected = rewards_of(reference, ITEMS)
    until(
        lambda: scenario.rewards(other, key) == pytest.approx(expected, abs=TOLERANCE), 60, "it is not served"
    )
    for home in (one.home, two.home):  # everything went to the bucket, and is only cached here
        assert not (home / "artifacts").exists()

    made = other.call("backup", str(tmp_path / "all.backup"))
    with open_home() as third:  # with no bucket and a database of its own
        fill_home(third)
        alone = Stack(third)
        restored = alone.call("restore", str(tmp_path / "all.backup"))
        assert (restored["rows"], restored["artifacts"]) == (made["rows"], made["artifacts"])
        assert restored["artifacts"] == sum(path.is_file() for path in (third / "artifacts").rglob("*")) > 10


def _post(stack: Stack, key: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {key}"}
    answer = httpx.post(f"{stack.url}{path}", json=body, headers=headers, timeout=60, trust_env=False)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def _state(stack: Stack, run: int) -> list[tuple[Any, ...]]:
    return stack.query("SELECT state, attempt FROM training_run WHERE id = %s", run)

"""Real processes with a wrong setting end at their start, with a sentence."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apps.core.database import embedded_postgres, roles
from tests.core.homes import open_home
from tests.migrated import fill_home
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
Manage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("right")


@pytest.fixture(scope="module")
def manage() -> Iterator[Manage]:
    """manage(home, command..., VARIABLE=value): on a database that several homes share."""
    with open_home() as home:
        fill_home(home)
        server = embedded_postgres.start(home, durable=False)

        def run(own: Path, *command: str, **given: str) -> "subprocess.CompletedProcess[str]":
            shared = {"DATABASE_URL": server.connection.url(role=roles.OWNER), "TOUCHSTONE_HOME": str(own)}
            return subprocess.run(
                [sys.executable, "manage.py", *command], cwd=ROOT, env=os.environ | shared | given,
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip

        try:
            yield run
        finally:
            server.stop()


def test_processes_with_another_artifact_store_than_the_installation_end(
    manage: Manage, right: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong"
    found = json.loads(manage(right, "doctor", "--json").stdout)["checks"]
    (store,) = (check for check in found if check["name"] == "artifact store")
    assert store["ok"] and str(right / "artifacts") in store["says"]
    done = manage(wrong, "worker", "gpu")
    assert done.returncode == 1
    sentence = done.stderr.strip().splitlines()[-1]
    assert f"it has the folder {wrong / 'artifacts'} of" in sentence
    assert f"the installation has the folder {right / 'artifacts'} of" in sentence
    assert "set TOUCHSTONE_S3_BUCKET on all machines" in sentence


@pytest.mark.parametrize(
    ("command", "setting", "device", "says"),
    [
        ("rewards", "TOUCHSTONE_REWARDS_DEVICE", "gpu", "it must be auto, cpu, cuda, or cuda:N"),
        ("worker", "TOUCHSTONE_TRAINING_DEVICE", "cuda:99", "'cuda:99': the device is set to cuda:99, but "),
    ],
)
def test_a_wrong_device_ends_what_would_compute_on_it(
    manage: Manage, right: Path, command: str, setting: str, device: str, says: str
) -> None:
    words = {"rewards": ["rewards", f"--port={free_port()}"], "worker": ["worker", "gpu"]}[command]
    done = manage(right, *words, **{setting: device})
    assert done.returncode == 1
    assert f"{setting} is" in done.stderr and says in done.stderr
    assert "Traceback" not in done.stderr

"""A disk that fills under everything at once: refusals in words, nothing lost, and all goes on when there is room."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.core.homes import small_disk
from tests.faults import invariants, scenario
from tests.faults.drivers import TOLERANCE
from tests.faults.ledger import Ledger
from tests.faults.models import RECIPE
from tests.faults.prepare import DATASET, PROJECT, lines, trajectory
from tests.faults.scenario import Installation
from tests.faults.stack import Stack, until

pytestmark = pytest.mark.long


@contextmanager
def _full(home: Path) -> Iterator[None]:
    """Not a byte is left, until the end of the block."""
    ballast = home / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (2**20, 2**12):
            try:
                while True:
                    os.write(file.fileno(), b"0" * size)
            except OSError as error:
                assert error.errno == errno.ENOSPC
    try:
        yield
    finally:
        ballast.unlink()


def test_a_disk_that_fills_and_has_room_again(models: Path) -> None:
    with small_disk("size=700m") as home:
        installed = scenario.install(home, models)
        stack = installed.stack
        try:
            ledger = Ledger()
            _train(stack, installed.told["key"])
            with _full(home):
                _while_it_is_full(installed)
            until(
                lambda: _import(stack, installed.told["key"], 0).status_code == 200, 60, "nothing is imported"
            )
            invariants.settle(stack)  # what could not be written of the run's end is found out again
            scenario.resume_failed(installed, ledger)
            assert stack.query("SELECT state, error FROM training_run") == [("succeeded", "")], (
                stack.tracebacks()
            )
            scenario.end(installed, ledger)
            assert ledger.violations == []
        finally:
            stack.destroy()


def _train(stack: Stack, key: str) -> None:
    """A run that has written its first checkpoint."""
    headers = {"Authorization": f"Bearer {key}"}
    body = {"dataset": DATASET, "recipe": RECIPE | {"epochs": 40}, "name": "trained", "seed": 7}
    url = f"{stack.url}/api/v1/projects/{PROJECT}/runs"
    httpx.post(url, json=body, headers=headers, timeout=60, trust_env=False).raise_for_status()
    until(lambda: list(stack.home.glob("runs/*/checkpoints/*.pt")), 60, "no checkpoint is written")


def _while_it_is_full(installed: Installation) -> None:
    stack, key = installed.stack, installed.told["key"]
    refused = _import_until_refused(stack, key)
    assert "The disk of the database is full. Nothing was changed" in refused.json()["detail"]
    # What only reads goes on: rewards, and the pages.
    assert scenario.rewards(stack, key) == pytest.approx(installed.rewards["a"], abs=TOLERANCE)
    assert httpx.get(f"{stack.url}/login", trust_env=False).status_code == 200
    with pytest.raises(AssertionError, match=r"FAIL disk: 0\.0 GiB free"):
        stack.call("doctor")
    until(lambda: not stack.processes("training"), 60, "the run goes on without its checkpoints")


def _import_until_refused(stack: Stack, key: str) -> httpx.Response:
    for number in range(1000):
        answer = _import(stack, key, number)
        if answer.status_code != 200:
            assert answer.status_code == 503, answer.text
            return answer
    raise AssertionError("the disk does not fill")


def _import(stack: Stack, key: str, number: int) -> httpx.Response:
    """A hundred trajectories of ten kilobytes, which do not compress."""
    records = [
        trajectory(place, 0) | {"task": f"big-{number}-{place}", "response": os.urandom(5000).hex()}
        for place in range(100)
    ]
    url = f"{stack.url}/api/v1/projects/{PROJECT}/trajectories?format=prompt-response"
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(url, content=lines(records).read(), headers=headers, timeout=60, trust_env=False)

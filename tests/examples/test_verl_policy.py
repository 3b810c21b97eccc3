"""A short version of docs/examples/verl_policy.py, on a real reward service: it pays for letters."""

import json
import statistics
import subprocess
import sys

import pytest

from tests.examples.conftest import DeskService
from tests.peer_modules import PEERS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

STEPS = 8


def test_a_policy_trained_by_verl_learns_what_is_paid(desk_service: DeskService) -> None:
    for package in ("verl", "tensordict", "omegaconf"):
        if not (PEERS / package).is_dir():
            pytest.skip(f"{package} is not installed in {PEERS}: `make install-dev` fetches it from PyPI")
    command = [
        sys.executable,
        "-m",
        "tests.examples.verl_training",
        desk_service.url,
        desk_service.key,
        str(STEPS),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    curve = json.loads(done.stdout.splitlines()[-1])
    assert len(curve["given"]) == len(curve["true"]) == STEPS
    first, last = statistics.mean(curve["given"][:2]), statistics.mean(curve["given"][-2:])
    assert last > first + 0.1, (first, last)

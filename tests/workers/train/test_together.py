"""Several processes that end together."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.train.distributed import launch as together


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def run(code: str) -> int:
    return together.train_together([sys.executable, "-c", f"import os, signal, sys, time\n{code}"], 2)


def test_each_knows_its_rank() -> None:
    assert run("sys.exit(0 if os.environ['WORLD_SIZE'] == '2' and os.environ['MASTER_PORT'] else 9)") == 0
    assert run("sys.exit(4 * int(os.environ['RANK'] == os.environ['LOCAL_RANK'] == '1'))") == 4


def test_one_that_fails_ends_the_others_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "_GRACE", 0.1)
    started = time.monotonic()
    assert run("sys.exit(2) if os.environ['RANK'] == '0' else time.sleep(60)") == 2
    assert time.monotonic() - started < 30


def test_sigterm_reaches_all_and_their_status_is_told() -> None:
    code = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\ntime.sleep(60)\nsys.exit(1)"
    timer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    assert run(code) == 3


def test_memory_that_ran_out_in_one_process_starts_all_again(tmp_path: Path) -> None:
    """The second process ends as one that halved its micro batches, the first of the lost connection."""
    code = f"""
path = {str(tmp_path / "halved")!r} + os.environ['RANK']
first = not os.path.exists(path)
open(path, 'a').write('.')
sys.exit((6 if os.environ['RANK'] == '1' else 1) if first else 0)"""
    assert run(code) == 0
    assert [(tmp_path / f"halved{rank}").read_text() for rank in (0, 1)] == ["..", ".."]

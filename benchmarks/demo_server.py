"""A demo that a benchmark starts for itself."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from touchstone_client import RewardClient, Unavailable
from touchstone_client.values import Item

from tests.ports import free_port

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Demo:
    """web, rewards: addresses. key: for everything."""

    web: str
    rewards: str
    key: str


@contextmanager
def demo() -> Iterator[Demo]:
    """A demo in a home of its own, on ports that are free."""
    with tempfile.TemporaryDirectory(prefix="policies-") as home:
        environment = os.environ | {"TOUCHSTONE_HOME": home, "PYTHONUNBUFFERED": "1"}
        manage = [sys.executable, str(ROOT / "manage.py")]
        port, rewards_port = free_port(), free_port()
        process = subprocess.Popen(
            [*manage, "demo", f"--port={port}", f"--rewards-port={rewards_port}"],
            env=environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            web = ""
            for line in process.stdout:
                if found := re.search(r"Touchstone is up at (\S+)", line):
                    web = found[1]
                    break
            if not web:
                raise RuntimeError("the demo did not come up")
            made = subprocess.run(
                [
                    *manage,
                    "create_api_key",
                    "sample",
                    "--scopes",
                    "reward,feedback:write,train,admin",
                    "--json",
                ],
                env=environment,
                cwd=ROOT,
                check=True,
                capture_output=True,
                text=True,
            )
            yield Demo(web, f"http://127.0.0.1:{rewards_port}", json.loads(made.stdout)["key"])
        finally:
            process.terminate()
            process.wait(60)


def wait_until_served(client: RewardClient, item: Item | None = None, *, seconds: float = 300.0) -> None:
    """Until a replica has loaded the endpoint: a busy machine takes longer for that than a client tries again. item:
    one that the endpoint takes, where that is not text. Raises Unavailable where it has not after `seconds`."""
    until = time.monotonic() + seconds
    served = False
    while not served:
        try:
            client.score([item or {"text": "Good morning."}], steps=False, uncertainty=False)
            served = True
        except Unavailable:
            if time.monotonic() > until:
                raise

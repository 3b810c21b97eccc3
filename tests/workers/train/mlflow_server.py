"""A real MLflow server on this machine. It needs `alembic` next to mlflow-skinny, or the full `mlflow`."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError

STARTING = 90.0  # seconds that its first start may take


def mlflow_command() -> list[str] | None:
    """None where the server cannot be started. TOUCHSTONE_TEST_MLFLOW: the `mlflow` of another environment."""
    if other := os.environ.get("TOUCHSTONE_TEST_MLFLOW"):
        return [other]
    return [sys.executable, "-m", "mlflow"] if find_spec("alembic") and find_spec("mlflow") else None


@contextmanager
def running_mlflow_server(folder: Path) -> Iterator[str]:
    """Its address. Runs are kept in SQLite, artifacts in a folder that the server serves."""
    command = mlflow_command()
    assert command is not None
    folder.mkdir()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    options = {
        "backend-store-uri": f"sqlite:///{folder}/mlflow.db",
        "artifacts-destination": str(folder / "artifacts"),
        "host": "127.0.0.1",
        "port": str(port),
        "workers": "1",
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    with (folder / "log.txt").open("wb") as out:
        server = subprocess.Popen(
            [*command, "server", *arguments], stdout=out, stderr=out, cwd=folder, start_new_session=True
        )
    try:
        _await_server(server, address, folder / "log.txt")
        yield address
    finally:
        os.killpg(server.pid, 15)
        server.wait(30)


def _await_server(server: "subprocess.Popen[bytes]", address: str, log: Path) -> None:
    deadline = time.monotonic() + STARTING
    while True:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except (URLError, OSError):
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)

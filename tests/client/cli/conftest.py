"""Running `touchstone` in this process, with settings of its own."""

import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from touchstone_client.cli import connection
from touchstone_client.cli.main import main
from touchstone_client.retries import Retries

SETTINGS = (
    "TOUCHSTONE_URL",
    "TOUCHSTONE_PROJECT",
    "TOUCHSTONE_API_KEY",
    "TOUCHSTONE_KEY",
    "TOUCHSTONE_PROFILE",
)


@dataclass(frozen=True)
class Run:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        (line,) = self.out.splitlines()
        return json.loads(line)


Touchstone = Callable[..., Run]


@pytest.fixture
def settings_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config" / "touchstone"


@pytest.fixture
def touchstone(
    settings_folder: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Touchstone:
    """touchstone(*arguments, stdin=b""): its exit status and what it printed. No attempt is repeated."""
    # The server is a thread of this process: handlers that other tests left with a closed stream would print here.
    monkeypatch.setattr(logging, "raiseExceptions", False)
    monkeypatch.setattr(connection, "RETRIES", Retries(attempts=1))
    monkeypatch.setattr(connection.Connection.client, "__kwdefaults__", {"retries": Retries(attempts=1)})

    def run(*arguments: object, stdin: bytes = b"") -> Run:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin), encoding="utf-8"))
        capsysbinary.readouterr()
        status = main([str(argument) for argument in arguments])
        printed = capsysbinary.readouterr()
        return Run(status, printed.out.decode(), printed.err.decode())

    return run

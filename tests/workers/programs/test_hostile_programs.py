"""Hostile reward programs: none gets out of the sandbox, and each is refused in words."""

import socket
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from tests.workers.programs.hostile_programs import KINDS, LEAVING_STATE, PROGRAMS
from workers.errors import InvalidRecord
from workers.programs.sandbox import ProgramFailure, ProgramResult, run_program
from workers.programs.source import Program, read_program

SECONDS = 0.1


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("host") / "canary"
    path.write_text("what only the host may read")
    return path


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def unchecked(code: str) -> Program:
    """Without the checks of the source, so that the sandbox alone has to hold."""
    body = indent(code, " ")
    return Program(code, f"def _program(__trajectory):\n{body} return reward(__trajectory), None\n", False)


def test_there_are_enough() -> None:
    assert len(PROGRAMS) == len(set(PROGRAMS)) >= 200
    assert all(len(bodies) >= 10 for bodies in KINDS.values())


@pytest.mark.parametrize("kind", KINDS)
def test_none_gets_out(kind: str, canary: Path, listener: socket.socket) -> None:
    port = str(listener.getsockname()[1])
    for found, code in PROGRAMS:
        if found != kind:
            continue
        program = unchecked(code.replace("PATH", str(canary)).replace("PORT", port))
        (result,) = run_program(program, [{"steps": []}], SECONDS)
        assert isinstance(result, ProgramFailure), code
        assert len(result.message.split()) >= 3, code
    assert canary.read_text() == "what only the host may read"
    assert [path.name for path in canary.parent.iterdir()] == ["canary"]
    with pytest.raises(BlockingIOError):  # no connection came
        listener.accept()
    # The next program is none the worse for it.
    assert run_program(read_program("def reward(t):\n    return 2"), [{}]) == [ProgramResult(2.0)]


def test_what_could_leave_something_behind_is_refused_with_its_line() -> None:
    for code in LEAVING_STATE:
        with pytest.raises(InvalidRecord, match=r"^line [23]: .* available"):
            read_program(code)

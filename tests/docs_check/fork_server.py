"""Commands as forks of one process that has imported everything: of ours, and `python` with a file, module or code.

A new interpreter takes 1 to 6 s of CPU until it has imported what a command needs, and the documentation has dozens of
commands. The server is itself a fork of the tests' process, made before threads are: its children use the database and
the settings of the test. `fork_client.py` hands it a command.
"""

import gc
import json
import os
import runpy
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from apps.core.processes.parent_death import die_with
from tests import forked

Program = Callable[[list[str]], object]  # takes the arguments; its exit status, or None


def serve(address: Path, programs: Mapping[str, Program], kept: set[int]) -> int:
    """Fork the server; its process id. kept: descriptors that its children keep."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(address))
    listening.listen()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        listening.close()
        return pid
    try:
        os.setsid()
        die_with(parent)
        gc.freeze()
        nothing = os.open(os.devnull, os.O_RDWR)
        forked.let_go_of_descriptors(nothing, {listening.fileno(), *kept})
        forked.forget_log_handlers()
        _accept(listening, programs)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def stop(server: int) -> None:
    """End it and what it forked; their CPU time counts as that of this process's children."""
    os.kill(server, signal.SIGTERM)
    os.waitpid(server, 0)


def _accept(listening: socket.socket, programs: Mapping[str, Program]) -> None:
    children: set[int] = set()

    def end(*_: object) -> None:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    while True:
        connection, _ = listening.accept()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        children -= {child for child in children if os.waitpid(child, os.WNOHANG)[0]}
        child = os.fork()
        if child == 0:
            listening.close()
            _answer(connection, programs)
        children.add(child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        connection.close()


def _answer(connection: socket.socket, programs: Mapping[str, Program]) -> None:
    """In a child: the command, then its exit status to the client."""
    status = 1
    try:
        first, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        request = json.loads(first + connection.makefile("rb").readline())
        _become(request, descriptors)
        status = exit_status(programs, request["command"])
    finally:
        with suppress(Exception):
            sys.stdout.flush()
        with suppress(Exception):
            sys.stderr.flush()
            forked.keep_coverage()
        with suppress(OSError):
            connection.sendall(f"{status}\n".encode())
        os._exit(status)


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    for descriptor, place in zip(descriptors, (0, 1, 2), strict=True):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(place, "w", buffering=1, closefd=False) for place in (1, 2))
    warnings.resetwarnings()
    warnings.simplefilter("ignore", DeprecationWarning)  # as an interpreter does
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_status(programs: Mapping[str, Program], command: list[str]) -> int:
    """Of the program that the command names, as an interpreter's would be."""
    name, arguments = command[0], command[1:]
    try:
        status = programs[name](arguments)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
            return 1
        return ended.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    return status if isinstance(status, int) else 0


def python(arguments: list[str]) -> None:
    """`python -m MODULE`, `python -c CODE`, `python FILE` and `python -`; with other options a new interpreter."""
    first, rest = arguments[0], arguments[1:]
    sys.path.insert(0, str(Path.cwd()))
    if first == "-m" and rest[0] != "pip":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first in ("-c", "-"):
        code = rest[0] if first == "-c" else sys.stdin.read()
        sys.argv = [first, *rest[first == "-c" :]]
        exec(compile(code, first, "exec"), {"__name__": "__main__"})
    elif first.startswith("-"):
        os.execv(sys.executable, [sys.executable, *arguments])
    else:
        sys.argv = arguments
        runpy.run_path(first, run_name="__main__")


def manage(arguments: list[str]) -> None:
    from apps.core.command_line import run_command_line

    sys.argv = ["manage.py", *arguments]
    run_command_line(sys.argv)


def touchstone(arguments: list[str]) -> int:
    from touchstone_client.cli.main import main

    sys.argv = ["touchstone", *arguments]
    return main(arguments)

"""Servers that are not ours: a PostgreSQL, Redis and RabbitMQ that run already."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg

# Yours, or that of the test run (tests/conftest.py), or, for the benchmarks, the machine's.
SERVER = (
    os.environ.get("TOUCHSTONE_TEST_POSTGRES")
    or os.environ.get("DATABASE_URL")
    or "postgresql://root@127.0.0.1:5432/postgres"
)
BROKERS = {
    "redis": os.environ.get("TOUCHSTONE_TEST_REDIS", "redis://127.0.0.1:6379/9"),
    "rabbitmq": os.environ.get("TOUCHSTONE_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//"),
}


@contextlib.contextmanager
def outside_database(name: str) -> Iterator[str]:
    """A database of its own on SERVER, empty."""
    with psycopg.connect(SERVER, autocommit=True) as db:
        db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        db.execute(f"CREATE DATABASE {name}")
    try:
        url = f"{SERVER.rpartition('/')[0]}/{name}"
        yield url
    finally:
        with psycopg.connect(SERVER, autocommit=True) as db:
            db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


class Wire:
    """A TCP connection to a server, that can be cut, or hang, and be fixed. `url` goes through it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 0)
        self._open, self._flows = threading.Event(), threading.Event()
        self._flows.set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        port = self._listener.getsockname()[1]
        credentials, at, _ = parts.netloc.rpartition("@")
        self.url = urlunsplit(parts._replace(netloc=f"{credentials}{at}127.0.0.1:{port}"))
        self._open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Every connection ends, and new ones end at once."""
        self._open.clear()
        for pair in self._pairs:
            for side in pair:
                with contextlib.suppress(OSError):
                    side.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def hang(self) -> None:
        """Nothing comes through, and no one is told."""
        self._flows.clear()

    def mend(self) -> None:
        self._flows.set()
        self._open.set()

    def close(self) -> None:
        self.mend()
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            if not self._open.is_set():
                here.close()
                continue
            try:
                there = socket.create_connection(self._target)
            except OSError:
                here.close()
                continue
            self._pairs.append((here, there))
            for source, sink in ((here, there), (there, here)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
        for side in (source, sink):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        source.close()


@contextlib.contextmanager
def wired(database: str, broker: str) -> Iterator[tuple[dict[str, str], dict[str, Wire]]]:
    """Settings of an installation that reaches both servers by wires, and the wires."""
    wires = {"database": Wire(database), "broker": Wire(broker)}
    try:
        yield {"DATABASE_URL": wires["database"].url, "CELERY_BROKER_URL": wires["broker"].url}, wires
    finally:
        for wire in wires.values():
            wire.close()

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from apps.core.database import embedded_postgres, postgres_orphans, roles
from apps.core.errors import DomainError
from tests.core.homes import open_home


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home whose server was started and stopped once."""
    with open_home() as home:
        embedded_postgres.start(home, durable=False).stop()
        yield home


@pytest.fixture
def server(home: Path) -> Iterator[embedded_postgres.PostgresServer]:
    server = embedded_postgres.start(home, durable=False)
    yield server
    server.stop()


def _owners(server: embedded_postgres.PostgresServer) -> str:
    return server.connection.url(role=roles.OWNER)


def test_secrets_are_their_owners_alone(home: Path) -> None:
    embedded_postgres.secret_key(home)
    for name in ("secret_key", "postgres.json", "postgres.lock"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE((home / "postgres").stat().st_mode) == 0o700


def test_it_answers_with_the_password_only(server: embedded_postgres.PostgresServer) -> None:
    with psycopg.connect(server.url) as db:
        assert db.execute("SELECT current_database(), current_setting('max_connections')").fetchone() == (
            "touchstone",
            "200",
        )
        names = {name for (name,) in db.execute("SELECT datname FROM pg_database")}
    assert {embedded_postgres.DATABASE, embedded_postgres.BROKER_DATABASE} <= names
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url.replace(server.connection.app_password, "guess"))


def test_it_listens_on_loopback_alone_and_has_no_socket_file(
    server: embedded_postgres.PostgresServer,
) -> None:
    with psycopg.connect(server.connection.superuser_url) as db:
        settings = ("listen_addresses", "unix_socket_directories", "password_encryption")
        values = [db.execute("SELECT current_setting(%s)", (name,)).fetchone() for name in settings]
    assert values == [("127.0.0.1",), ("",), ("scram-sha-256",)]


def test_a_second_start_attaches_and_its_stop_stops_nothing(server: embedded_postgres.PostgresServer) -> None:
    second = embedded_postgres.start(server.home)
    assert second.process is None
    assert second.url == server.url
    second.stop()
    assert embedded_postgres.attach(server.home).answers()


def test_what_was_committed_survives_a_kill(home: Path) -> None:
    first = embedded_postgres.start(home)
    with psycopg.connect(_owners(first)) as db:
        db.execute("CREATE TABLE kept (n int)")
        db.execute("INSERT INTO kept VALUES (7)")
    assert first.process is not None
    first.process.kill()
    second = embedded_postgres.start(home)
    try:
        assert second.process is not None
        with psycopg.connect(_owners(second)) as db:
            assert db.execute("SELECT n FROM kept").fetchone() == (7,)
    finally:
        second.stop()
        first.process.wait()


def test_a_slow_recovery_is_waited_for(home: Path) -> None:
    """After a crash the server reads its log again before it answers; here that is stopped half-way."""
    first = embedded_postgres.start(home)
    with psycopg.connect(first.connection.url(role=roles.SUPERUSER), autocommit=True) as db:
        db.execute("CREATE TABLE long (n int)")
        db.execute("CHECKPOINT")
        db.execute("INSERT INTO long SELECT generate_series(1, 1500000)")
    assert first.process is not None
    first.process.kill()
    first.process.wait()
    started = threading.Event()

    def hold() -> bool:
        startup = _process("startup recovering", home)
        startup.suspend()
        try:
            with pytest.raises(psycopg.OperationalError, match=r"starting up|not yet accepting connections"):
                psycopg.connect(first.url)
            return started.wait(1.0)
        finally:
            startup.resume()

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        second = embedded_postgres.start(home)
        started.set()
    try:
        assert held.result() is False
        with psycopg.connect(second.connection.url(role=roles.SUPERUSER), autocommit=True) as db:
            assert db.execute("SELECT count(*) FROM long").fetchone() == (1500000,)
            db.execute("DROP TABLE long")
    finally:
        second.stop()


def _process(title: str, home: Path) -> psutil.Process:
    """The process of PostgreSQL with this title, as soon as it is there."""
    connection = embedded_postgres._read_connection(home)
    assert connection is not None
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if title in " ".join(process.cmdline()) and str(process.cwd()) == connection.data:
                    return process
    raise AssertionError(f"no {title}")


def test_a_stale_pid_file_whose_pid_lives_again_is_no_obstacle(home: Path) -> None:
    data = Path(embedded_postgres._read_connection(home).data)  # type: ignore[union-attr]
    (data / "postmaster.pid").write_text(f"{os.getpid()}\n{data}\n0\n5432\n\n127.0.0.1\n  1 2\nready   \n")
    server = embedded_postgres.start(home, durable=False)
    try:
        assert server.process is not None
    finally:
        server.stop()


def test_a_port_taken_meanwhile_is_exchanged(home: Path) -> None:
    before = embedded_postgres._read_connection(home)
    assert before is not None
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", before.port))
        taken.listen()
        server = embedded_postgres.start(home, durable=False)
    try:
        assert server.connection.port != before.port
        assert embedded_postgres.database_url(home) == server.url
    finally:
        server.stop()


def test_stopping_does_not_wait_for_open_connections(home: Path) -> None:
    server = embedded_postgres.start(home, durable=False)
    with psycopg.connect(server.url) as db:
        server.stop(patience=10)
        assert server.process is not None
        assert server.process.returncode == 0
        with pytest.raises(psycopg.OperationalError):
            db.execute("SELECT 1")


def test_a_home_held_by_something_that_does_not_answer_is_refused_in_words(home: Path) -> None:
    with (home / "postgres.lock").open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(DomainError, match=r"Another process holds .*postgres.lock.*use another home"):
            embedded_postgres.start(home, patience=0.2)


def test_before_the_first_start_everything_says_so_and_writes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(DomainError, match=r"There is no database in .*Start one with"):
        embedded_postgres.require(home)
    with pytest.raises(psycopg.OperationalError, match=r"no-database-yet--run-manage\.py-up"):
        psycopg.connect(embedded_postgres.database_url(home))
    assert embedded_postgres.broker_url(home).startswith("sqla+postgresql+psycopg://")
    assert not home.exists()


def test_a_stopped_one_says_so(home: Path) -> None:
    with pytest.raises(DomainError, match=r"is not running\. Start it with"):
        embedded_postgres.require(home)


def test_the_secret_is_the_same_for_all_who_ask_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(embedded_postgres.secret_key, [tmp_path / "new"] * 8))
    assert len(secrets) == 1
    assert len(secrets.pop()) > 60
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["secret_key"]


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root's homes can be closed to the user PostgreSQL runs as"
)
def test_a_home_its_user_cannot_enter_stays_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    server = embedded_postgres.start(tmp_path, durable=False)
    data = Path(server.connection.data)
    try:
        assert server.answers()
        assert not data.is_relative_to(tmp_path)
        assert stat.S_IMODE(data.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    finally:
        server.stop()
        shutil.rmtree(data.parent)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs to stage binaries for another user")
def test_binaries_their_user_cannot_reach_are_staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.core.database import postgres_binaries

    installed, stages = postgres_binaries._package(), tmp_path / "closed"
    stages.mkdir(mode=0o700)
    package = stages / installed.name
    package.symlink_to(installed)  # the same files, by a way only root can go
    libraries = installed.with_name(f"{installed.name}.libs")
    (stages / libraries.name).symlink_to(libraries)
    monkeypatch.setattr(postgres_binaries, "_package", lambda: package)
    with open_home() as home:
        monkeypatch.setattr(postgres_binaries, "_STAGES", (home / "stages",))
        runner = postgres_binaries.find_runner()
        assert runner.bin.is_relative_to(home / "stages")
        server = embedded_postgres.start(home / "in", durable=False)
        try:
            assert server.answers()
        finally:
            server.stop()


STARTER = """
import sys, time
from pathlib import Path
from apps.core.database import roles
from apps.core.database import postgres_orphans
from apps.core.database import embedded_postgres
server = embedded_postgres.start(Path(sys.argv[1]), durable=False)
print(server.process.pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def hung(home: Path) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A server that will not end when it is told to, and the process that started it."""
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(home)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    os.kill(pid, signal.SIGSTOP)
    yield starter, pid
    starter.kill()
    starter.wait()
    starter.stdout.close()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_server_left_behind_that_does_not_end_is_ended(home: Path, hung, monkeypatch) -> None:
    starter, pid = hung
    data = embedded_postgres._read_connection(home).data  # type: ignore[union-attr]
    assert postgres_orphans.orphan_of(data) is None  # its starter lives
    starter.kill()
    starter.wait()
    assert postgres_orphans.orphan_of(data) == pid
    monkeypatch.setattr(postgres_orphans, "GRACE", ((0.2, signal.SIGQUIT), (0.5, signal.SIGKILL)))
    server = embedded_postgres.start(home, durable=False, patience=60)
    assert server.answers() and server.process is not None and server.process.pid != pid
    server.stop()


def test_a_server_with_an_owner_is_never_ended(home: Path, hung, monkeypatch) -> None:
    monkeypatch.setattr(postgres_orphans, "GRACE", ((0.1, signal.SIGQUIT), (0.2, signal.SIGKILL)))
    with pytest.raises(DomainError, match="does not answer"):
        embedded_postgres.start(home, durable=False, patience=1)
    assert psutil.pid_exists(hung[1])

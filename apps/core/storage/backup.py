"""Everything of an installation in one file: rows, as of one moment, and artifacts.

Rows are PostgreSQL's own COPY text, so that any server of ours reads them. Not in it: sessions (people sign in again),
the installation's secret key, checkpoints of unfinished runs (such a run begins again), and logs. Secrets that are kept
under that key (`encryption`) are in it only where the whole file is encrypted by a passphrase: `secrets.json`, from
which they are kept again under the key of the installation that is restored into.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.apps import apps
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from psycopg import sql

from apps.core.database import fresh_schema
from apps.core.database.migration_state import known_migrations
from apps.core.distributions import installed_version
from apps.core.errors import DomainError
from apps.core.storage import artifacts, backup_archive, encryption, secret_transfer
from apps.core.storage.store_identity import IDENTITY_FILE

FORMAT = 1
_PART = 64 * 2**20  # bytes of rows held before they are written
_LEFT_OUT = {
    "sessions",
    "axes",
    "core",
}  # apps: who is signed in, wrong passwords, which processes run, which store it is
# Used links stay used.
_LEFT_OUT_MODELS = {"accounts.usersession", "accounts.guesscounter", "accounts.accountlink"}
_MADE_BY_MIGRATE = {"django_content_type", "auth_permission"}
_TABLES, _FILES, _SECRETS = "tables/", "artifacts/", "secrets.json"
Report = Callable[[int, str], None]  # members so far; what is being done


def backup(path: Path, report: Report = lambda done, note: None, *, passphrase: str = "") -> dict[str, Any]:
    """Write the installation to `path`; what went in. It may be in use meanwhile. Raises DomainError."""
    with backup_archive.writing(path, passphrase) as out:
        out.add_json(backup_archive.HEAD, _head())
        done = 0
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            tables = _tables()
            rows = dict.fromkeys(tables, 0)
            for table, columns in tables.items():
                for part, (data, size, count) in enumerate(_copied(table, columns)):
                    out.add(f"{_TABLES}{table}/{part:06d}", data, size)
                    rows[table] += count
                    done += 1
                    report(done, table)
            carried, left_out = secret_transfer.read()
        if passphrase:
            out.add_json(_SECRETS, {"secrets": carried})
        else:
            left_out += [secret["name"] for secret in carried]
        # After the rows: what they name was stored before they did.
        names = [name for name in artifacts.all_names() if name != IDENTITY_FILE]
        for name in names:
            with artifacts.opened(name) as (file, size):
                out.add(f"{_FILES}{name}", file, size)
            done += 1
            report(done, "artifacts")
        whole = out.finish()
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "rows": rows,
        "artifacts": len(names),
        "hash": whole,
        "encrypted": bool(passphrase),
        "secrets": {"carried": len(carried) if passphrase else 0, "left_out": sorted(left_out)},
    }


def restore(path: Path, report: Report = lambda done, note: None, *, passphrase: str = "") -> dict[str, Any]:
    """Fill an empty installation from `path`, and bring it up to this version; what came back. Raises DomainError."""
    with backup_archive.reading(path, passphrase) as source, _restored_files() as stored:
        head = source.head
        _refuse_unknown(head, path)
        _make_tables(head)
        rows, secrets = dict.fromkeys(head["tables"], 0), list[dict[str, Any]]()
        with transaction.atomic():  # in which foreign keys are looked at last
            _require_empty(head)
            for done, (name, file) in enumerate(source, start=1):
                if name.startswith(_TABLES):
                    table = name.removeprefix(_TABLES).partition("/")[0]
                    rows[table] += _load(table, head["tables"][table], file)
                elif name.startswith(_FILES):
                    stored.append(_store(name.removeprefix(_FILES), file))
                elif name == _SECRETS:
                    secrets = json.loads(file.read())["secrets"]
                report(done, name.partition("/")[0])
            _set_sequences()
        files = len(stored)
    with encryption.restoring():
        call_command("migrate", "--no-input", verbosity=0)
    carried, again = secret_transfer.write(secrets)
    return {
        "file": str(path),
        "rows": rows,
        "artifacts": files,
        "secrets": {"carried": carried, "enter_again": again},
    }


@contextmanager
def _restored_files() -> Iterator[list[str]]:
    """Artifacts that were stored; where it ends in an error they are taken out again, as the rows are."""
    stored: list[str] = []
    try:
        yield stored
    except BaseException:
        for name in stored:
            artifacts.delete_tree(name)
        raise


def _head() -> dict[str, Any]:
    return {
        "format": FORMAT,
        "touchstone": installed_version(),
        "created": timezone.now().isoformat(),
        "migrations": _applied(),
        "tables": _tables(),
    }


def _applied() -> list[list[str]]:
    return sorted([app, name] for app, name in MigrationRecorder(connection).applied_migrations())


def _tables() -> dict[str, list[str]]:
    """Names and columns of every table of ours, without columns PostgreSQL fills in itself."""
    found = {}
    for model in apps.get_models(include_auto_created=True):
        options = model._meta
        left_out = options.app_label in _LEFT_OUT or options.label_lower in _LEFT_OUT_MODELS
        if options.managed and not options.proxy and not left_out:
            fields = options.local_concrete_fields
            found[options.db_table] = [
                field.column
                for field in fields
                if field.column and not isinstance(field, models.GeneratedField)
            ]
    return found


def _copied(table: str, columns: list[str]) -> Iterator[tuple[IO[bytes], int, int]]:
    """The rows of a table in parts, each with its size and how many rows it has."""
    statement = sql.SQL("COPY {} ({}) TO STDOUT").format(sql.Identifier(table), _list(columns))
    with connection.cursor() as cursor, tempfile.SpooledTemporaryFile(_PART) as part:
        rows = 0
        with cursor.copy(statement) as copy:
            for line in copy:
                part.write(line)
                rows += 1
                if part.tell() >= _PART:
                    yield _rewound(part, rows)
                    part.seek(0)
                    part.truncate()
                    rows = 0
        if rows:
            yield _rewound(part, rows)


def _rewound(part: IO[bytes], rows: int) -> tuple[IO[bytes], int, int]:
    size = part.tell()
    part.seek(0)
    return part, size, rows


def _refuse_unknown(head: dict[str, Any], path: Path) -> None:
    known = known_migrations(MigrationExecutor(connection).loader)
    unknown = [f"{app}.{name}" for app, name in head["migrations"] if (app, name) not in known]
    if head["format"] != FORMAT or unknown:
        raise DomainError(
            f"{path} was created by a newer Touchstone ({head['touchstone']}, this is {installed_version()})"
            f"{': it has ' + ', '.join(unknown[:3]) if unknown else ''}. Restore it with that version or a later one."
        )


def _make_tables(head: dict[str, Any]) -> None:
    """The tables as they were when the backup was made, in a database that has none, or exactly these."""
    applied = _applied()
    migrations = {(app, name) for app, name in head["migrations"]}
    executor = MigrationExecutor(connection)
    if not applied and migrations == known_migrations(executor.loader):
        fresh_schema.create_tables(connection)
    elif not applied:
        wanted = _replacing(executor, migrations)
        children = executor.loader.graph.node_map
        last = [key for key in sorted(wanted) if not wanted & {child.key for child in children[key].children}]
        executor.migrate(last)
    elif applied != sorted(head["migrations"]):
        raise DomainError(
            "This database was created by a different version than the backup. Restore into a home that nothing has "
            "run on: `restore FILE --home NEW`, or an empty database in DATABASE_URL."
        )


def _replacing(executor: MigrationExecutor, wanted: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The migrations of a backup, where one that is here replaces some of them: that one."""
    for key, migration in executor.loader.disk_migrations.items():
        replaced = {(app, name) for app, name in migration.replaces}
        if replaced and replaced <= wanted:
            wanted = wanted - replaced | {key}
    return wanted


def _require_empty(head: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        for table in head["tables"]:
            if table in _MADE_BY_MIGRATE:
                cursor.execute(sql.SQL("TRUNCATE {} CASCADE").format(sql.Identifier(table)))
                continue
            cursor.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(table)))
            if cursor.fetchone() != (False,):
                raise DomainError(
                    f"This installation is not empty: {table} has rows. Restore into another home: "
                    "`restore FILE --home NEW`, or an empty database in DATABASE_URL."
                )


def _load(table: str, columns: list[str], file: IO[bytes]) -> int:
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), _list(columns))
    with connection.cursor() as cursor:
        with cursor.copy(statement) as copy:
            while data := file.read(2**20):
                copy.write(data)
        count: int = cursor.rowcount
        return count


def _store(name: str, file: IO[bytes]) -> str:
    with tempfile.NamedTemporaryFile(prefix="restore-") as scratch:
        while data := file.read(2**20):
            scratch.write(data)
        scratch.flush()
        return artifacts.store_file(Path(scratch.name), name)


def _set_sequences() -> None:
    """New rows get numbers after those that came back."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(
            no_style(), apps.get_models(include_auto_created=True)
        ):
            cursor.execute(statement)


def _list(columns: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))

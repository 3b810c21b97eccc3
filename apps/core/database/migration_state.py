"""Whether the database is of this version of Touchstone: the migrations it has, against those that are here."""

from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg_pool import PoolTimeout

from apps.core.database.outage import renew_connections
from apps.core.errors import DomainError


def pending_migrations() -> list[str]:
    """What is here and not applied, as app.name."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def unknown_migrations() -> list[str]:
    """What was applied by a version that had more than this one, as app.name."""
    recorder = MigrationRecorder(connection)
    if not recorder.has_table():
        return []
    known = known_migrations(MigrationExecutor(connection).loader)
    return sorted(f"{app}.{name}" for app, name in recorder.applied_migrations() if (app, name) not in known)


def known_migrations(loader: MigrationLoader) -> set[tuple[str, str]]:
    """(app, name) of the migrations that are here, and of those that they replace: an app may have had another name."""
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    return replaced | loader.disk_migrations.keys()


def database_is_ready() -> bool:
    """Whether it answers, takes changes and is exactly of this version. For a thread of its own: it gives its
    connection back."""
    try:
        require_applied_migrations()
        return _takes_changes()
    except (DomainError, DatabaseError, InterfaceError, PoolTimeout):
        return False
    finally:
        connection.close()


def _takes_changes() -> bool:
    if not is_read_only():
        return True
    renew_connections()  # it may be this session alone that still thinks so
    return not is_read_only()


def is_read_only() -> bool:
    """Whether a change would be refused: a standby, or by default_transaction_read_only."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')::bool")
        (answer,) = cursor.fetchone()
    return bool(answer)


def require_known_migrations() -> None:
    """Raise DomainError on a database made by a newer version: this one would damage what it does not know."""
    if unknown := unknown_migrations():
        raise DomainError(
            f"This database was created by a newer version of Touchstone: it has {', '.join(unknown[:3])}, which this "
            "one does not know. Start that version again, or restore a backup of this one into another home "
            "(`--home DIR`)."
        )


def require_applied_migrations() -> None:
    """Raise DomainError unless the database is exactly of this version."""
    require_known_migrations()
    if pending := pending_migrations():
        raise DomainError(
            f"{len(pending)} migrations are not applied, the first: {', '.join(pending[:3])}. Run `python manage.py "
            "migrate` (`up` does so automatically)."
        )

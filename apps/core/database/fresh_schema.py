"""The tables of an empty database, made from the models of today instead of by the history of migrations.

Django's migrations of an empty database take 14 s, nearly all to rebuild the models of every step. The result is the
same (tests/contracts/test_upgrade.py compares both), and every migration is recorded as applied, so that later ones
follow. What models cannot express, triggers and functions, apps list in `FRESH_SQL` of their module `fresh_sql`.
"""

from importlib import import_module
from importlib.util import find_spec

from django.apps import apps
from django.db import router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from apps.core.database.migration_state import known_migrations

SQL_MODULE = "fresh_sql"


def create_tables(connection: BaseDatabaseWrapper) -> bool:
    """Create all tables in a database that has none of them; False, and nothing done, where it has any.

    All or nothing: an error leaves the database as it was.
    """
    ours = {model._meta.db_table for model in apps.get_models()} | {
        MigrationRecorder.Migration._meta.db_table
    }
    if ours & set(connection.introspection.table_names(include_views=True)):
        return False
    with transaction.atomic(using=connection.alias):
        with connection.schema_editor() as editor:
            for config in apps.get_app_configs():
                for model in router.get_migratable_models(config, connection.alias):
                    if model._meta.can_migrate(connection):
                        editor.create_model(model)
        with connection.cursor() as cursor:
            for statement in _app_sql():
                cursor.execute(statement)
        recorder = MigrationRecorder(connection)
        recorder.ensure_schema()
        # With those that squashed ones replace: without them, these would not count as applied.
        for app_label, name in sorted(known_migrations(MigrationLoader(None))):
            recorder.record_applied(app_label, name)
    return True


def _app_sql() -> list[str]:
    modules = [f"{config.name}.{SQL_MODULE}" for config in apps.get_app_configs()]
    return [statement for name in modules if find_spec(name) for statement in import_module(name).FRESH_SQL]

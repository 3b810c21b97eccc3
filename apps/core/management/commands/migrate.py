"""Django's `migrate`, by the role that owns the tables; afterwards the application's role gets its rights.

An empty database gets its tables from the models of today.
"""

from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from apps.core.database import fresh_schema, process_database


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        with process_database.as_owner():
            is_fresh = _wants_everything(options) and fresh_schema.create_tables(
                connections[options["database"]]
            )
            if is_fresh and options["verbosity"]:
                self.stdout.write("The database was empty: its tables were created.")
            said: str | None = super().handle(*args, **options)
        if not (options["check_unapplied"] or options["plan"]):
            process_database.grant_rights()
        return said


def _wants_everything(options: dict[str, Any]) -> bool:
    others = ("app_label", "migration_name", "check_unapplied", "plan", "fake", "prune")
    return not any(options[name] for name in others)

"""Django's `migrate`, by the role that owns the tables; afterwards the application's role gets its rights."""

from typing import Any

from django.core.management.commands import migrate

from apps.core.database import process_database


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        with process_database.as_owner():
            said: str | None = super().handle(*args, **options)
        if not (options["check_unapplied"] or options["plan"]):
            process_database.grant_rights()
        return said

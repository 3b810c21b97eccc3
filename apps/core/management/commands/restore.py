from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.core import backup, database
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = "Fill an empty home or database from a backup."
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def run(self, *, file: Path) -> dict[str, Any]:
        with database.available(), database.as_owner(), self.progress(None, "restore") as progress:
            result = backup.restore(file, lambda done, note: progress.update(done, note=note))
        rows = sum(result["rows"].values())
        self.say(f"{rows} rows and {result['artifacts']} artifacts from {file}.")
        return result

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.core import backup, database
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = "Write everything, rows and artifacts, to one file; the installation may be in use."
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def run(self, *, file: Path) -> dict[str, Any]:
        with database.available(), database.as_owner(), self.progress(None, "backup") as progress:
            result = backup.backup(file, lambda done, note: progress.update(done, note=note))
        rows = sum(result["rows"].values())
        self.say(f"{rows} rows and {result['artifacts']} artifacts in {file}.")
        return result

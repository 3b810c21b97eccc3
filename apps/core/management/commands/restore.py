from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.core.commands import TouchstoneCommand
from apps.core.database import process_database
from apps.core.storage import backup
from apps.core.storage.passphrase import add_passphrase_argument, read_passphrase


class Command(TouchstoneCommand):
    help = "Fill an empty home or database from a backup."
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        add_passphrase_argument(parser, "what it was encrypted by")

    def run(self, *, file: Path, passphrase_file: Path | None) -> dict[str, Any]:
        passphrase = read_passphrase(passphrase_file)
        with (
            process_database.available(),
            process_database.as_owner(),
            self.progress(None, "restore") as progress,
        ):
            result = backup.restore(
                file, lambda done, note: progress.update(done, note=note), passphrase=passphrase
            )
        rows, again = sum(result["rows"].values()), result["secrets"]["enter_again"]
        self.say(f"{rows} rows and {result['artifacts']} artifacts from {file}.")
        if result["secrets"]["carried"]:
            self.say(f"{result['secrets']['carried']} secrets came along.")
        if again:
            self.say(f"{len(again)} secrets did not come along; enter them again:")
            self.say("\n".join(f"- {name}" for name in again))
        return result

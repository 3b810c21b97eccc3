from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.core.commands import TouchstoneCommand
from apps.core.database import process_database
from apps.core.storage import backup
from apps.core.storage.passphrase import add_passphrase_argument, read_passphrase


class Command(TouchstoneCommand):
    help = "Write everything, rows and artifacts, to one file; the installation may be in use."
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        add_passphrase_argument(parser, "passphrase that encrypts the file")

    def run(self, *, file: Path, passphrase_file: Path | None) -> dict[str, Any]:
        passphrase = read_passphrase(passphrase_file)
        with (
            process_database.available(),
            process_database.as_owner(),
            self.progress(None, "backup") as progress,
        ):
            result = backup.backup(
                file, lambda done, note: progress.update(done, note=note), passphrase=passphrase
            )
        rows, secrets = sum(result["rows"].values()), result["secrets"]
        how = "encrypted" if passphrase else "not encrypted"
        self.say(f"{rows} rows and {result['artifacts']} artifacts in {file}, {how}.")
        if secrets["carried"]:
            self.say(
                f"{secrets['carried']} secrets are in it. Without the passphrase no one can read it, including you."
            )
        if secrets["left_out"]:
            self.say(
                f"{len(secrets['left_out'])} secrets cannot be read by another installation, and have to be entered "
                "again there" + ("" if passphrase else "; with --passphrase-file they come along") + ":"
            )
            self.say("\n".join(f"- {name}" for name in secrets["left_out"]))
        return result

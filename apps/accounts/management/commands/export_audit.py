"""Write the audit trail to a file that can be verified without the database."""

import os
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts import audit_export, services
from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError


class Command(TouchstoneCommand):
    help = "Export the audit trail of a project, or of the installation, as JSON lines."

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("project", nargs="?", help="its slug")
        which.add_argument("--all", action="store_true", help="everything, sign-ins and deleted projects too")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE")
        parser.add_argument("--names", action="store_true", help="with whom the pseudonyms mean")

    def run(self, *, project: str | None, all: bool, out: Path, names: bool) -> dict[str, Any]:
        of = services.project_for(project) if project else None
        lines = 0
        try:
            handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise DomainError(f"{out} is there already; name a new file.") from None
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            for line in audit_export.export_lines(project=of, by=None, names=names):
                file.write(line)
                lines += 1
        self.say(f"{lines} lines in {out}. `verify_audit --from-file {out}` verifies them anywhere.")
        return {"file": str(out), "lines": lines}

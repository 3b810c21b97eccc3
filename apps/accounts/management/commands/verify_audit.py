"""Look whether the audit trail is as it was written."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.core.commands import CommandFailed, TouchstoneCommand


class Command(TouchstoneCommand):
    help = "Verify the chain of the audit trail: in the database with this home's anchors, or of an export."
    needs_database = False  # for an export

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from-file", type=Path, metavar="EXPORT", help="of `export_audit`; no database")
        parser.add_argument("--head", default="", metavar="SEQUENCE:HASH", help="written down elsewhere")

    def run(self, *, from_file: Path | None, head: str) -> dict[str, Any]:
        from apps.accounts import audit_chain, audit_export

        if from_file is not None:
            verdict = audit_export.verify_file(from_file, head=head)
        else:
            self._require_database()
            verdict = audit_chain.verify(audit_export.parsed_head(head))
        result = {
            "ok": verdict.is_whole,
            "events": verdict.events,
            "head": str(verdict.head),
            "faults": verdict.faults,
        }
        for fault in verdict.faults:
            self.say(fault)
        if not verdict.is_whole:
            raise CommandFailed("The audit trail is not as it was written.", result=result)
        self.say(f"{verdict.events} events, each as it was written. Head: {verdict.head}")
        return result

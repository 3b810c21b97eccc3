"""`export_feedback PROJECT`: what people said, as a stream."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.feedback.exports import EXPORTS, export_lines, record_export
from apps.annotation.feedback.records import check_filters
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import Origin
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = "Export the feedback of a project; import_feedback reads jsonl."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("--format", choices=sorted(EXPORTS), default="jsonl")
        parser.add_argument("--kind", action="append", dest="kinds", choices=list(FEEDBACK_TYPES))
        parser.add_argument("--campaign", action="append", dest="campaigns")
        parser.add_argument(
            "--origin",
            action="append",
            dest="origins",
            choices=list(Origin),
            help="origin of the feedback; by default all but judge",
        )
        parser.add_argument("--since", help="ISO time; only feedback created at or after it")
        parser.add_argument(
            "--filter", metavar="QUERY", help="only of these trajectories, such as agent=desk&success=no"
        )
        parser.add_argument("--out", type=Path, help="output file; standard output by default")

    def run(self, **options: Any) -> dict[str, Any]:
        project = project_for(options["project"])
        filters = {
            name: options[name]
            for name in ("kinds", "campaigns", "origins", "since", "filter")
            if options[name]
        }
        check_filters(filters)
        record_export(project=project, format=options["format"], filters=filters, by=None)
        left_out = Counter[str]()
        lines = export_lines(options["format"], project=project, filters=filters, left_out=left_out)
        written = 0
        if options["out"]:
            with options["out"].open("w", encoding="utf-8") as out:
                for line in lines:
                    written += 1
                    out.write(line)
        else:
            target = sys.stderr if self.as_json else sys.stdout
            for line in lines:
                written += 1
                target.write(line)
        for reason, number in left_out.items():
            self.say(f"not written: {number} {reason}")
        return {"lines": written} | ({"left_out": dict(left_out)} if left_out else {})

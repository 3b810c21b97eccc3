"""`import_feedback PROJECT FILE --format FORMAT`: judgements collected elsewhere, with their annotators."""

import gzip
import sys
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.feedback.readers import READERS
from apps.annotation.feedback.services import FeedbackResult, import_feedback
from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.errors import DomainError
from apps.core.storage.unpacking import InputBounds, bounded


class Command(TouchstoneCommand):
    help = "Import feedback collected elsewhere, with its annotators and trajectories."
    store_access = "check"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("file", help="the file (.gz is unpacked), or - for standard input")
        parser.add_argument("--format", required=True, choices=sorted(READERS))
        parser.add_argument("--campaign", help="campaign of records that name none; created if new")
        parser.add_argument(
            "--keep-good", action="store_true", help="import the valid records of a file with invalid ones"
        )

    def run(self, **options: Any) -> dict[str, Any]:
        project = project_for(options["project"])
        try:
            with _open(options["file"]) as stream, self.progress(None, "records") as progress:
                result = import_feedback(
                    project=project,
                    stream=stream,
                    format=options["format"],
                    by=None,
                    campaign=options["campaign"],
                    keep_good=options["keep_good"],
                    progress=progress.update,
                )
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DomainError(
                f"{options['file']} is not a complete gzip file ({error}); nothing was imported. Download it again, or "
                "remove .gz from its name if it is not compressed."
            ) from error
        self._tell(result)
        if result.rejected and not options["keep_good"]:
            raise CommandFailed(
                "Nothing was imported. Fix these records, or import the valid ones with --keep-good.",
                result=result.as_json(),
            )
        return result.as_json()

    def _tell(self, result: FeedbackResult) -> None:
        self.say(
            f"created {result.created}, already there {result.duplicates}, rejected {len(result.rejected)}"
        )
        for record in result.rejected[:20]:
            self.say(f"  line {record['line']} {record['pointer'] or ''}: {record['message']}")
        for title, counts in (("dropped", result.dropped), ("kept in the trajectories", result.kept)):
            for row in counts.as_json()[:20]:
                self.say(f"  {title}: {row['path']} ({row['count']}): {row['reason']}")


def _open(name: str) -> Any:
    if name == "-":
        stdin: BinaryIO = sys.stdin.buffer
        return nullcontext(stdin)
    path = Path(name)
    if not path.is_file():
        raise DomainError(f"The file {name} does not exist.")
    if path.suffix != ".gz":
        return path.open("rb")
    return bounded(cast(BinaryIO, gzip.open(path)), path.stat().st_size, InputBounds())

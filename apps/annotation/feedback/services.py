"""Importing feedback: trajectories are stored once, and equal annotations of one annotator are duplicates."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import BinaryIO

from django.db import transaction

from apps.accounts.models import ApiKey, Project, User
from apps.accounts.services import record_audit
from apps.annotation.feedback.incoming import FeedbackResult, Found, Incoming, UnreadField
from apps.annotation.feedback.readers import READERS
from apps.annotation.feedback.writer import FeedbackWriter
from apps.annotation.models import Annotation, Assignment, Item
from apps.core.database.process_database import refresh_statistics
from apps.core.errors import DomainError
from apps.core.storage.unpacking import InputBounds
from workers.errors import InvalidRecord

CHUNK = 500
MOST_REJECTED = 1000
Progress = Callable[[int], None]


def import_feedback(
    *,
    project: Project,
    stream: BinaryIO,
    format: str,
    by: User | ApiKey | None,
    campaign: str | None = None,
    keep_good: bool = False,
    progress: Progress = lambda done: None,
) -> FeedbackResult:
    """Import a file of feedback. One invalid record rejects the file, unless `keep_good`.

    campaign: where judgements go whose record names none; made if new. by: None is the command line.
    progress: called with the judgements read so far.
    """
    if format not in READERS:
        raise DomainError(f"Unknown format {format!r}; allowed are {', '.join(READERS)}.")
    return import_numbered(
        project=project,
        numbered=READERS[format](stream),
        campaign=campaign or f"Imported: {format}",
        by=by,
        keep_good=keep_good,
        progress=progress,
    )


def import_numbered(
    *,
    project: Project,
    numbered: Iterable[tuple[int, Found]],
    campaign: str,
    by: User | ApiKey | None,
    keep_good: bool = False,
    progress: Progress = lambda done: None,
) -> FeedbackResult:
    """Import parsed records, each with its line number, or the error of that line."""
    result = FeedbackResult()
    with transaction.atomic():
        writer = FeedbackWriter(project=project, campaign=campaign)
        _write_all(numbered, writer, result, progress)
        if result.rejected and not keep_good:
            transaction.set_rollback(True)
            result.created = result.duplicates = 0
        else:
            data = {"created": result.created, "rejected": len(result.rejected)}
            record_audit(project=project, actor=by, verb="feedback.imported", target=campaign, data=data)
    if result.created >= CHUNK:
        # With statistics of the smaller tables the next reads would take minutes.
        refresh_statistics(Annotation, Assignment, Item)
    return result


def _write_all(
    numbered: Iterable[tuple[int, Found]],
    writer: FeedbackWriter,
    result: FeedbackResult,
    progress: Progress,
) -> None:
    iterator = iter(numbered)
    bounds = InputBounds()
    done = 0
    while chunk := list(islice(iterator, CHUNK)):
        good: list[tuple[int, Incoming]] = []
        for number, record in chunk:
            if isinstance(record, InvalidRecord):
                _reject(result, number, record)
            elif isinstance(record, UnreadField):
                result.count(record)
            else:
                good.append((number, record))
        for number, error in writer.write(good, result):
            _reject(result, number, error)
        done += len(chunk)
        progress(done)
        bounds.check()


def _reject(result: FeedbackResult, line: int, error: InvalidRecord) -> None:
    result.rejected.append({"line": line, "pointer": error.pointer, "message": error.message})
    if len(result.rejected) >= MOST_REJECTED:
        raise DomainError(
            f"{MOST_REJECTED} records were refused, the last on line {line}: {error.message} Is this the right format?"
        )

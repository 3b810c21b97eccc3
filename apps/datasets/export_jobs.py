"""Exports as jobs: a worker writes the file; the page shows the progress, then a download link for some days."""

import gzip
import hashlib
import io
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, cast

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.annotation.feedback.exports import ENDINGS
from apps.annotation.feedback.exports import EXPORTS as OF_FEEDBACK
from apps.annotation.feedback.exports import record_export as record_feedback_export
from apps.annotation.feedback.records import check_filters, current_annotations
from apps.annotation.models import Annotation, Assignment, Item
from apps.core.database.process_database import refresh_statistics
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import (
    Cancelled,
    ClaimLost,
    JobHeartbeat,
    JobState,
    finish,
    keep_heartbeat,
    renew_heartbeat,
)
from apps.core.storage.artifacts import delete_tree, store_file
from apps.core.storage.storage_names import storage_name
from apps.datasets.exports import EXPORTS as DATASET_EXPORTS
from apps.datasets.exports import left_out_counts, record_export, require_format
from apps.datasets.exports.conversations import LeftOut
from apps.datasets.models import DatasetVersion, Export
from apps.datasets.selectors import require_frozen

ADVANCE_EXPORTS = "apps.datasets.tasks.advance_exports"
BACKGROUND_EXPORT_RECORDS = 5000  # records beyond which a file is written by a worker before it is sent


@transaction.atomic
def export_feedback(*, project: Project, format: str, filters: dict[str, Any], by: User) -> Export:
    """Queue an export of the feedback collected so far. Raises DomainError for an unknown format or filter."""
    if format not in OF_FEEDBACK:
        raise DomainError(
            f"Unknown format {format!r}; choose from {', '.join(OF_FEEDBACK)}.", pointer="/format"
        )
    filters = {name: value for name, value in filters.items() if value}
    check_filters(filters)
    return _queue(Export(project=project, format=format, filters=filters, created_by=by), by)


@transaction.atomic
def export_dataset_version(*, dataset_version: DatasetVersion, format: str, split: str, by: User) -> Export:
    """Queue an export of a dataset version, or of one split."""
    require_frozen(dataset_version)
    require_format(format, split or None)
    export = Export(
        project=dataset_version.project,
        dataset_version=dataset_version,
        format=format,
        split=split,
        created_by=by,
    )
    return _queue(export, by)


def _queue(export: Export, by: User) -> Export:
    waiting = Export.objects.filter(project=export.project, state__in=[JobState.QUEUED, JobState.RUNNING])
    if waiting.filter(
        dataset_version=export.dataset_version,
        format=export.format,
        split=export.split,
        filters=export.filters,
    ).exists():
        raise Conflict("This export is already running.")
    export.save()
    if export.dataset_version is not None:
        record_export(export.dataset_version, format=export.format, split=export.split or None, by=by)
    else:
        record_feedback_export(project=export.project, format=export.format, filters=export.filters, by=by)
    job_queue.nudge_on_commit(ADVANCE_EXPORTS)
    return export


def cancel_export(*, export: Export) -> None:
    if export.is_finished:
        raise Conflict("This export has already finished.")
    job_queue.request_cancel(export)


def build_export(export: Export) -> None:
    """Write a claimed export. Errors are stored in its row."""
    try:
        with keep_heartbeat(export) as heartbeat, tempfile.TemporaryDirectory(prefix="export-") as scratch:
            path = Path(scratch) / file_name(export)
            lines, left_out = _write(export, path, heartbeat)
            name = storage_name("exports", export.project_id, f"{export.pk}-{export.attempt}", path.name)
            with path.open("rb") as written:
                digest = hashlib.file_digest(written, "sha256").hexdigest()
            size = path.stat().st_size
            store_file(path, name)
    except Cancelled:
        finish(export, JobState.CANCELLED)
        return
    except DomainError as error:
        finish(export, JobState.FAILED, error=error.message)
        return
    result_fields: dict[str, Any] = {"artifact": name, "lines": lines, "size": size, "sha256": digest}
    result_fields["left_out"] = left_out
    try:
        finish(export, JobState.SUCCEEDED, progress={}, **result_fields)
    except ClaimLost:
        delete_tree(name)
        raise
    if export.removed_at is not None:  # data was deleted while this was being stored
        delete_tree(name)


def _write(export: Export, path: Path, heartbeat: JobHeartbeat) -> tuple[int, dict[str, int]]:
    """Write the file; returns the number of lines without a table header, and what has no line, by reason."""
    left_out: LeftOut = Counter()
    if export.dataset_version is None:
        refresh_statistics(Annotation, Assignment, Item)
    total, lines = _expected_lines(export), 0
    if renew_heartbeat(export, progress={"done": 0, "total": total, "note": "writing"}):
        raise Cancelled
    with path.open("wb") as raw, _text_file(raw, export) as out:
        for line in _export_lines(export, left_out):
            out.write(line)
            lines += 1
            heartbeat.progress = {"done": lines, "total": total and max(total, lines), "note": "writing"}
            heartbeat.check()
    return lines - (export.format == "csv"), left_out_counts(left_out)


def file_name(export: Export) -> str:
    """The download name. JSON Lines are compressed."""
    of = export.dataset_version
    what = f"{of.name}-{of.version}-{export.split or 'all'}" if of else "feedback"
    end = ENDINGS.get(export.format, "jsonl.gz")
    return f"{export.project.slug}-{what}-{export.format}-{export.pk}.{end}"


def remove_exports(*, project: Project) -> None:
    """After a deletion: remove all export files that might contain the deleted data, and cancel running exports."""
    for export in Export.objects.filter(project=project, removed_at=None):
        if not export.is_finished:
            job_queue.request_cancel(export)
        _remove(export)


def remove_old_exports() -> int:
    """Periodic task: remove expired files; returns their number. Safe to repeat."""
    before = timezone.now() - timedelta(days=settings.EXPORT_DAYS)
    old = Export.objects.filter(~Q(artifact=""), removed_at=None, finished_at__lt=before)[:50]
    for export in old:
        _remove(export)
    return len(old)


def _remove(export: Export) -> None:
    if export.artifact:
        delete_tree(export.artifact)
    filters = {name: value for name, value in export.filters.items() if name != "annotators"}
    Export.objects.filter(pk=export.pk).update(removed_at=timezone.now(), filters=filters)


def _export_lines(export: Export, left_out: LeftOut) -> Iterator[str]:
    if export.dataset_version is not None:
        dataset_version = require_frozen(export.dataset_version)
        return DATASET_EXPORTS[export.format](dataset_version, export.split or None, left_out)
    return OF_FEEDBACK[export.format](project=export.project, filters=export.filters)


def _expected_lines(export: Export) -> int | None:
    """The approximate number of lines, for the progress bar. Formats that skip records write fewer."""
    if export.dataset_version is not None:
        splits = export.dataset_version.splits
        return int(splits.get(export.split, 0) if export.split else sum(splits.values())) or None
    return current_annotations(export.project, export.filters).count() or None


def _text_file(raw: IO[bytes], export: Export) -> io.TextIOWrapper:
    packed = (
        raw if export.format in ENDINGS else cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="wb", mtime=0))
    )
    return io.TextIOWrapper(packed, encoding="utf-8", newline="")

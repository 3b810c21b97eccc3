"""Exports as jobs: a worker writes the file; the page shows the progress, then a download link for some days."""

import gzip
import hashlib
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, cast

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.annotation.feedback.exports import ENDINGS
from apps.annotation.feedback.exports import EXPORTS as OF_FEEDBACK
from apps.annotation.feedback.exports import export_lines as feedback_lines
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
from apps.core.registries import Registry
from apps.core.storage.artifacts import delete_tree, store_file
from apps.core.storage.storage_names import storage_name
from apps.datasets.exports.columns import LeftOut
from apps.datasets.exports.downloads import left_out_counts, record_export
from apps.datasets.exports.folders import zip_folder
from apps.datasets.exports.formats import FOLDER_EXPORTS, export_lines, require_format, write_folder
from apps.datasets.models import DatasetVersion, Export
from apps.datasets.selectors import require_frozen
from apps.trajectories.exports import check_format
from apps.trajectories.exports import export_lines as trajectory_lines
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterSource, parse_filter

ADVANCE_EXPORTS = "apps.datasets.tasks.advance_exports"
BACKGROUND_EXPORT_RECORDS = 5000  # records beyond which a file is written by a worker before it is sent
# Remove or cancel other files with the project's data, where some of it is deleted. Added in AppConfig.register.
ARCHIVE_REMOVERS: Registry[Callable[[Project], object]] = Registry()


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


@transaction.atomic
def export_trajectories(*, project: Project, format: str, source: FilterSource, by: User) -> Export:
    """Queue an export of the trajectories that match a filter when it is written. Raises DomainError."""
    check_format(format)
    filter = parse_filter(source)
    filter_trajectories(project, filter)  # for names that the project does not have
    filters = {"filter": filter.query} if filter else {}
    return _queue(
        Export(project=project, of_trajectories=True, format=format, filters=filters, created_by=by), by
    )


def _queue(export: Export, by: User) -> Export:
    waiting = Export.objects.filter(project=export.project, state__in=[JobState.QUEUED, JobState.RUNNING])
    if waiting.filter(
        dataset_version=export.dataset_version,
        of_trajectories=export.of_trajectories,
        format=export.format,
        split=export.split,
        filters=export.filters,
    ).exists():
        raise Conflict("This export is already running.")
    export.save()
    if export.dataset_version is not None:
        record_export(export.dataset_version, format=export.format, split=export.split or None, by=by)
    elif export.of_trajectories:
        data = {"format": export.format, **export.filters}
        record_audit(
            project=export.project, actor=by, verb="trajectories.exported", target=export.format, data=data
        )
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

    def watched(rows: Iterator[str]) -> Iterator[str]:
        nonlocal lines
        for row in rows:
            yield row
            lines += 1
            heartbeat.progress = {"done": lines, "total": total and max(total, lines), "note": "writing"}
            heartbeat.check()

    if _is_folder(export):
        _write_zip(export, path, watched, left_out)
    else:
        with path.open("wb") as raw, _text_file(raw, export) as out:
            out.writelines(watched(_export_lines(export, left_out)))
    return lines - (export.format == "csv"), left_out_counts(left_out)


def _is_folder(export: Export) -> bool:
    return export.dataset_version is not None and export.format in FOLDER_EXPORTS


def _write_zip(
    export: Export, path: Path, watched: Callable[[Iterator[str]], Iterator[str]], left_out: LeftOut
) -> None:
    """The zip file of a format of several files."""
    assert export.dataset_version is not None
    dataset_version, folder = require_frozen(export.dataset_version), path.parent / "files"
    folder.mkdir()
    rows = write_folder(dataset_version, export.format, export.split or None, left_out, folder)
    for _ in watched(rows):
        pass
    zip_folder(folder, path)


def file_name(export: Export) -> str:
    """The download name. JSON Lines are compressed, several files packed."""
    of = export.dataset_version
    content = "trajectories" if export.of_trajectories else "feedback"
    what = f"{of.name}-{of.version}-{export.split or 'all'}" if of else content
    end = "zip" if _is_folder(export) else _endings(export).get(export.format, "jsonl.gz")
    return f"{export.project.slug}-{what}-{export.format}-{export.pk}.{end}"


def remove_exports(*, project: Project, trajectories_only: bool = False) -> None:
    """After a deletion: remove all export files that might contain the deleted data, and cancel running exports.
    trajectories_only: leave those of feedback and of dataset versions."""
    rows = Export.objects.filter(project=project, removed_at=None)
    for export in rows.filter(of_trajectories=True) if trajectories_only else rows:
        if not export.is_finished:
            job_queue.request_cancel(export)
        remove_export(export)
    for remove_archives in ARCHIVE_REMOVERS:
        remove_archives(project)


def remove_old_exports() -> int:
    """Periodic task: remove expired files; returns their number. Safe to repeat."""
    before = timezone.now() - timedelta(days=settings.EXPORT_DAYS)
    old = Export.objects.filter(~Q(artifact=""), removed_at=None, finished_at__lt=before)[:50]
    for export in old:
        remove_export(export)
    return len(old)


def remove_export(export: Export) -> None:
    if export.artifact:
        delete_tree(export.artifact)
    filters = {name: value for name, value in export.filters.items() if name != "annotators"}
    Export.objects.filter(pk=export.pk).update(removed_at=timezone.now(), filters=filters)


def _export_lines(export: Export, left_out: LeftOut) -> Iterator[str]:
    if export.dataset_version is not None:
        dataset_version = require_frozen(export.dataset_version)
        return export_lines(dataset_version, export.format, export.split or None, left_out)
    if export.of_trajectories:
        rows = filter_trajectories(export.project, export.filters.get("filter"))
        return _single_lines(trajectory_lines(export.project, rows, format=export.format))
    return feedback_lines(export.format, project=export.project, filters=export.filters, left_out=left_out)


def _expected_lines(export: Export) -> int | None:
    """The approximate number of lines, for the progress bar. Formats that skip records write fewer."""
    if export.dataset_version is not None:
        splits = export.dataset_version.splits
        return int(splits.get(export.split, 0) if export.split else sum(splits.values())) or None
    if export.of_trajectories:
        return filter_trajectories(export.project, export.filters.get("filter")).count() or None
    return current_annotations(export.project, export.filters).count() or None


def _single_lines(parts: Iterator[bytes]) -> Iterator[str]:
    for part in parts:
        yield from (f"{line}\n" for line in part.decode("utf-8", "surrogatepass").split("\n") if line)


def _endings(export: Export) -> dict[str, str]:
    return {} if export.of_trajectories else dict(ENDINGS)


def _text_file(raw: IO[bytes], export: Export) -> io.TextIOWrapper:
    packed = (
        raw
        if export.format in _endings(export)
        else cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="wb", mtime=0))
    )
    return io.TextIOWrapper(packed, encoding="utf-8", newline="")

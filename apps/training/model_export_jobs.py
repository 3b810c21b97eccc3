"""Exports of models as jobs: a worker writes one tar file, which can be downloaded for some days."""

import hashlib
import tarfile
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import ApiKey, User
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError, NotFound
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
from apps.training.model_export import ModelExportOptions, check_options, export_model
from apps.training.models import ModelExport, RewardModel

ADVANCE_MODEL_EXPORTS = "apps.training.tasks.advance_model_exports"


@transaction.atomic
def start_model_export(
    *, model: RewardModel, options: ModelExportOptions, by: User | ApiKey | None
) -> ModelExport:
    """Queue an export. Raises DomainError for a form that the model does not have, Conflict for one that is running."""
    check_options(model, options)
    chosen = {"form": options.form, "base": options.base, "out_type": options.out_type}
    waiting = model.exports.filter(state__in=[JobState.QUEUED, JobState.RUNNING], **chosen)
    if waiting.exists():
        raise Conflict("This export is already running.")
    export = ModelExport.objects.create(
        model=model, created_by=by if isinstance(by, User) else None, **chosen
    )
    record_audit(
        project=model.project,
        actor=by,
        verb="model.exported",
        target=str(model),
        data={"format": options.form},
    )
    job_queue.nudge_on_commit(ADVANCE_MODEL_EXPORTS)
    return export


def cancel_model_export(*, export: ModelExport) -> None:
    if export.is_finished:
        raise Conflict("This export has already finished.")
    job_queue.request_cancel(export)


def build_model_export(export: ModelExport) -> None:
    """Write a claimed export. Errors are stored in its row."""
    try:
        with (
            keep_heartbeat(export) as heartbeat,
            tempfile.TemporaryDirectory(prefix="model-export-") as scratch,
        ):
            path = _write(export, Path(scratch), heartbeat)
            directory = f"{export.pk}-{export.attempt}"
            name = storage_name("model-exports", export.model.project_id, directory, path.name)
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
    try:
        finish(export, JobState.SUCCEEDED, progress={}, artifact=name, size=size, sha256=digest)
    except ClaimLost:
        delete_tree(name)
        raise
    if export.removed_at is not None:  # the model was deleted while this was being stored
        delete_tree(name)


def _write(export: ModelExport, scratch: Path, heartbeat: JobHeartbeat) -> Path:
    """The tar file. Raises Cancelled, and DomainError where the model cannot be written."""
    if renew_heartbeat(export, progress={"done": 0, "total": None, "note": "writing"}):
        raise Cancelled
    model = export.model
    if model.deleted_at is not None:
        raise NotFound(f"{model} was deleted.")
    options = ModelExportOptions(form=export.form, base=export.base, out_type=export.out_type)
    folder = export_model(model=model, folder=scratch / "model", options=options, check=heartbeat.check)
    path = scratch / file_name(export)
    heartbeat.progress = {"done": 0, "total": None, "note": "packing"}
    _pack(folder, path, path.stem, heartbeat.check)
    return path


def file_name(export: ModelExport) -> str:
    """The download name."""
    model = export.model
    form = "-".join(part for part in (export.form, export.out_type) if part)
    return f"{model.project.slug}-{model.name}-{model.version}-{form}.tar"


def remove_model_exports(model: RewardModel) -> None:
    """Of a model that is deleted."""
    for export in model.exports.filter(removed_at=None):
        if not export.is_finished:
            job_queue.request_cancel(export)
        _remove(export)


def remove_old_model_exports() -> int:
    """Periodic task: remove expired files; returns their number. Safe to repeat."""
    before = timezone.now() - timedelta(days=settings.EXPORT_DAYS)
    old = ModelExport.objects.filter(~Q(artifact=""), removed_at=None, finished_at__lt=before)[:50]
    for export in old:
        _remove(export)
    return len(old)


def _remove(export: ModelExport) -> None:
    if export.artifact:
        delete_tree(export.artifact)
    ModelExport.objects.filter(pk=export.pk).update(removed_at=timezone.now())


def _pack(folder: Path, path: Path, inside: str, check: Callable[[], None]) -> None:
    """All files of the folder below `inside`; weights do not get smaller, so that nothing is compressed."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            check()
            entry = tarfile.TarInfo(f"{inside}/{file.relative_to(folder).as_posix()}")
            entry.size, entry.mode = file.stat().st_size, 0o644
            with file.open("rb") as content:
                archive.addfile(entry, content)

"""Uploaded files: stored, previewed and imported; large ones by a worker."""

import secrets
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, BinaryIO

from django.conf import settings
from django.core import signing
from django.core.files import File
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.core.errors import DomainError, NotFound
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.core.storage import artifacts
from apps.core.storage.storage_names import storage_name
from apps.core.storage.temporary_files import TemporaryFile, TooMuchTemporary, temporary_bytes
from apps.core.storage.unpacking import bounds_of_request
from apps.trajectories import formats, services
from apps.trajectories.formats.mapping import FieldMapping
from apps.trajectories.formats.record import Record
from apps.trajectories.import_reader import ImportReader, read_import_records
from apps.trajectories.masking import checked_detectors
from apps.trajectories.models import Import
from workers import schema
from workers.errors import InvalidRecord, RewardError

ADVANCE_IMPORTS = "apps.trajectories.tasks.advance_imports"
PREVIEWED_RECORDS = 2000  # records of an upload read for its preview; more are imported by a worker
_SHOWN, _ERRORS, _DISCOVERED = 3, 20, 20
_UNCONFIRMED_FOR = timedelta(days=1)
_SALT = "trajectories.upload"
_IN_MEMORY = 16 * 2**20
_FOLDER = "uploads"


@dataclass(slots=True)
class UploadPreview:
    """count: records read; is_all: there are no more. errors: [{"line", "pointer", "message"}]. dropped, kept: fields
    that are not read, [{"path", "reason", "count"}]. documents: the first ones, for a mapping of their fields."""

    format: formats.Format | None = None
    detected: bool = False
    count: int = 0
    is_all: bool = True
    error_count: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    first: list[schema.Trajectory] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    kept: list[dict[str, Any]] = field(default_factory=list)
    documents: list[Any] = field(default_factory=list)

    def add(self, record: Record, reader: ImportReader) -> None:
        self.count += 1
        try:
            reader.prepare(record)
        except InvalidRecord as error:
            self.error_count += 1
            if len(self.errors) < _ERRORS:
                self.errors.append({"line": record.line, "pointer": error.pointer, "message": error.message})
            return
        if len(self.first) < _SHOWN:
            self.first.append(reader.read(record))


def preview_upload(stream: BinaryIO, *, format: formats.Format | None, project: Project) -> UploadPreview:
    """Preview an import of `stream` from its first records. format: None where it is to be detected."""
    reader, found = ImportReader(format), UploadPreview()
    for number, record in enumerate(read_import_records(stream, bounds=bounds_of_request(project.pk))):
        if max(number, found.count) >= PREVIEWED_RECORDS:
            found.is_all = False
            break
        if record.document is not None and len(found.documents) < _DISCOVERED:
            found.documents.append(record.document)
        for part in reader.parts(record):
            found.add(part, reader)
    for part in reader.rest():
        found.add(part, reader)
    found.format, found.detected = reader.format, reader.detected
    found.dropped, found.kept = reader.dropped.as_json(), reader.kept.as_json()
    return found


def keep_upload(*, project: Project, file: File) -> str:
    """Store an uploaded file until it is confirmed. Returns its name in the store."""
    _sweep(project)
    waiting = artifacts.stored_bytes(storage_name(_FOLDER, project.pk)) + temporary_bytes(project.pk)
    if waiting + (file.size or 0) > settings.MAX_TEMPORARY_BYTES:
        raise TooMuchTemporary(settings.MAX_TEMPORARY_BYTES)
    return artifacts.store_upload(file, storage_name(_FOLDER, project.pk, secrets.token_hex(16)))


def pack_files(project: Project, files: Sequence[UploadedFile], names: Sequence[str]) -> File:
    """Several uploaded files as one zip archive, under their paths in the folder that they were chosen from.

    names: of the files, in their order; what of it is missing or leads outside is replaced by the file's own name.
    """
    packed: Any = TemporaryFile(project.pk, _IN_MEMORY)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for index, file in enumerate(files):
            given = names[index] if index < len(names) else ""
            parts = [part for part in given.replace("\\", "/").split("/") if part not in ("", ".", "..")]
            name = "/".join(parts) if parts and parts[-1] == file.name else f"{index + 1}/{file.name}"
            with archive.open(name, "w") as entry:
                for piece in file.chunks():
                    entry.write(piece)
    packed.seek(0)
    return File(packed, name=f"{len(files)} files")


def open_upload(name: str) -> BinaryIO:
    try:
        return artifacts.open_file(name)
    except NotFound:
        raise DomainError(
            "The uploaded file was imported already, or not confirmed within a day. Upload it again."
        ) from None


@dataclass(frozen=True, slots=True)
class SignedUpload:
    """A kept upload, as the confirmation names it. paths: of the mapping that it is read by."""

    file: str
    filename: str
    format: str
    is_all: bool
    paths: dict[str, str] | None = None


def sign_upload(project: Project, upload: SignedUpload) -> str:
    """The signed token of the confirmation, which can name no other file."""
    values = [project.pk, upload.file, upload.filename, upload.format, upload.is_all, upload.paths]
    return signing.dumps(values, salt=_SALT, compress=True)


def signed_upload(project: Project, token: str) -> SignedUpload:
    """Raises DomainError."""
    try:
        owner, *values = signing.loads(token, salt=_SALT, max_age=_UNCONFIRMED_FOR)
    except signing.BadSignature:
        owner, values = None, []
    if owner != project.pk:
        raise DomainError(
            "This confirmation has expired or belongs to another project. Upload the file again."
        )
    return SignedUpload(*values)


@transaction.atomic
def start_import(
    *, project: Project, token: str, keep_good: bool, by: User, mask: Sequence[str] = ()
) -> Import:
    """Import a confirmed upload: immediately if it is small, otherwise by a worker."""
    upload = signed_upload(project, token)
    started = Import.objects.filter(project=project, file=upload.file).first()
    if started is not None:  # confirmed twice
        return started
    open_upload(upload.file).close()
    job = Import.objects.create(
        project=project,
        uploaded_by=by,
        filename=upload.filename[:255],
        file=upload.file,
        format=upload.format,
        mapping=upload.paths,
        keep_good=keep_good,
        mask=list(checked_detectors(mask)),
    )
    if upload.is_all:
        job.attempt, job.state, job.started_at = 1, JobState.RUNNING, timezone.now()
        job.save(update_fields=["attempt", "state", "started_at"])
        _settle(job, _import(job, lambda done: None))
    else:
        job_queue.nudge_on_commit(ADVANCE_IMPORTS)
    return job


def run_import(job: Import) -> None:
    """A claimed import to its end, in one transaction. Raises ClaimLost when another attempt has it."""
    with job_queue.keep_heartbeat(job) as heartbeat:  # from a thread: the import's transaction would hide it

        def report(done: int) -> None:
            heartbeat.progress = {"done": done, "total": None, "note": "Reading records"}
            heartbeat.check()

        try:
            with transaction.atomic():
                result = _import(job, report)
                with job_queue.fenced(job):
                    _settle(job, result)
        except job_queue.Cancelled:
            job_queue.finish(job, JobState.CANCELLED)
        except (DomainError, RewardError) as error:
            job_queue.finish(job, JobState.FAILED, error=error.message)


def cancel_import(*, job: Import) -> None:
    job_queue.request_cancel(job)


def _import(job: Import, report: Callable[[int], None]) -> services.ImportResult:
    with open_upload(job.file) as stream:
        return services.import_trajectories(
            project=job.project,
            stream=stream,
            format=job.format if job.mapping is None else formats.by_mapping(FieldMapping(job.mapping)),
            keep_good=job.keep_good,
            by=job.uploaded_by,
            progress=report,
            import_id=job.pk,
            mask=job.mask,
        )


def _settle(job: Import, result: services.ImportResult) -> None:
    refused = bool(result.rejected) and not job.keep_good
    error = f"{result.rejected_count} records are invalid, so nothing was imported." if refused else ""
    counts = {"created": result.created, "duplicates": result.duplicates, "rejected": result.rejected}
    counts |= {"updated": result.updated, "dropped": result.dropped.as_json(), "kept": result.kept.as_json()}
    if result.masked is not None:
        counts["masked"] = dict(result.masked)
    if not job.created and result.format:
        counts["format"] = result.format
    job_queue.finish(job, JobState.FAILED if refused else JobState.SUCCEEDED, error=error, **counts)
    transaction.on_commit(lambda: artifacts.delete_file(job.file))


def _sweep(project: Project) -> None:
    """Delete unconfirmed uploads."""
    waiting = set(Import.objects.filter(project=project, finished_at=None).values_list("file", flat=True))
    old = artifacts.files_before(storage_name(_FOLDER, project.pk), timezone.now() - _UNCONFIRMED_FOR)
    for name in list(old):
        if name not in waiting:
            artifacts.delete_file(name)

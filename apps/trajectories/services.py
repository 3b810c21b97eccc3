"""Everything that writes trajectories and what is kept about them."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import zstandard
from django.db import transaction
from django.db.models import CharField, F, Func, QuerySet, Value

from apps.accounts.models import ApiKey, Project, User
from apps.accounts.services import record_audit
from apps.core.errors import DomainError
from apps.core.storage.unpacking import InputBounds
from apps.trajectories import attachments, formats, patterns, search_text, writer
from apps.trajectories.field_coverage import FieldCounts
from apps.trajectories.formats.record import Record
from apps.trajectories.import_reader import ImportReader, read_import_records
from apps.trajectories.models import Trajectory, TrajectoryFact
from apps.trajectories.prefetching import prefetch
from apps.trajectories.saved import format_named
from apps.trajectories.selectors import iterate_trajectory_keys, load_trajectories, unindexed_trajectories
from workers import schema
from workers.errors import InvalidRecord

OTHER_OUTCOME = (
    "the trajectory is there with another outcome, which is kept; `import_feedback` with outcomes changes it"
)
_CHUNK, _CHUNK_BYTES = 1000, 8 * 2**20  # trajectories, and bytes of documents, written at a time
_MOST_ERRORS = 100  # after which a file is not read on: nothing of it will be imported
_MOST_LISTED = 1000
_FACTS = 5000  # written at a time
_LONGEST_CLAIM = 200  # characters of a source that is answered


@dataclass(slots=True)
class ImportResult:
    """updated: duplicates that brought an outcome which was unknown. seen: see writer.copy_trajectories.
    rejected: [{"line", "pointer", "message"}], of at most 1000; rejected_count: of all. missing_attachments: sources
    `sha256:...` that name no attachment of the project, of at most 1000; they are kept as text. dropped, kept: fields
    of the source that are in no trajectory, or only in `extra` and metadata (ImportReader)."""

    created: int = 0
    duplicates: int = 0
    updated: int = 0
    rejected: list[dict[str, Any]] = field(default_factory=list)
    rejected_count: int = 0
    format: str | None = None
    missing_attachments: set[str] = field(default_factory=set)
    dropped: FieldCounts = field(default_factory=FieldCounts)
    kept: FieldCounts = field(default_factory=FieldCounts)
    seen: Counter[str] = field(default_factory=Counter)

    def reject(self, line: int, error: InvalidRecord) -> None:
        self.rejected_count += 1
        if len(self.rejected) < _MOST_LISTED:
            self.rejected.append({"line": line, "pointer": error.pointer, "message": error.message})

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "created": self.created,
            "duplicates": self.duplicates,
            "updated": self.updated,
        }
        found |= {"rejected": self.rejected}
        found |= {"dropped": self.dropped.as_json(), "kept": self.kept.as_json()}
        if not self.missing_attachments:
            return found
        return found | {"missing_attachments": sorted(self.missing_attachments)[:_MOST_LISTED]}


def import_trajectories(
    *,
    project: Project,
    stream: BinaryIO | Path,
    format: str | formats.Format = formats.AUTO,
    keep_good: bool = False,
    by: User | ApiKey | None,
    progress: Callable[[int], None] = lambda done: None,
    first_line: int = 1,
    bounds: InputBounds | None = None,
) -> ImportResult:
    """Bring in a file of trajectories. One bad record refuses all of it, unless `keep_good`: then chunks are kept.

    stream: a file, or the path of a folder. by: None is the command line. progress: called with the number of records
    read so far. bounds: what the file may become; raises DomainError for more, and where the client left.
    """
    reader = ImportReader(format_named(project, format) if isinstance(format, str) else format)
    result, done = ImportResult(), 0
    bounds = bounds or InputBounds(owner=project.pk)
    chunks = prefetch(_chunks(reader, read_import_records(stream, first_line=first_line, bounds=bounds)))
    with closing(chunks), nullcontext() if keep_good else transaction.atomic():
        for chunk in chunks:
            for line, error in chunk.bad:
                result.reject(line, error)
            if keep_good or not result.rejected:
                for name, good in chunk.good.items():
                    _write(project, name, good, result)
            done += chunk.read
            progress(done)
            bounds.check()
            if not keep_good and result.rejected_count >= _MOST_ERRORS:
                break
        if result.rejected and not keep_good:
            transaction.set_rollback(True)
            result.created = result.duplicates = result.updated = 0
            result.missing_attachments.clear()
        result.dropped.add_all(reader.dropped)
        result.kept.add_all(reader.kept)
        result.format = reader.format.name if reader.format else None
        if result.created:
            data = {"created": result.created, "format": result.format}
            record_audit(project=project, actor=by, verb="trajectories.imported", data=data)
    if not done:
        raise DomainError("The file has no records.")
    return result


@dataclass(slots=True)
class _Chunk:
    """good: by the name of their format. read: how many records it was made of."""

    good: dict[str, list[writer.PreparedTrajectory]] = field(default_factory=dict)
    bad: list[tuple[int, InvalidRecord]] = field(default_factory=list)
    read: int = 0
    size: int = 0

    @property
    def is_full(self) -> bool:
        return max(self.read, sum(map(len, self.good.values()))) >= _CHUNK or self.size >= _CHUNK_BYTES

    def add(self, reader: ImportReader, part: Record) -> None:
        try:
            prepared = reader.prepare(part)
        except InvalidRecord as error:
            self.bad.append((part.line, error))
        else:
            self.good.setdefault(reader.format_name(part), []).append(prepared)


def _chunks(reader: ImportReader, records: Iterable[Record]) -> Iterator[_Chunk]:
    chunk = _Chunk()
    for record in records:
        chunk.read += 1
        chunk.size += len(record.raw)
        for part in reader.parts(record):
            chunk.add(reader, part)
        if chunk.is_full:
            yield chunk
            chunk = _Chunk()
    for part in reader.rest():
        chunk.size += len(part.raw)
        chunk.add(reader, part)
        if chunk.is_full:
            yield chunk
            chunk = _Chunk()
    if chunk.read or chunk.good or chunk.bad:
        yield chunk


def _write(
    project: Project, source_format: str, good: list[writer.PreparedTrajectory], result: ImportResult
) -> None:
    written = store_prepared(project=project, source_format=source_format, prepared=good, seen=result.seen)
    result.created += written.created
    result.duplicates += len(good) - written.created
    result.updated += written.updated
    if written.conflicts:
        result.dropped.add("", OTHER_OUTCOME, written.conflicts)
    if claims := {claim for record in good for claim in record.claims}:
        missing = attachments.missing_claims(project, claims)
        result.missing_attachments |= {claim[:_LONGEST_CLAIM] for claim in missing}


@transaction.atomic
def store_prepared(
    *,
    project: Project,
    source_format: str,
    prepared: Sequence[writer.PreparedTrajectory],
    seen: Counter[str] | None = None,
) -> writer.WrittenTrajectories:
    """seen: of the chunks of the same file before."""
    return writer.copy_trajectories(project, source_format, prepared, Counter() if seen is None else seen)


@transaction.atomic
def store_trajectories(
    *,
    project: Project,
    trajectories: Sequence[schema.Trajectory],
    source_format: str,
    documents: Sequence[bytes] | None = None,
) -> list[int]:
    """Keys of the trajectories, in order: made, or those already there with the same content.

    documents: the originals; without them a trajectory's ATIF document is kept. Raises InvalidRecord.
    """
    compressor = zstandard.ZstdCompressor(level=3)
    keys: list[int] = []
    for start in range(0, len(trajectories), _CHUNK):
        chunk = [
            writer.prepare_trajectory(
                trajectory, documents[start + index] if documents else _document(trajectory), compressor
            )
            for index, trajectory in enumerate(trajectories[start : start + _CHUNK])
        ]
        keys += writer.copy_by_content(project, source_format, chunk)
    return keys


@transaction.atomic
def tag_trajectories(
    *, project: Project, rows: QuerySet[Trajectory], tag: str, remove: bool = False, by: User | None
) -> int:
    """Give `rows` of the project the tag, or take it away; how many were changed."""
    if remove:
        changed = rows.filter(tags__contains=[tag]).update(tags=_tags("array_remove", tag))
    else:
        changed = rows.exclude(tags__contains=[tag]).update(tags=_tags("array_append", tag))
    if changed:
        verb = "trajectories.untagged" if remove else "trajectories.tagged"
        record_audit(project=project, actor=by, verb=verb, target=tag, data={"trajectories": changed})
    return changed


def replace_facts(*, project: Project, kind: str, facts: Iterable[tuple[int, str, float]]) -> int:
    """What is known of the project's trajectories from now on, of one kind: (key, name, value). How many.

    Called within a transaction that keeps these trajectories from being deleted.
    """
    TrajectoryFact.objects.filter(project=project, kind=kind).delete()
    rows = (
        TrajectoryFact(project=project, trajectory_id=key, kind=kind, name=name, value=value)
        for key, name, value in facts
    )
    count = 0
    while chunk := list(islice(rows, _FACTS)):
        count += len(TrajectoryFact.objects.bulk_create(chunk))
    return count


def _tags(function: str, tag: str) -> Func:
    return Func(F("tags"), Value(tag, output_field=CharField()), function=function)


def index_trajectories(project: Project, progress: Callable[[int], None] = lambda done: None) -> int:
    """Look for words and patterns in trajectories imported before that was done at import; how many there were."""
    done = 0
    for keys in iterate_trajectory_keys(unindexed_trajectories(project)):
        found = load_trajectories(keys)
        with transaction.atomic():
            for key, trajectory in found.items():
                Trajectory.objects.filter(pk=key).update(patterns=patterns.detect_patterns(trajectory.steps))
            writer.write_search_words(
                [(key, search_text.searchable_words(trajectory)) for key, trajectory in found.items()]
            )
        done += len(keys)
        progress(len(keys))
    return done


def _document(trajectory: schema.Trajectory) -> bytes:
    return json.dumps(schema.to_atif(trajectory), ensure_ascii=False).encode("utf-8", "surrogatepass")

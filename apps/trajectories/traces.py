"""OpenTelemetry traces as they arrive, span by span, until a trace is whole and becomes trajectories.

Nothing in the protocol says that a trace is complete. It is taken for whole when a root has ended, no span waits for a
parent, and nothing came for TOUCHSTONE_TRACE_QUIET_SECONDS; and for lost, and taken as it is, an hour after its last
span. Later spans create new trajectories: equal ones are the existing rows, others are added next to
them. Of spans that have nothing to do with a model only their place in the trace is kept. Spans are deleted a day
after the last one, the note of what became of a trace after a week; spans of a convention that is not read yet stay.
"""

import io
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Any

import zstandard
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.accounts.models import Project
from apps.core.database.outage import is_outage
from apps.trajectories import formats, services
from apps.trajectories.field_coverage import FieldCounts
from apps.trajectories.formats.record import Record, encoded
from apps.trajectories.formats.tracing import otel
from apps.trajectories.import_reader import ImportReader, read_import_records
from apps.trajectories.models import Trace, TraceSpan
from workers.errors import InvalidRecord

log = logging.getLogger(__name__)

EVERY_SECONDS = 5.0
_LOST_AFTER = timedelta(hours=1)
_SPANS_FOR, _NOTE_FOR = timedelta(days=1), timedelta(days=7)
_AT_ONCE = 20  # traces put together in one go


@dataclass(slots=True)
class Received:
    """refused: how many spans were not kept. why: of the first of them. dropped: fields that are in no span."""

    kept: int = 0
    refused: int = 0
    why: str = ""
    dropped: FieldCounts = field(default_factory=FieldCounts)

    def count_lost(self, export: Any, spans: list[otel.Span]) -> None:
        for use in otel.lost_in_spans(export, spans):
            self.dropped.add(use.path, use.reason)


def receive_export(*, project: Project, export: Any) -> Received:
    """Keep the spans of an export (OTLP JSON). Raises InvalidRecord."""
    spans = list(otel.read_spans(export))
    result = receive(project=project, spans=spans)
    result.count_lost(export, spans)
    return result


def receive(*, project: Project, spans: Iterable[otel.Span]) -> Received:
    """Keep spans; those that came before replace what was kept. All or, by an exception, none."""
    result = Received()
    by_trace = sorted(spans, key=lambda span: span["trace"])  # the order of locks
    with transaction.atomic():
        for name, of_trace in groupby(by_trace, key=lambda span: span["trace"]):
            _receive(project, name, list(of_trace), result)
    return result


def receive_lines(
    *, project: Project, lines: bytes, first_line: int, reject: Callable[[int, InvalidRecord], None]
) -> Received:
    """Store the spans of JSON lines, each an export; an invalid line is reported and skipped."""
    spans: list[otel.Span] = []
    lost = Received()
    for record in read_import_records(io.BytesIO(lines), first_line=first_line):
        try:
            if record.error is not None:
                raise record.error
            own = list(otel.read_spans(record.document))
            lost.count_lost(record.document, own)
            spans += own
        except InvalidRecord as error:
            reject(record.line, error)
    result = receive(project=project, spans=spans)
    result.dropped.add_all(lost.dropped)
    return result


def collect(project: Project | None = None) -> int:
    """Create trajectories from complete traces; returns their number. Safe to run concurrently."""
    done = 0
    while done < _AT_ONCE and _collect_one(project):
        done += 1
    return done


def decoded(row: TraceSpan) -> otel.Span:
    return otel.unpacked(zstandard.decompress(bytes(row.data)))


def sweep() -> None:
    """Delete what has been kept long enough."""
    now = timezone.now()
    settled = Trace.objects.filter(look_at=None, is_unread=False)
    TraceSpan.objects.filter(trace__in=settled.filter(last_at__lt=now - _SPANS_FOR)).delete()
    settled.filter(last_at__lt=now - _NOTE_FOR).delete()


def _receive(project: Project, name: str, spans: list[otel.Span], result: Received) -> None:
    now = timezone.now()
    look_at = now + timedelta(seconds=settings.TRACE_QUIET_SECONDS)
    trace, _ = Trace.objects.select_for_update().get_or_create(
        project=project, name=name, defaults={"last_at": now, "look_at": look_at}
    )
    rows: dict[str, TraceSpan] = {}
    before = dict(trace.spans.filter(name__in={span["id"] for span in spans}).values_list("name", "size"))
    size = 0  # by which the trace grows: exporters send a batch again that was not answered in time
    for span in spans:
        raw = otel.packed(span if otel.tells(span) else {**span, "attributes": {}, "events": []})
        grown = len(raw) - (rows[span["id"]].size if span["id"] in rows else before.get(span["id"], 0))
        if trace.size + size + grown > settings.MAX_RECORD_BYTES:
            result.refused += 1
            result.why = result.why or (
                f"trace {name} is over the limit of {settings.MAX_RECORD_BYTES // 2**20} MB (TOUCHSTONE_MAX_RECORD_MB)."
            )
            continue
        size += grown
        rows[span["id"]] = TraceSpan(
            trace=trace,
            name=span["id"],
            parent=span["parent"],
            is_root=span["is_root"],
            size=len(raw),
            data=zstandard.compress(raw, 3),
        )
    TraceSpan.objects.bulk_create(
        rows.values(),
        update_conflicts=True,
        unique_fields=["trace", "name"],
        update_fields=["parent", "is_root", "size", "data"],
    )
    result.kept += len(rows)
    Trace.objects.filter(pk=trace.pk).update(size=F("size") + size, last_at=now, look_at=look_at)


@transaction.atomic
def _collect_one(project: Project | None) -> bool:
    due = Trace.objects.select_for_update(skip_locked=True, of=("self",)).select_related("project")
    due = due.filter(look_at__lte=timezone.now(), project__archived_at=None)
    due = due.filter(project=project) if project else due
    trace = due.order_by("look_at").first()
    if trace is None:
        return False
    lost_at = trace.last_at + _LOST_AFTER
    if not _is_whole(trace) and timezone.now() < lost_at:
        trace.look_at = lost_at
    else:
        trace.look_at = None
        try:
            with transaction.atomic():
                trace.trajectories, trace.error, trace.is_unread = _put_together(trace)
        except Exception as error:  # a mistake of ours, which must not hold up the traces behind it
            if is_outage(error):
                raise
            log.exception("trace %s of project %d could not be put together", trace.name, trace.project_id)
            trace.error = "Internal error; see the server log for the reason."
    trace.save(update_fields=["look_at", "trajectories", "error", "is_unread"])
    return True


def _is_whole(trace: Trace) -> bool:
    known = dict(trace.spans.values_list("name", "parent"))
    roots = set(trace.spans.filter(is_root=True).values_list("name", flat=True))
    return bool(roots) and all(parent in known for name, parent in known.items() if name not in roots)


def _put_together(trace: Trace) -> tuple[int, str, bool]:
    """How many trajectories it is, why it is none or not all, and whether it follows a convention that is not read."""
    spans = [decoded(row) for row in trace.spans.order_by("pk")]
    reader, good, bad = ImportReader(formats.FORMATS["otel"]), [], []
    reader.detectors = services.detectors_of(trace.project)
    for run in otel.group_by_agent(spans):
        try:
            good.append(reader.prepare(Record(1, encoded(run), run)))
        except InvalidRecord as error:
            bad.append(f"{error.pointer or ''} {error.message}".strip())
    if rows := reader.dropped.as_json():
        log.info("trace %s: fields that are in no trajectory: %s", trace.name, rows)
    if not good and not bad:
        bad.append(otel.nothing_said(spans))
    services.store_prepared(project=trace.project, source_format="otel", prepared=good)
    return len(good), " ".join(bad), not good and any(map(otel.convention, spans))

"""The chain of the audit trail: every event gets its number and hash soon after its commit, one sealer at a time.

The seals are rows next to the events: a request that appends an event waits for no lock, and holds none, however long
their transaction takes. An event is late by milliseconds; beat seals what a crash left open.
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Max, Q, QuerySet
from django.utils import timezone

from apps.accounts.audit_hash import ChainCheck, Head, event_hash, verify_documents
from apps.accounts.audit_models import AuditSeal
from apps.accounts.models import AuditEvent

log = logging.getLogger(__name__)

ANCHORS_FILE = "audit-anchors.jsonl"
_LOCK = 7_310_002  # an advisory lock of the database: who seals
_AT_ONCE = 500
_WINDOW = 10_000  # events of transactions that began this long ago may still commit


def seal_soon() -> None:
    """After the commit. Once for any number of events of a transaction."""
    if not any(function is _seal_quietly for _, function, *_ in connection.run_on_commit):
        transaction.on_commit(_seal_quietly)


def _seal_quietly() -> None:
    """What it is about is done and committed: a failure here is beat's to fix."""
    try:
        seal()
    except DatabaseError:
        log.warning("events of the audit trail are not sealed yet; beat does it", exc_info=True)


def seal(*, every: bool = False) -> int:
    """Give the events that have none their places; how many. Another who is at it does ours too.

    every: those too that committed long after later ones; goes through the whole trail.
    """
    sealed = 0
    while True:
        with transaction.atomic():
            found = _seal_some(every) if _is_only_sealer() else 0
        sealed += found
        if found < _AT_ONCE:
            return sealed


def seal_late() -> int:
    return seal(every=True)


def _is_only_sealer() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
        return bool(cursor.fetchone()[0])


def _seal_some(every: bool) -> int:
    last = AuditSeal.objects.order_by("-sequence").first()
    head = Head(last.sequence, last.hash) if last else Head()
    heads: dict[int | None, Head] = {}
    seals = []
    for event in _unsealed(every)[:_AT_ONCE]:
        if event.project_id not in heads:
            heads[event.project_id] = project_head(event.project_id)
        seal = _seal_of(event, head, heads[event.project_id])
        head = Head(seal.sequence, seal.hash)
        heads[event.project_id] = Head(seal.project_sequence, seal.hash)
        seals.append(seal)
    AuditSeal.objects.bulk_create(seals)
    return len(seals)


def _unsealed(every: bool) -> QuerySet[AuditEvent]:
    rows = AuditEvent.objects.filter(seal=None).order_by("pk")
    newest = AuditSeal.objects.aggregate(newest=Max("event_id"))["newest"]
    return rows if every or newest is None else rows.filter(pk__gt=newest - _WINDOW)


def project_head(project: int | None) -> Head:
    """Of a project's own chain; None is the chain of what belongs to none."""
    last = AuditSeal.objects.filter(project_number=project or 0).order_by("-project_sequence").first()
    return Head(last.project_sequence, last.hash) if last else Head()


def _seal_of(event: AuditEvent, head: Head, own: Head) -> AuditSeal:
    seal = AuditSeal(
        sequence=head.sequence + 1,
        event=event,
        previous_hash=head.hash,
        project_number=event.project_id or 0,
        project_sequence=own.sequence + 1,
        project_previous_hash=own.hash,
    )
    seal.hash = event_hash(document_of(seal))
    return seal


def document_of(seal: AuditSeal) -> dict[str, Any]:
    """An event as it is hashed, exported and verified."""
    event = seal.event
    return {
        "sequence": seal.sequence,
        "at": event.at.isoformat(timespec="microseconds"),
        "project": event.project_id,
        "project_slug": event.project_slug,
        "actor": event.actor,
        "verb": event.verb,
        "target": event.target,
        "data": event.data,
        "project_sequence": seal.project_sequence,
        "project_previous_hash": seal.project_previous_hash,
        "previous_hash": seal.previous_hash,
        "hash": seal.hash,
    }


def documents(*, project: int | None = None, whole: bool = True) -> Iterator[dict[str, Any]]:
    """In the chain's order. whole: of the installation; otherwise of `project`."""
    rows = AuditSeal.objects.select_related("event").order_by("sequence")
    if not whole:
        rows = rows.filter(project_number=project or 0).order_by("project_sequence")
    for seal in rows.iterator(chunk_size=2000):
        yield document_of(seal)


def head() -> Head:
    last = AuditSeal.objects.order_by("-sequence").first()
    return Head(last.sequence, last.hash) if last else Head()


def verify(known: Mapping[int, str] | None = None) -> ChainCheck:
    """The trail in the database against itself, the anchors of this home, and `known` ones from elsewhere."""
    seal(every=True)
    verdict = verify_documents(documents(), anchors=anchors(settings.HOME) | dict(known or {}))
    if lost := AuditSeal.objects.count() - verdict.events:
        verdict.faults.append(f"{lost} events were deleted, though their seals are there.")
    same = Q(event__project_id=F("project_number")) | Q(event__project_id=None, project_number=0)
    if moved := AuditSeal.objects.exclude(same).count():
        verdict.faults.append(f"{moved} events were moved to another project.")
    return verdict


def write_anchor() -> None:
    """Write down how far the chain goes, where a person who changes the database cannot reach: in the home and the
    log."""
    now, path = head(), settings.HOME / ANCHORS_FILE
    known = anchors(settings.HOME)
    if now.sequence == 0 or now.sequence in known:
        return
    line = {"at": timezone.now().isoformat(), "sequence": now.sequence, "hash": now.hash}
    with open(path, "a", opener=_private) as file:
        file.write(json.dumps(line) + "\n")
    log.info("the audit trail is written to %s", now)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def anchors(home: Path) -> dict[int, str]:
    """Hashes by number, of the anchors that were written in this home."""
    path = home / ANCHORS_FILE
    if not path.is_file():
        return {}
    found = {}
    for line in path.read_text().splitlines():
        if line.endswith("}"):  # a line that a crash cut is no anchor
            anchor = json.loads(line)
            found[int(anchor["sequence"])] = str(anchor["hash"])
    return found

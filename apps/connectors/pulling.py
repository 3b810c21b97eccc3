"""A pull: documents of a peer become trajectories, page by page.

What was stored of a page, which documents it was made of and where to go on are written in one transaction: a run that
is killed goes on at the page it was in, and what of it was stored before is known by its digest.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.connectors.models import Connector, ConnectorRun, PulledDocument, PulledTrajectory
from apps.connectors.sources.peer_client import PeerRefused, UnreadableAnswer
from apps.connectors.sources.source import DocumentProblem, FetchedDocument, Source, SourceContext
from apps.core.errors import DomainError
from apps.core.http.outgoing import UnreadableReply
from apps.core.jobs import job_queue
from apps.trajectories.models import Trajectory
from apps.trajectories.services import ImportResult, read_into_project, tag_trajectories
from workers.errors import InvalidRecord, RewardError

SUPERSEDED = "superseded"  # tag of trajectories whose trace went on after they were imported
_MOST_REJECTED = 1000  # listed of a run
_BATCH_BYTES = 32 * 2**20  # of documents that are held until they are stored
_BATCH = 100  # documents
_WAITING = 500  # traces that are asked for again by one run

_OF_ONE = (
    400,
    404,
    410,
    413,
    422,
)  # answers about one document; others say that the peer or the key is at fault


@dataclass(slots=True)
class _FetchedBatch:
    """Documents that were fetched, by their source ids; None: the peer has it no more. problems: why there is none."""

    fetched: dict[str, FetchedDocument | None] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        found = [document for document in self.fetched.values() if document is not None]
        if any(not isinstance(document.body, bytes) for document in found):
            return True  # a file is stored before the next one is fetched
        return (
            sum(document.size for document in found) >= _BATCH_BYTES
            or len(self.fetched) + len(self.problems) >= _BATCH
        )


class Pull:
    """One run over a source. report: called with the progress of the run."""

    def __init__(
        self,
        run: ConnectorRun,
        source: Source,
        context: SourceContext,
        report: Callable[[dict[str, Any]], None],
    ) -> None:
        self._run, self._source, self._context, self._report = run, source, context, report
        self._connector = context.connector
        self._done = run.documents
        self._total: int | None = None

    def execute(self) -> None:
        """To its end. Raises DomainError, RewardError and what the heartbeat raises; what was stored stays."""
        waiting = [] if self._source.lists_everything else self._waiting_ids()
        self._fetch_all(waiting, {}, None)
        fetched = set(waiting)  # listed again within the overlap
        for page in self._source.pages(dict(self._connector.cursor)):
            self._total = page.total
            self._fetch_all([each for each in page.ids if each not in fetched], page.versions, page.cursor)

    def _waiting_ids(self) -> list[str]:
        waiting = self._connector.documents.filter(state=PulledDocument.State.WAITING)
        return [str(row.target.get("id") or row.source_id) for row in waiting.order_by("seen_at")[:_WAITING]]

    def _fetch_all(self, ids: list[str], versions: dict[str, str], cursor: dict[str, Any] | None) -> None:
        """Fetch documents and store them; `cursor` is saved with the last of them."""
        known = self._known(ids)
        batch = _FetchedBatch()
        for source_id in dict.fromkeys(ids):
            row = known.get(source_key(source_id))
            version = versions.get(source_id)
            is_waiting = row is not None and row.state == PulledDocument.State.WAITING
            if row is None or is_waiting or version is None or row.target.get("version") != version:
                self._fetch(source_id, batch)
            else:
                self._done += 1
            if batch.is_full:
                self._store(batch, None)
                batch = _FetchedBatch()
        if batch.fetched or batch.problems or cursor is not None:
            self._store(batch, cursor)

    def _fetch(self, source_id: str, batch: _FetchedBatch) -> None:
        self._report({"done": self._done, "total": self._total, "note": "Fetching documents"})
        try:
            batch.fetched[source_id] = self._source.fetch(source_id)
        except (UnreadableReply, UnreadableAnswer, DocumentProblem) as error:
            batch.problems[source_id] = error.message
        except PeerRefused as error:
            if error.answered not in _OF_ONE:
                raise
            batch.problems[source_id] = error.message
        self._done += 1

    def _known(self, ids: Iterable[str]) -> dict[str, PulledDocument]:
        rows = self._connector.documents.filter(source_id__in={source_key(source_id) for source_id in ids})
        return {row.source_id: row for row in rows}

    def _store(self, batch: _FetchedBatch, cursor: dict[str, Any] | None) -> None:
        counts = _Counts()
        with transaction.atomic():
            known = self._known([*batch.fetched, *batch.problems])
            for source_id, message in batch.problems.items():
                counts.reject(source_id, [{"line": 1, "pointer": "", "message": message}], 1)
                row = known.get(source_key(source_id))
                # What scores are attached to stays; without the version a file is fetched again.
                target = {key: value for key, value in row.target.items() if key != "version"} if row else {}
                self._save(known, source_id, PulledDocument.State.REJECTED, "", target)
            for source_id, document in batch.fetched.items():
                if document is None:
                    self._connector.documents.filter(
                        source_id=source_key(source_id), state=PulledDocument.State.WAITING
                    ).delete()
                else:
                    self._store_document(source_id, document, known.get(source_key(source_id)), counts)
            with job_queue.fenced(self._run):
                if cursor is not None:
                    Connector.objects.filter(pk=self._connector.pk).update(cursor=cursor)
                self._add(counts, len(batch.fetched) + len(batch.problems))

    def _store_document(
        self, source_id: str, document: FetchedDocument, row: PulledDocument | None, counts: "_Counts"
    ) -> None:
        states = PulledDocument.State
        if row is not None and row.state != states.WAITING and row.digest == document.digest:
            counts.duplicates += row.trajectories.filter(is_current=True).count()
            self._save({row.source_id: row}, source_id, states(row.state), row.digest, document.target)
            return
        if not self._context.is_quiet(document.last_activity):
            counts.waiting += 1
            self._save({}, source_id, states.WAITING, row.digest if row else "", document.target)
            return
        result, keys = self._import(document)
        counts.add(result)
        counts.reject(source_id, result.rejected, result.rejected_count)
        state = states.IMPORTED if keys else states.REJECTED
        saved = self._save({}, source_id, state, document.digest, document.target)
        self._link(saved, keys)

    def _import(self, document: FetchedDocument) -> tuple[ImportResult, list[int]]:
        """What became of a document, and the keys of its trajectories."""
        result, keys = ImportResult(), list[int]()
        try:
            with transaction.atomic(), document.open() as stream:
                for _ in read_into_project(
                    project=self._connector.project,
                    stream=stream,
                    format=self._source.format,
                    keep_good=True,
                    result=result,
                    on_written=keys.extend,
                ):
                    self._report({"done": self._done, "total": self._total, "note": "Reading documents"})
        except (DomainError, RewardError) as error:
            result, keys = ImportResult(rejected_count=1), []
            result.rejected = [{"line": 1, "pointer": error.pointer or "", "message": error.message}]
        if not keys and not result.rejected_count:
            result.reject(1, InvalidRecord("the document has no records."))
        return result, keys

    def _save(
        self,
        known: dict[str, PulledDocument],
        source_id: str,
        state: PulledDocument.State,
        digest: str,
        target: dict[str, Any],
    ) -> PulledDocument:
        key = source_key(source_id)
        target = target if key == source_id else target | {"id": source_id}
        row = known.get(key)
        if row is not None and (row.state, row.digest, row.target) == (state, digest, target):
            return row
        saved, _ = PulledDocument.objects.update_or_create(
            connector=self._connector,
            source_id=key,
            defaults={"state": state, "digest": digest, "target": target, "seen_at": timezone.now()},
        )
        return saved

    def _link(self, document: PulledDocument, keys: list[int]) -> None:
        """The trajectories that the document has now; those that it has no more are tagged."""
        earlier = document.trajectories.filter(is_current=True).exclude(trajectory__in=keys)
        superseded = list(earlier.values_list("trajectory_id", flat=True)) if keys else []
        if superseded:
            tag_trajectories(
                project=self._connector.project,
                rows=Trajectory.objects.filter(project=self._connector.project, pk__in=superseded),
                tag=SUPERSEDED,
                by=None,
            )
            document.trajectories.filter(trajectory__in=superseded).update(is_current=False)
        PulledTrajectory.objects.bulk_create(
            [PulledTrajectory(document=document, trajectory_id=key) for key in dict.fromkeys(keys)],
            update_conflicts=True,
            unique_fields=["document", "trajectory"],
            update_fields=["is_current"],
        )

    def _add(self, counts: "_Counts", documents: int) -> None:
        run = ConnectorRun.objects.get(pk=self._run.pk)
        rejected = [*run.rejected, *counts.rejected][:_MOST_REJECTED]
        ConnectorRun.objects.filter(pk=run.pk).update(
            documents=F("documents") + documents,
            created=F("created") + counts.created,
            duplicates=F("duplicates") + counts.duplicates,
            updated=F("updated") + counts.updated,
            waiting=F("waiting") + counts.waiting,
            rejected_count=F("rejected_count") + counts.rejected_count,
            rejected=rejected,
        )


@dataclass(slots=True)
class _Counts:
    created: int = 0
    duplicates: int = 0
    updated: int = 0
    waiting: int = 0
    rejected_count: int = 0
    rejected: list[dict[str, Any]] = field(default_factory=list)

    def add(self, result: ImportResult) -> None:
        self.created += result.created
        self.duplicates += result.duplicates
        self.updated += result.updated

    def reject(self, source_id: str, rejected: list[dict[str, Any]], count: int) -> None:
        self.rejected_count += count
        room = _MOST_REJECTED - len(self.rejected)
        self.rejected += [{"source": source_id[:200], **rejection} for rejection in rejected[:room]]


def source_key(source_id: str) -> str:
    """As the column takes it: longer ones by their digest."""
    if len(source_id) <= PulledDocument.SOURCE_LENGTH and "\0" not in source_id:
        return source_id
    return f"sha256:{hashlib.sha256(source_id.encode('utf-8', 'surrogatepass')).hexdigest()}"

"""A push: feedback on pulled trajectories, and rewards of an endpoint, become scores of the traces they came from.

A score is sent once and again only when it changed: what was sent is noted by its digest (`PushedScore`), after each
batch. Ids do not depend on values, so what was sent before a run was killed is replaced at the peer, not doubled.
"""

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from django.db.models import F
from django.utils import timezone
from touchstone_client import RewardServiceError

from apps.annotation.feedback.records import iter_annotation_records
from apps.annotation.feedback.trace_scores import TraceScore, annotation_scores
from apps.connectors.models import ConnectorRun, PulledDocument, PulledTrajectory, PushedScore
from apps.connectors.sources.peer_client import PeerRefused
from apps.connectors.sources.source import SourceContext
from apps.connectors.targets.target import OutgoingScore, ScoreTarget
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.rewards import remote
from apps.rewards.models import Endpoint

NO_FORM = "the peer has no form for this score"
_NAMESPACE = uuid.UUID("b1b8f0a6-52a5-5d0a-9c0d-7d0c1f6f4e21")
_CHUNK = 200
_SCORED = 16  # trajectories that the endpoint is asked for in one call
_MOST_REJECTED = 1000
_NOT_OF_SCORES = (401, 403, 429)  # of the connector: the next score would be answered the same
Placed = tuple[TraceScore, PulledDocument]


class Push:
    """One run to a target. report: called with the progress of the run."""

    def __init__(
        self,
        run: ConnectorRun,
        target: ScoreTarget,
        context: SourceContext,
        report: Callable[[dict[str, Any]], None],
    ) -> None:
        self._run, self._target, self._context, self._report = run, target, context, report
        self._connector = context.connector
        self._done = 0

    def execute(self) -> None:
        """Raises DomainError and what the heartbeat raises; what was sent is noted."""
        self._send_all(self._feedback())
        if self._connector.push_endpoint:
            self._send_all(self._rewards(self._endpoint()))

    def _feedback(self) -> Iterator[Placed]:
        """Scores of annotations of the connector's own trajectories."""
        project = self._connector.project
        left_out = Counter[str]()
        found = (
            score
            for stored in iter_annotation_records(project=project, filters={})
            for score in annotation_scores(stored, project=project.slug, left_out=left_out)
        )
        while chunk := list(islice(found, _CHUNK)):
            documents = self._documents({int(score.metadata["trajectory"]) for score in chunk})
            for score in chunk:
                if (document := documents.get(int(score.metadata["trajectory"]))) is not None:
                    yield score, document

    def _documents(self, keys: set[int]) -> dict[int, PulledDocument]:
        """By the keys of their trajectories, superseded ones too: what was judged is the same trace."""
        links = PulledTrajectory.objects.filter(document__connector=self._connector, trajectory__in=keys)
        return {link.trajectory_id: link.document for link in links.select_related("document")}

    def _endpoint(self) -> Endpoint:
        endpoint = (
            Endpoint.objects.select_related("project", "active")
            .filter(project=self._connector.project, name=self._connector.push_endpoint)
            .first()
        )
        if endpoint is None or endpoint.active is None:
            raise DomainError(
                f"The endpoint {self._connector.push_endpoint} serves nothing. Deploy a model to it, or choose another."
            )
        return endpoint

    def _rewards(self, endpoint: Endpoint) -> Iterator[Placed]:
        """Rewards of trajectories that the revision which is served now has not scored for this connector yet."""
        assert endpoint.active is not None
        version = endpoint.active.number
        links = PulledTrajectory.objects.filter(document__connector=self._connector, is_current=True)
        links = links.select_related("document", "trajectory").order_by("pk")
        rows = links.iterator(chunk_size=_CHUNK)
        while chunk := list(islice(rows, _CHUNK)):
            sent = dict(
                self._connector.pushed_scores.filter(
                    key__in=[_reward_id(endpoint, link) for link in chunk]
                ).values_list("key", "version")
            )
            waiting = [link for link in chunk if sent.get(_reward_id(endpoint, link)) != version]
            for start in range(0, len(waiting), _SCORED):
                yield from self._scored(endpoint, waiting[start : start + _SCORED])

    def _scored(self, endpoint: Endpoint, links: list[PulledTrajectory]) -> Iterator[Placed]:
        self._report({"done": self._done, "total": None, "note": f"Scoring by {endpoint.name}"})
        body = {"inputs": [{"trajectory_id": str(link.trajectory_id)} for link in links]}
        try:
            reply = remote.ask(endpoint, "score", body)
        except RewardServiceError as error:
            raise DomainError(f"The endpoint {endpoint.name} gave no rewards: {error}", status=502) from None
        for link, result in zip(links, reply["results"], strict=True):
            yield _reward_score(endpoint, reply["version"], link, result), link.document

    def _send_all(self, scores: Iterable[Placed]) -> None:
        rows = iter(scores)
        while chunk := list(islice(rows, self._target.batch_size)):
            self._report({"done": self._done, "total": None, "note": "Sending scores"})
            self._send_batch(chunk)
            self._done += len(chunk)

    def _send_batch(self, chunk: list[Placed]) -> None:
        sent = {
            row.key: row
            for row in self._connector.pushed_scores.filter(key__in=[score.id for score, _ in chunk])
        }
        outgoing: list[tuple[OutgoingScore, PulledDocument, str]] = []
        rejected: list[dict[str, Any]] = []
        unchanged = 0
        for score, document in chunk:
            body = self._target.body(score, document.target)
            row = sent.get(score.id)
            if body is None:
                rejected.append(_rejection(score, NO_FORM))
            elif row is not None and row.digest == _digest(body):
                unchanged += 1
            else:
                about = OutgoingScore(score, document.target, body, row.remote_id if row else "")
                outgoing.append((about, document, _digest(body)))
        accepted = self._deliver(outgoing, rejected)
        self._note(accepted, rejected, unchanged)

    def _deliver(
        self, outgoing: list[tuple[OutgoingScore, PulledDocument, str]], rejected: list[dict[str, Any]]
    ) -> list[PushedScore]:
        """What the peer took. A batch that it refuses is sent one by one, to find which of them it refuses."""
        if not outgoing:
            return []
        try:
            remote_ids = self._target.send([each for each, _, _ in outgoing])
        except PeerRefused as error:
            if error.answered in _NOT_OF_SCORES or error.answered >= 500:
                raise
            if len(outgoing) == 1:
                rejected.append(_rejection(outgoing[0][0].score, error.message))
                return []
            return [row for each in outgoing for row in self._deliver([each], rejected)]
        return [
            PushedScore(
                connector=self._connector,
                document=document,
                key=each.score.id,
                digest=digest,
                remote_id=remote_id,
                version=each.score.metadata.get("version"),
                pushed_at=timezone.now(),
            )
            for (each, document, digest), remote_id in zip(outgoing, remote_ids, strict=True)
        ]

    def _note(self, accepted: list[PushedScore], rejected: list[dict[str, Any]], unchanged: int) -> None:
        with job_queue.fenced(self._run):
            PushedScore.objects.bulk_create(
                accepted,
                update_conflicts=True,
                unique_fields=["connector", "key"],
                update_fields=["document", "digest", "remote_id", "version", "pushed_at"],
            )
            run = ConnectorRun.objects.get(pk=self._run.pk)
            ConnectorRun.objects.filter(pk=run.pk).update(
                pushed=F("pushed") + len(accepted),
                unchanged=F("unchanged") + unchanged,
                rejected_count=F("rejected_count") + len(rejected),
                rejected=[*run.rejected, *rejected][:_MOST_REJECTED],
            )


def _reward_id(endpoint: Endpoint, link: PulledTrajectory) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{endpoint.pk}\n{link.trajectory_id}"))


def _reward_score(
    endpoint: Endpoint, version: int, link: PulledTrajectory, result: dict[str, Any]
) -> TraceScore:
    trajectory = link.trajectory
    span = trajectory.metadata.get("span")
    trace = str(trajectory.metadata.get("trace") or link.document.source_id)
    metadata = {
        "source": "touchstone",
        "kind": "reward",
        "endpoint": endpoint.name,
        "version": version,
        "trajectory": trajectory.external_id,
        "flags": ", ".join(result.get("flags") or ()),
    }
    return TraceScore(
        id=_reward_id(endpoint, link),
        trace=trace,
        span=str(span) if span and span != trace else None,
        name=f"reward {endpoint.name}",
        value=float(result["reward"]),
        label=None,
        data_type="number",
        explanation=None,
        annotator_kind="CODE",
        created=trajectory.created_at,
        metadata={name: value for name, value in metadata.items() if value != ""},
    )


def _rejection(score: TraceScore, message: str) -> dict[str, Any]:
    return {"source": score.trace, "line": 1, "pointer": f"/{score.name}"[:200], "message": message}


def _digest(body: dict[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

"""Live keys, endpoints and their revisions in memory, all read together from the database."""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Prefetch, Sum
from django.utils import timezone

from apps.accounts.key_addresses import key_addresses
from apps.accounts.key_gate import NOT_HELD, HeldTo, held_to
from apps.accounts.selectors import live_keys, usable_scopes
from apps.core.errors import DomainError
from apps.core.storage.encryption import decrypted
from apps.rewards.guard_log import CHARACTERS, guard_redaction
from apps.rewards.models import (
    Endpoint,
    EndpointRevision,
    ModelServer,
    Release,
    ScoreRollup,
    ServerReplica,
)
from apps.rewards.redaction import NO_REDACTION, Redaction
from apps.rewards.servers import ServerKey
from apps.rewards.serving.servers.replica import ReplicaInfo
from apps.training.models import RewardModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeyInfo:
    prefix: str
    project: str
    scopes: frozenset[str]
    expires_at: datetime | None
    limits: HeldTo = NOT_HELD

    @property
    def is_live(self) -> bool:
        return self.expires_at is None or self.expires_at > timezone.now()


@dataclass(frozen=True, slots=True)
class RevisionInfo:
    """artifacts: where each model of the spec lies, by `project/name@version`. judges: their keys, by name."""

    number: int
    spec: dict[str, Any]
    artifacts: dict[str, str]
    judges: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReleaseInfo:
    """An open release. share: of requests that its revision answers; 0 for a shadow."""

    pk: int
    stage: str
    share: float
    revision: RevisionInfo


EndpointKey = tuple[str, str]  # a project's slug, and the name of an endpoint of it


@dataclass(frozen=True, slots=True)
class EndpointInfo:
    pk: int
    name: str
    project: str
    revision: RevisionInfo | None
    switched_off: bool
    reason: str
    sample_share: float = 0.0
    redaction: Redaction = NO_REDACTION
    guard_review_share: float = 0.0
    guard_characters: int = CHARACTERS
    guard_redaction: Redaction = field(default_factory=guard_redaction)
    release: ReleaseInfo | None = None
    standby: RevisionInfo | None = None

    @property
    def revisions(self) -> list[RevisionInfo]:
        """That are live, released or ready to take over."""
        released = self.release.revision if self.release else None
        return [each for each in (self.revision, released, self.standby) if each is not None]

    @property
    def full_name(self) -> str:
        return f"{self.project}/{self.name}"


@dataclass(frozen=True, slots=True)
class EndpointRegistry:
    keys: Mapping[str, KeyInfo] = field(default_factory=dict)  # by hash
    endpoints: Mapping[EndpointKey, EndpointInfo] = field(default_factory=dict)
    used_today: Mapping[str, int] = field(default_factory=dict)  # tokens by prefix
    servers: Mapping[ServerKey, Sequence[ReplicaInfo]] = field(default_factory=dict)
    read_at: float = 0.0  # of time.monotonic

    def servers_named_by(self, project: str) -> set[str]:
        """By the specs of its endpoints that are live, released or ready to take over."""
        own = [info for (slug, _), info in self.endpoints.items() if slug == project]
        components = [part for info in own for each in info.revisions for part in each.spec["components"]]
        return {part["server"] for part in components if part.get("server")}


def read_registry() -> EndpointRegistry:
    """One moment of the database: an endpoint is never seen without a key made before it.

    For a separate thread: it returns its connection.
    """
    try:
        key_addresses.flush()
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            began, keys = time.monotonic(), _keys()
            return EndpointRegistry(keys, _endpoints(), _used_today(keys.values()), _servers(), began)
    finally:
        connection.close()


def _keys() -> dict[str, KeyInfo]:
    return {
        key.hash: KeyInfo(
            key.prefix, key.project.slug, frozenset(usable_scopes(key)), key.expires_at, held_to(key)
        )
        for key in live_keys()
    }


def _used_today(keys: Iterable[KeyInfo]) -> dict[str, int]:
    """Tokens of this day (UTC) of the keys with a daily limit, as far as replicas have written them."""
    prefixes = [key.prefix for key in keys if key.limits.tokens_per_day]
    if not prefixes:
        return {}
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    rows = ScoreRollup.objects.filter(hour__gte=midnight, caller__in=prefixes).values("caller")
    found = {row["caller"]: row["tokens__sum"] for row in rows.annotate(Sum("tokens"))}
    return {prefix: found.get(prefix, 0) for prefix in prefixes}


def _endpoints() -> dict[EndpointKey, EndpointInfo]:
    models = RewardModel.objects.select_related("project")
    releases = (
        Release.objects.filter(ended_at=None)
        .select_related("revision")
        .prefetch_related(Prefetch("revision__reward_models", models), "revision__judges")
    )
    rows = Endpoint.objects.select_related("project", "active", "standby").prefetch_related(
        Prefetch("active__reward_models", models),
        Prefetch("standby__reward_models", models),
        "active__judges",
        "standby__judges",
        Prefetch("releases", releases, to_attr="open_releases"),
    )
    return {(row.project.slug, row.name): _endpoint(row) for row in rows}


def _endpoint(row: Endpoint) -> EndpointInfo:
    (release,) = getattr(row, "open_releases", None) or (None,)
    return EndpointInfo(
        pk=row.pk,
        name=row.name,
        project=row.project.slug,
        revision=None if row.active is None else _revision(row.active),
        switched_off=row.switched_off,
        reason=row.switched_off_reason,
        sample_share=row.sample_share,
        redaction=Redaction(tuple(row.sample_redacts), tuple(row.sample_patterns)),
        guard_review_share=row.guard_review_share,
        guard_characters=row.guard_characters,
        guard_redaction=guard_redaction(row.sample_patterns),
        release=release
        and ReleaseInfo(release.pk, release.stage, release.share, _revision(release.revision)),
        standby=None if row.standby is None else _revision(row.standby),
    )


def _servers() -> dict[ServerKey, list[ReplicaInfo]]:
    """A server that has no replicas yet is there, too."""
    rows = ModelServer.objects.select_related("project").prefetch_related("replicas")
    return {
        (row.project.slug, row.name): [found for each in row.replicas.all() if (found := _replica(each))]
        for row in rows
    }


def _replica(row: ServerReplica) -> ReplicaInfo | None:
    try:
        return ReplicaInfo(row.address, decrypted(row.key), row.is_draining, pk=row.pk)
    except DomainError as error:
        logger.warning("the key of the replica %s of %s: %s", row.address, row.server, error.message)
        return None


def _revision(row: EndpointRevision) -> RevisionInfo:
    artifacts = {str(model): model.artifact for model in row.reward_models.all()}
    return RevisionInfo(row.number, row.spec, artifacts, {judge.name: judge.pk for judge in row.judges.all()})

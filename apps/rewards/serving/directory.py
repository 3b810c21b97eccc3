"""What the service knows of the database: live keys, endpoints and their revisions. Read whole, kept in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Prefetch
from django.utils import timezone

from apps.accounts.models import ApiKey
from apps.rewards.models import Endpoint
from apps.training.models import RewardModel


@dataclass(frozen=True, slots=True)
class KeyInfo:
    prefix: str
    project: str
    scopes: frozenset[str]
    expires_at: datetime | None

    @property
    def is_live(self) -> bool:
        return self.expires_at is None or self.expires_at > timezone.now()


@dataclass(frozen=True, slots=True)
class RevisionInfo:
    """artifacts: where each model of the spec lies, by `project/name@version`."""

    number: int
    spec: dict[str, Any]
    artifacts: dict[str, str]


@dataclass(frozen=True, slots=True)
class EndpointInfo:
    pk: int
    name: str
    project: str
    revision: RevisionInfo | None
    switched_off: bool
    reason: str
    keeps_samples: bool = False


@dataclass(frozen=True, slots=True)
class Directory:
    keys: Mapping[str, KeyInfo] = field(default_factory=dict)  # by hash
    endpoints: Mapping[str, EndpointInfo] = field(default_factory=dict)


def read_directory() -> Directory:
    """One moment of the database: an endpoint is never seen without a key made before it.

    For a thread of its own: it gives its connection back.
    """
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            return Directory(_keys(), _endpoints())
    finally:
        connection.close()


def _keys() -> dict[str, KeyInfo]:
    rows = ApiKey.objects.filter(revoked_at=None).select_related("project")
    return {
        key.hash: KeyInfo(key.prefix, key.project.slug, frozenset(key.scopes), key.expires_at) for key in rows
    }


def _endpoints() -> dict[str, EndpointInfo]:
    models = Prefetch("active__reward_models", RewardModel.objects.select_related("project"))
    rows = Endpoint.objects.select_related("project", "active").prefetch_related(models)
    return {row.name: _endpoint(row) for row in rows}


def _endpoint(row: Endpoint) -> EndpointInfo:
    revision = None
    if row.active is not None:
        artifacts = {str(model): model.artifact for model in row.active.reward_models.all()}
        revision = RevisionInfo(row.active.number, row.active.spec, artifacts)
    return EndpointInfo(
        pk=row.pk,
        name=row.name,
        project=row.project.slug,
        revision=revision,
        switched_off=row.switched_off,
        reason=row.switched_off_reason,
        keeps_samples=row.keeps_samples,
    )

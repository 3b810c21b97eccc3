"""API keys: whom they belong to, what their owner may give them, and when they end."""

import ipaddress
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from apps.accounts.actors import Actor
from apps.accounts.audit_trail import record_audit
from apps.accounts.models import ApiKey, Project, Role, Scope, ServiceAccount, User
from apps.accounts.selectors import SCOPES_OF_ROLE, hash_of, role_in
from apps.accounts.service_accounts import COMMAND_LINE_ACCOUNT, service_account_for
from apps.core.errors import DomainError

KEYS_CHANNEL = "touchstone_keys"
MOST_NETWORKS = 50
MOST_PER_MINUTE = 2**31 - 1
Owner = User | ServiceAccount


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Each null is the setting's default, 0 no limit. allowed_networks: CIDR; empty is anywhere."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    allowed_networks: tuple[str, ...] = ()


NO_LIMITS = KeyLimits()


@transaction.atomic
def create_api_key(
    *,
    project: Project,
    scopes: Iterable[str],
    name: str = "",
    by: User | None = None,
    owner: Owner | None = None,
    expires_at: datetime | None = None,
    never_expires: bool = False,
    limits: KeyLimits = NO_LIMITS,
) -> tuple[ApiKey, str]:
    """The key and its secret, which is nowhere else: only its hash is kept.

    owner: `by` if left out, or the service account of the command line. expires_at: after TOUCHSTONE_KEY_DAYS if left
    out.
    """
    owner = owner or by or service_account_for(project=project, name=COMMAND_LINE_ACCOUNT, by=None)
    scopes = _scopes(project, owner, scopes)
    limits = checked_limits(limits)
    prefix = secrets.token_hex(4)
    secret = f"tsk_{prefix}_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        project=project,
        name=name,
        prefix=f"tsk_{prefix}",
        hash=hash_of(secret),
        scopes=scopes,
        owner_user=owner if isinstance(owner, User) else None,
        owner_service_account=owner if isinstance(owner, ServiceAccount) else None,
        created_by=by,
        expires_at=None if never_expires else _expiry(expires_at),
        **_columns(limits),
    )
    data = {"scopes": scopes, "owner": owner_name(owner)}
    record_audit(project=project, actor=by, verb="key.created", target=key.prefix, data=data)
    announce_keys()
    return key, secret


@transaction.atomic
def revoke_api_key(*, key: ApiKey, by: Actor, reason: str = "") -> ApiKey:
    """End a key permanently. Revoking twice changes nothing."""
    if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        data = {"reason": reason} if reason else {}
        record_audit(project=key.project, actor=by, verb="key.revoked", target=key.prefix, data=data)
        announce_keys()
    key.refresh_from_db()
    return key


@transaction.atomic
def change_limits(*, key: ApiKey, limits: KeyLimits, by: User | None) -> ApiKey:
    limits = checked_limits(limits)
    before = {name: getattr(key, name) for name in _columns(limits)}
    for name, value in _columns(limits).items():
        setattr(key, name, value)
    key.save(update_fields=list(before))
    changed = {name: value for name, value in _columns(limits).items() if value != before[name]}
    if changed:
        record_audit(
            project=key.project, actor=by, verb="key.limits-changed", target=key.prefix, data=changed
        )
        announce_keys()
    return key


@transaction.atomic
def revoke_keys_of(
    *, user: User, project: Project | None = None, by: Actor, reason: str = "owner removed"
) -> int:
    """Revoke what belongs to the user: all of it, or what is of one project. Returns how many keys."""
    keys = ApiKey.objects.select_related("project").filter(owner_user=user, revoked_at=None)
    found = list(keys if project is None else keys.filter(project=project))
    for key in found:
        revoke_api_key(key=key, by=by, reason=reason)
    return len(found)


@transaction.atomic
def close_service_account(*, account: ServiceAccount, by: User | None) -> int:
    """Revoke its keys; its name stays taken. Returns how many keys."""
    found = list(account.api_keys.filter(revoked_at=None).select_related("project"))
    for key in found:
        revoke_api_key(key=key, by=by, reason="service account closed")
    if ServiceAccount.objects.filter(pk=account.pk, is_active=True).update(is_active=False):
        record_audit(project=account.project, actor=by, verb="service-account.closed", target=account.name)
        announce_keys()
    return len(found)


@transaction.atomic
def hand_over_keys(*, project: Project, user: User, to: ServiceAccount, by: Actor) -> int:
    """The user's live keys of the project belong to the service account from now on. Returns how many."""
    if to.project_id != project.pk or not to.is_active:
        raise DomainError(f"{to} is not an active service account of {project}; choose another one.")
    keys = live_keys_of(user, project)
    for key in keys:
        ApiKey.objects.filter(pk=key.pk).update(owner_user=None, owner_service_account=to)
        data = {"from": user.email, "to": to.name}
        record_audit(project=project, actor=by, verb="key.handed-over", target=key.prefix, data=data)
    return len(keys)


def live_keys_of(user: User, project: Project) -> list[ApiKey]:
    """What stops working when the user leaves the project."""
    rows = project.api_keys.filter(owner_user=user, revoked_at=None).order_by("pk")
    return [key for key in rows if key.is_live]


@transaction.atomic
def fit_keys_to_role(*, project: Project, user: User, role: Role, by: Actor) -> None:
    """Take from the user's keys what the role may not have; a key that has nothing else is revoked."""
    for key in project.api_keys.filter(owner_user=user, revoked_at=None):
        kept = [scope for scope in key.scopes if scope in SCOPES_OF_ROLE[role]]
        if not kept:
            revoke_api_key(key=key, by=by, reason=f"owner is {role.value} now")
        elif kept != key.scopes:
            ApiKey.objects.filter(pk=key.pk).update(scopes=kept)
            data = {"scopes": kept, "before": key.scopes}
            record_audit(project=project, actor=by, verb="key.narrowed", target=key.prefix, data=data)
    announce_keys()


def checked_limits(limits: KeyLimits) -> KeyLimits:
    """With its networks in one form. Raises DomainError with the pointer of what is wrong."""
    for name in ("requests_per_minute", "tokens_per_minute", "tokens_per_day"):
        value = getattr(limits, name)
        if value is not None and not 0 <= value <= MOST_PER_MINUTE:
            raise DomainError(
                f"{name} is {value}; it must be from 0 (no limit) to {MOST_PER_MINUTE}.", pointer=f"/{name}"
            )
    if len(limits.allowed_networks) > MOST_NETWORKS:
        raise DomainError(
            f"{len(limits.allowed_networks)} networks; a key may have {MOST_NETWORKS}.",
            pointer="/allowed_networks",
        )
    networks = tuple(dict.fromkeys(_network(text) for text in limits.allowed_networks))
    return KeyLimits(limits.requests_per_minute, limits.tokens_per_minute, limits.tokens_per_day, networks)


def owner_name(owner: Owner) -> str:
    return owner.email if isinstance(owner, User) else f"service account {owner.name}"


def announce_keys() -> None:
    """PostgreSQL delivers this when the transaction commits; processes that cache keys read them again."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, '')", [KEYS_CHANNEL])


def _scopes(project: Project, owner: Owner, wanted: Iterable[str]) -> list[str]:
    scopes = list(dict.fromkeys(wanted))
    unknown = [scope for scope in scopes if scope not in Scope.values]
    if unknown or not scopes:
        what = f"{', '.join(unknown)} is no scope" if unknown else "A key needs at least one scope"
        raise DomainError(f"{what}; there are {', '.join(Scope.values)}.", pointer="/scopes")
    if isinstance(owner, ServiceAccount):
        if owner.project_id != project.pk or not owner.is_active:
            raise DomainError(f"{owner} is not an active service account of {project}.", pointer="/owner")
        return scopes
    role = role_in(project, owner)
    if role is None:
        raise DomainError(
            f"{owner.email} is not an active member of {project}; keys belong to members or to service accounts.",
            pointer="/owner",
        )
    beyond = [scope for scope in scopes if scope not in SCOPES_OF_ROLE[role]]
    if beyond:
        raise DomainError(
            f"{owner.email} is {role.value} in {project}, and a key of theirs cannot have {', '.join(beyond)}; "
            "leave the scope out, or create the key for a service account.",
            pointer="/scopes",
        )
    return scopes


def _expiry(expires_at: datetime | None) -> datetime | None:
    now = timezone.now()
    if expires_at is None:
        return now + timedelta(days=settings.KEY_DAYS) if settings.KEY_DAYS else None
    if expires_at <= now:
        raise DomainError("The key would have expired already; choose a later day.", pointer="/expires_at")
    return expires_at


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text.strip(), strict=False))
    except ValueError:
        raise DomainError(
            f"{text[:60]!r} is not a network; write 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32.",
            pointer="/allowed_networks",
        ) from None


def _columns(limits: KeyLimits) -> dict[str, object]:
    columns: dict[str, object] = asdict(limits)
    return columns | {"allowed_networks": list(limits.allowed_networks)}

"""Every change of users, projects, memberships and keys. Each leaves its line in the audit trail."""

import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email, validate_slug
from django.db import connection, transaction
from django.utils import timezone

from apps.accounts.models import ApiKey, AuditEvent, Membership, Project, Role, Scope, User
from apps.accounts.selectors import hash_of
from apps.core.errors import Conflict, DomainError, NotFound

COMMAND_LINE = "command line"
KEYS_CHANNEL = "touchstone_keys"


def record_audit(
    *,
    project: Project | None,
    actor: User | ApiKey | str | None,
    verb: str,
    target: str = "",
    data: dict[str, Any] | None = None,
) -> AuditEvent:
    """Append to the trail.

    actor: None is the command line, words are a part of the system that acts by itself. verb: past tense, `noun.verb`
    ("key.revoked").
    """
    name = COMMAND_LINE
    if isinstance(actor, str):
        name = actor
    elif actor is not None:
        name = actor.prefix if isinstance(actor, ApiKey) else actor.email
    return AuditEvent.objects.create(
        project=project, actor=name, verb=verb, target=target[:200], data=data or {}
    )


@transaction.atomic
def create_user(*, email: str, password: str | None = None, name: str = "") -> tuple[User, str]:
    """The new user and her password, made up when none is given."""
    email = _email(email)
    if User.objects.filter(email=email).exists():
        raise Conflict(f"There is already a user {email}.", pointer="/email")
    user = User(email=email, name=name)
    if password is None:
        password = secrets.token_urlsafe(12)
    else:
        _check_password(password, user)
    user.set_password(password)
    user.save()
    record_audit(project=None, actor=None, verb="user.created", target=email)
    return user, password


@transaction.atomic
def create_project(*, slug: str, name: str = "", owner: User | None = None) -> Project:
    try:
        validate_slug(slug)
    except ValidationError as error:
        raise DomainError(
            f"{slug!r} cannot be a project's slug: use letters, digits, hyphens and underscores.",
            pointer="/slug",
        ) from error
    if len(slug) > 60:
        raise DomainError(f"The slug has {len(slug)} characters; at most 60 fit.", pointer="/slug")
    if Project.objects.filter(slug=slug).exists():
        raise Conflict(f"There is already a project {slug}; choose another slug.", pointer="/slug")
    project = Project.objects.create(slug=slug, name=name or slug)
    record_audit(project=project, actor=owner, verb="project.created", target=slug)
    if owner is not None:
        set_member(project=project, user=owner, role=Role.OWNER, by=owner)
    return project


@transaction.atomic
def show_models_to_annotators(*, project: Project, shown: bool, by: User | None) -> Project:
    """Whether annotators and reviewers see figures of models: accuracies, counts of endpoints, alerts."""
    if (
        Project.objects.filter(pk=project.pk)
        .exclude(annotators_see_models=shown)
        .update(annotators_see_models=shown)
    ):
        verb = "project.models_shown" if shown else "project.models_hidden"
        record_audit(project=project, actor=by, verb=verb, target=project.slug)
    project.annotators_see_models = shown
    return project


@transaction.atomic
def set_member(*, project: Project, user: User, role: Role, by: User | None) -> Membership:
    """Make `user` a member with `role`, or change her role. The last owner stays one."""
    _lock(project)
    membership = Membership.objects.filter(project=project, user=user).first()
    before = membership.role if membership else None
    if membership is None:
        membership = Membership(project=project, user=user)
    elif role != Role.OWNER:
        _keep_an_owner(membership)
    membership.role = role
    membership.save()
    if before != role:
        verb = "member.added" if before is None else "member.role-changed"
        data = {"role": role.value, "before": before} if before else {"role": role.value}
        record_audit(project=project, actor=by, verb=verb, target=user.email, data=data)
    return membership


@transaction.atomic
def remove_member(*, membership: Membership, by: User | None) -> None:
    """End a membership. What she did stays; the last owner cannot go."""
    _lock(membership.project)
    _keep_an_owner(membership)
    user = membership.user
    membership.delete()
    record_audit(project=membership.project, actor=by, verb="member.removed", target=user.email)


@transaction.atomic
def create_api_key(
    *,
    project: Project,
    scopes: Iterable[str],
    name: str = "",
    by: User | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """The key and its secret, which is nowhere else: only its hash is kept."""
    scopes = list(dict.fromkeys(scopes))
    unknown = [scope for scope in scopes if scope not in Scope.values]
    if unknown or not scopes:
        what = f"{', '.join(unknown)} is no scope" if unknown else "A key needs at least one scope"
        raise DomainError(f"{what}; there are {', '.join(Scope.values)}.", pointer="/scopes")
    if expires_at is not None and expires_at <= timezone.now():
        raise DomainError("The key would have expired already; choose a later day.", pointer="/expires_at")
    prefix = secrets.token_hex(4)
    secret = f"tsk_{prefix}_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        project=project,
        name=name,
        prefix=f"tsk_{prefix}",
        hash=hash_of(secret),
        scopes=scopes,
        created_by=by,
        expires_at=expires_at,
    )
    record_audit(project=project, actor=by, verb="key.created", target=key.prefix, data={"scopes": scopes})
    _announce_keys()
    return key, secret


@transaction.atomic
def revoke_api_key(*, key: ApiKey, by: User | None) -> ApiKey:
    """End a key at once and for good. Revoking twice changes nothing."""
    if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        record_audit(project=key.project, actor=by, verb="key.revoked", target=key.prefix)
        _announce_keys()
    key.refresh_from_db()
    return key


def user_for(email: str) -> User:
    """The user of this address. Raises NotFound with how to make one."""
    user = User.objects.filter(email=email.strip().lower()).first()
    if user is None:
        raise NotFound(
            f"There is no user {email}; make one with `create_user {email} --project SLUG --role ROLE`."
        )
    return user


def project_for(slug: str) -> Project:
    """For commands, which may see every project. Raises NotFound with how to make one."""
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise NotFound(f"There is no project {slug}; make one with `create_project {slug}`.")
    return project


def _announce_keys() -> None:
    """PostgreSQL delivers this when the transaction commits; processes that cache keys read them again."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, '')", [KEYS_CHANNEL])


def _lock(project: Project) -> None:
    """Changes of a project's members are one after the other, so that two owners cannot remove each other."""
    Project.objects.select_for_update().get(pk=project.pk)


def _keep_an_owner(membership: Membership) -> None:
    owners = Membership.objects.filter(project=membership.project, role=Role.OWNER)
    if membership.role == Role.OWNER and not owners.exclude(pk=membership.pk).exists():
        raise Conflict(
            f"{membership.user} is the only owner of {membership.project}; make somebody else an owner first."
        )


def _email(email: str) -> str:
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as error:
        raise DomainError(f"{email!r} is not an e-mail address.", pointer="/email") from error
    return email


def _check_password(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise DomainError(" ".join(error.messages), pointer="/password") from error

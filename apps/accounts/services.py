"""Every change of users, projects, memberships and keys. Each leaves its line in the audit trail."""

import secrets

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email, validate_slug
from django.db import transaction
from django.utils import timezone

from apps.accounts.actors import Actor, require_person_for_owner
from apps.accounts.audit_trail import COMMAND_LINE as COMMAND_LINE
from apps.accounts.audit_trail import record_audit as record_audit
from apps.accounts.grants import end_links_of
from apps.accounts.keys import KEYS_CHANNEL as KEYS_CHANNEL
from apps.accounts.keys import create_api_key as create_api_key
from apps.accounts.keys import fit_keys_to_role, hand_over_keys, revoke_keys_of
from apps.accounts.keys import revoke_api_key as revoke_api_key
from apps.accounts.models import ApiKey, Membership, Project, Role, ServiceAccount, User
from apps.core.errors import Conflict, DomainError, NotFound


@transaction.atomic
def create_user(
    *,
    email: str,
    password: str | None = None,
    name: str = "",
    must_change_password: bool = False,
    is_verified: bool = False,
) -> tuple[User, str]:
    """The new user and their password, made up when none is given.

    must_change_password: someone else has seen it. is_verified: it was shown that the address is theirs.
    """
    user = _new_user(email, name, is_verified=is_verified)
    if password is None:
        password = secrets.token_urlsafe(12)
    else:
        _check_password(password, user)
    user.set_password(password)
    user.must_change_password = must_change_password
    user.save()
    record_audit(project=None, actor=None, verb="user.created", target=user.email)
    return user, password


@transaction.atomic
def create_user_without_password(*, email: str, by: User | ApiKey | str) -> User:
    """An account that no one can log in to before they chose a password by a link (account_links.py)."""
    user = _new_user(email, "")
    user.set_unusable_password()
    user.save()
    record_audit(project=None, actor=by, verb="user.created", target=user.email)
    return user


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
def show_models_to_annotators(*, project: Project, shown: bool, by: Actor) -> Project:
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
def rename_project(*, project: Project, name: str, by: Actor) -> Project:
    """Change the name that pages show. The slug, which addresses and commands have, stays."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= 200:
        raise DomainError("The name of a project must have 1 to 200 characters.", pointer="/name")
    if name != project.name:
        project.name = name
        project.save(update_fields=["name"])
        record_audit(project=project, actor=by, verb="project.renamed", target=project.slug)
    return project


@transaction.atomic
def set_member(*, project: Project, user: User, role: Role, by: Actor) -> Membership:
    """Make `user` a member with `role`, or change their role. The last owner stays one.

    Their keys keep only the scopes that the role may have; a key without any is revoked. Raises Forbidden
    for a service account that makes someone an owner.
    """
    require_person_for_owner(by, role)
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
        fit_keys_to_role(project=project, user=user, role=role, by=by)
        if role != Role.OWNER:
            end_links_of(project=project, user=user, by=by)
    return membership


@transaction.atomic
def remove_member(*, membership: Membership, by: Actor, keys_to: ServiceAccount | None = None) -> None:
    """End a membership. What they did stays; the last owner cannot go.

    Their keys of the project are revoked, or belong to the service account `keys_to` from now on. Links that they made
    into the project are closed.
    """
    project, user = membership.project, membership.user
    _lock(project)
    _keep_an_owner(membership)
    if keys_to is not None:
        hand_over_keys(project=project, user=user, to=keys_to, by=by)
    revoke_keys_of(user=user, project=project, by=by)
    end_links_of(project=project, user=user, by=by)
    membership.delete()
    record_audit(project=project, actor=by, verb="member.removed", target=user.email)


@transaction.atomic
def change_sign_in_rules(
    *, project: Project, require_two_factor: bool, require_single_sign_on: bool, by: User | None
) -> None:
    """What a member's session needs to open the project's pages. API keys are not asked."""
    now = {"two_factor": require_two_factor, "single_sign_on": require_single_sign_on}
    before = {"two_factor": project.require_two_factor, "single_sign_on": project.require_single_sign_on}
    if now == before:
        return
    project.require_two_factor, project.require_single_sign_on = require_two_factor, require_single_sign_on
    project.save(update_fields=["require_two_factor", "require_single_sign_on"])
    record_audit(
        project=project, actor=by, verb="project.sign-in-rules-changed", target=project.slug, data=now
    )


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


def _lock(project: Project) -> None:
    """Changes of a project's members are one after the other, so that two owners cannot remove each other."""
    Project.objects.select_for_update().get(pk=project.pk)


def _keep_an_owner(membership: Membership) -> None:
    owners = Membership.objects.filter(project=membership.project, role=Role.OWNER)
    if membership.role == Role.OWNER and not owners.exclude(pk=membership.pk).exists():
        raise Conflict(
            f"{membership.user} is the only owner of {membership.project}; make someone else an owner first."
        )


def _new_user(email: str, name: str, *, is_verified: bool = False) -> User:
    email = checked_email(email)
    if User.objects.filter(email=email).exists():
        raise Conflict(f"There is already a user {email}.", pointer="/email")
    return User(email=email, name=name, email_verified_at=timezone.now() if is_verified else None)


def checked_email(email: str) -> str:
    """In the one form that is stored. Raises DomainError."""
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

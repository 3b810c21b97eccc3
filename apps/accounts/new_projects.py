"""Projects that people create in the browser, and the first account of an installation."""

import hmac
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.urls import reverse
from django.utils.text import slugify

from apps.accounts import services
from apps.accounts.models import FirstAccount, Membership, Project, Role, User
from apps.core.errors import Conflict, DomainError, Forbidden, NotFound

_SLUG_LENGTH = 50
_SLUG_TRIES = 20
_LOCK = 7_310_003  # an advisory lock of the database: who creates the first account


def may_create_projects(user: Any) -> bool:
    """By the setting TOUCHSTONE_PROJECT_CREATORS. researchers: all but people who are only annotators or reviewers."""
    if settings.PROJECT_CREATORS == "none":
        return False
    if settings.PROJECT_CREATORS == "everyone":
        return True
    roles = set(Membership.objects.filter(user_id=user.pk).values_list("role", flat=True))
    return not roles or bool(roles & {Role.RESEARCHER, Role.OWNER})


@transaction.atomic
def create_own_project(*, name: str, by: User) -> Project:
    """A project of which `by` is the owner; its slug is made from the name."""
    if not may_create_projects(by):
        raise Forbidden(
            "You cannot create projects on this installation. Ask a project owner to add you to a project, or your "
            "administrator to create one."
        )
    name = " ".join(name.split())
    if not 1 <= len(name) <= 200:
        raise DomainError("The name of a project must have 1 to 200 characters.", pointer="/name")
    for _ in range(_SLUG_TRIES):
        slug = _free_slug(name)
        try:
            with transaction.atomic():
                return services.create_project(slug=slug, name=name, owner=by)
        except Conflict:  # someone took it a moment ago
            continue
    raise Conflict(f"Another project was given the address {slug} at the same time; try again.")


def _free_slug(name: str) -> str:
    """Made from the name; with a number where that one is taken."""
    base = slugify(name)[:_SLUG_LENGTH].strip("-") or "project"
    taken = set(Project.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    number = 2
    slug = base
    while slug in taken:
        slug, number = f"{base}-{number}", number + 1
    return slug


def first_account_token() -> str:
    """Opens the page that creates the first account. Made from the installation's secret; `up` prints it."""
    return hmac.new(settings.SECRET_KEY.encode(), b"first account", "sha256").hexdigest()[:32]


def needs_first_account() -> bool:
    """Whether there never was an account, and people may have one without single sign-on."""
    return not (settings.OIDC_ONLY or FirstAccount.objects.exists() or User.objects.exists())


def first_account_notice(url: str) -> str:
    """The line that `up` prints while there is no account."""
    if not needs_first_account():
        return ""
    return f"Create the first account: {url}{reverse('accounts:first-account', args=[first_account_token()])}"


def check_first_account(token: str) -> None:
    """Raises NotFound for a wrong token, once there was an account, and where all sign in elsewhere."""
    if not hmac.compare_digest(token.encode(), first_account_token().encode()) or not needs_first_account():
        raise NotFound(
            "This link is not valid: it creates the first account of an installation, once. Log in, or ask the "
            "operator for an account."
        )


@transaction.atomic
def create_first_account(*, token: str, email: str, password: str, name: str = "") -> User:
    """Raises NotFound as check_first_account does. Of two requests at the same time, one creates the account."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    check_first_account(token)
    user, _ = services.create_user(email=email, password=password, name=name, is_verified=True)
    return user

"""Keys end with what their owner may do; those of no one belong to a service account."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from apps.accounts import keys, selectors, services
from apps.accounts.models import ApiKey, Project, Role, ServiceAccount, User
from apps.accounts.pseudonyms import person_pseudonym
from apps.accounts.service_accounts import service_account_for
from apps.core.errors import DomainError

OWNERS = import_module("apps.accounts.migrations.0004_key_owners").OWNERS


def made(project: Project, owner: User, *scopes: str) -> tuple[ApiKey, str]:
    return services.create_api_key(project=project, scopes=scopes, by=owner)


def opens(secret: str) -> list[str] | None:
    key = selectors.api_key_for(secret)
    return key and key.scopes


def test_a_removed_members_keys_are_revoked_and_stay_so(project: Project, people: dict[str, User]) -> None:
    """They went on opening trajectories, feedback and rewards."""
    user = people["researcher"]
    _, secret = made(project, user, "ingest", "feedback:read", "reward")
    services.remove_member(membership=project.memberships.get(user=user), by=people["owner"])
    assert opens(secret) is None
    services.set_member(project=project, user=user, role=Role.OWNER, by=people["owner"])
    assert opens(secret) is None
    event = project.audit_events.get(verb="key.revoked")
    assert (event.actor, event.data) == (person_pseudonym("owner@example.org"), {"reason": "owner removed"})


def test_keys_of_other_projects_stay(project: Project, people: dict[str, User]) -> None:
    user, other = people["researcher"], services.create_project(slug="other", owner=people["researcher"])
    _, secret = made(other, user, "admin")
    services.remove_member(membership=project.memberships.get(user=user), by=people["owner"])
    assert opens(secret) == ["admin"]


def test_a_lower_role_narrows_keys_or_revokes_them(project: Project, people: dict[str, User]) -> None:
    user = people["reviewer"]
    services.set_member(project=project, user=user, role=Role.OWNER, by=people["owner"])
    _, wide = made(project, user, "admin", "reward")
    _, admin = made(project, user, "admin")
    services.set_member(project=project, user=user, role=Role.RESEARCHER, by=people["owner"])
    assert (opens(wide), opens(admin)) == (["reward"], None)
    services.set_member(project=project, user=user, role=Role.REVIEWER, by=people["owner"])
    assert opens(wide) is None
    services.set_member(project=project, user=user, role=Role.OWNER, by=people["owner"])
    assert (opens(wide), opens(admin)) == (None, None)


def test_a_closed_account_opens_nothing_whoever_closed_it(project: Project, people: dict[str, User]) -> None:
    user = people["researcher"]
    _, secret = made(project, user, "reward")
    User.objects.filter(pk=user.pk).update(is_active=False)  # past every service of ours
    assert opens(secret) is None
    assert keys.revoke_keys_of(user=user, by=None, reason="account closed") == 1
    User.objects.filter(pk=user.pk).update(is_active=True)
    assert opens(secret) is None


def test_a_membership_that_is_gone_opens_nothing_whoever_deleted_it(
    project: Project, people: dict[str, User]
) -> None:
    user = people["researcher"]
    _, secret = made(project, user, "reward", "train")
    project.memberships.filter(user=user).delete()
    assert opens(secret) is None


@pytest.mark.parametrize(
    ("who", "scope", "says"),
    [
        ("researcher", "admin", "is researcher in desk"),
        ("annotator", "reward", "is annotator in desk"),
        ("stranger", "reward", "not an active member of desk"),
    ],
)
def test_nobody_makes_a_key_that_may_more_than_they_may(
    project: Project, people: dict[str, User], who: str, scope: str, says: str
) -> None:
    with pytest.raises(DomainError, match=says):
        made(project, people[who], scope)


def test_a_service_account_is_of_its_project(project: Project, owner: User) -> None:
    other = services.create_project(slug="other", owner=owner)
    account = service_account_for(project=other, name="nightly", by=owner)
    with pytest.raises(DomainError, match="not an active service account of desk"):
        services.create_api_key(project=project, scopes=["reward"], by=owner, owner=account)
    with pytest.raises(DomainError, match="not an active service account"):
        keys.hand_over_keys(project=project, user=owner, to=account, by=owner)
    with pytest.raises(DomainError, match="cannot be a service account's name"):
        service_account_for(project=project, name="a b", by=owner)


@pytest.mark.parametrize("owners", [{}, {"owner_user", "owner_service_account"}])
def test_a_key_has_one_owner(project: Project, owner: User, owners: set[str]) -> None:
    account = service_account_for(project=project, name="a", by=owner)
    every = {"owner_user": owner, "owner_service_account": account}
    with pytest.raises(IntegrityError, match="apikey_one_owner"), transaction.atomic():
        ApiKey.objects.create(
            project=project, prefix="p", hash="h", scopes=["reward"], **{name: every[name] for name in owners}
        )


@pytest.mark.parametrize(
    ("limits", "pointer"),
    [
        ({"requests_per_minute": -1}, "/requests_per_minute"),
        ({"tokens_per_day": 2**40}, "/tokens_per_day"),
        ({"allowed_networks": ("10.0.0.0/33",)}, "/allowed_networks"),
        ({"allowed_networks": ("1.1.1.1",) * 51}, "/allowed_networks"),
    ],
)
def test_limits_that_are_none(project: Project, limits: dict, pointer: str) -> None:
    with pytest.raises(DomainError) as error:
        keys.create_api_key(project=project, scopes=["reward"], limits=keys.KeyLimits(**limits))
    assert error.value.pointer == pointer


def test_an_expiry_is_the_default(project: Project, settings) -> None:
    key, _ = services.create_api_key(project=project, scopes=["reward"])
    assert key.expires_at is not None
    assert abs(key.expires_at - timezone.now() - timedelta(days=365)) < timedelta(minutes=1)
    assert (
        services.create_api_key(project=project, scopes=["reward"], never_expires=True)[0].expires_at is None
    )
    settings.KEY_DAYS = 0
    assert services.create_api_key(project=project, scopes=["reward"])[0].expires_at is None


def test_keys_from_before_get_an_owner(project: Project, people: dict[str, User]) -> None:
    """The migration: living makers own theirs, the rest go to a service account with a note."""
    with connection.cursor() as cursor:  # in front of the table of that name, without its constraints
        cursor.execute(
            "CREATE TEMP TABLE accounts_apikey (LIKE accounts_apikey INCLUDING IDENTITY) ON COMMIT DROP"
        )
    before = {
        "of an owner": (people["owner"], ["admin"]),
        "of a researcher": (people["researcher"], ["reward"]),
        "too wide": (people["researcher"], ["admin"]),
        "of one who left": (people["stranger"], ["reward"]),
        "of a command": (None, ["reward"]),
        "of one deleted": (None, ["reward"]),
    }
    for number, (name, (maker, scopes)) in enumerate(before.items()):
        ApiKey.objects.create(
            project=project, name=name, prefix=f"tsk_{number}", hash=name, scopes=scopes, created_by=maker
        )
    services.record_audit(project=project, actor=None, verb="key.created", target="tsk_4")
    with connection.cursor() as cursor:
        cursor.execute(OWNERS)
    found = {key.name: (str(key.owner), key.note) for key in project.api_keys.all()}
    assert found == {
        "of an owner": ("Owner", ""),
        "of a researcher": ("Researcher", ""),
        "too wide": ("imported-keys", "made by researcher@example.org, who may not have such a key now"),
        "of one who left": ("imported-keys", "made by stranger@example.org, who may not have such a key now"),
        "of a command": ("command-line", "made by the command line"),
        "of one deleted": ("imported-keys", "its maker is not known any more"),
    }
    assert selectors.live_keys().filter(project=project).count() == 6
    assert ServiceAccount.objects.filter(project=project).count() == 2

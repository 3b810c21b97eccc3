"""What accounts writes: who is in, what a key opens, and a trail no one can edit."""

from datetime import timedelta

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from apps.accounts import selectors, services
from apps.accounts.models import ApiKey, AuditEvent, Project, Role, User
from apps.accounts.pseudonyms import person_pseudonym
from apps.core.errors import Conflict, DomainError


def test_one_person_is_one_user_whatever_the_case(owner: User) -> None:
    with pytest.raises(Conflict, match=r"already a user owner@example\.org"):
        services.create_user(email=" Owner@EXAMPLE.org")
    with pytest.raises(DomainError, match="not an e-mail address"):
        services.create_user(email="nobody")


def test_a_weak_password_is_refused(db: None) -> None:
    with pytest.raises(DomainError, match="too short"):
        services.create_user(email="a@example.org", password="short")
    assert not User.objects.exists()


@pytest.mark.parametrize("slug", ["", "with space", "ü", "a/b", "x" * 61])
def test_a_slug_must_fit_an_address(db: None, slug: str) -> None:
    with pytest.raises(DomainError) as error:
        services.create_project(slug=slug)
    assert error.value.pointer == "/slug"
    assert not Project.objects.exists()


def test_a_second_owner_frees_the_first(project: Project, owner: User, people: dict[str, User]) -> None:
    services.set_member(project=project, user=people["reviewer"], role=Role.OWNER, by=owner)
    services.remove_member(membership=project.memberships.get(user=owner), by=owner)
    assert list(project.memberships.filter(role=Role.OWNER).values_list("user__email", flat=True)) == [
        "reviewer@example.org"
    ]


def test_only_the_hash_of_a_key_is_kept(project: Project) -> None:
    key, secret = services.create_api_key(project=project, scopes=["reward", "reward"])
    assert secret.startswith(f"{key.prefix}_")
    assert key.scopes == ["reward"]
    assert secret not in str(ApiKey.objects.filter(pk=key.pk).values().get())
    assert selectors.api_key_for(secret) == key
    assert selectors.api_key_for(secret[:-1]) is None


def test_an_expired_key_opens_nothing(project: Project) -> None:
    key, secret = services.create_api_key(
        project=project, scopes=["reward"], expires_at=timezone.now() + timedelta(days=1)
    )
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert selectors.api_key_for(secret) is None


@pytest.mark.parametrize("scopes", [[], ["root"], ["reward", "root"]])
def test_scopes_are_ours(project: Project, scopes: list[str]) -> None:
    with pytest.raises(DomainError) as error:
        services.create_api_key(project=project, scopes=scopes)
    assert error.value.pointer == "/scopes"
    assert "feedback:read" in error.value.message


@pytest.mark.django_db(transaction=True)
def test_processes_that_cache_keys_are_told_after_the_commit() -> None:
    project = services.create_project(slug="desk")
    settings = connection.get_connection_params()
    names = ("host", "port", "user", "password", "dbname")
    with psycopg.connect(
        **{name: settings[name] for name in names if settings.get(name)}, autocommit=True
    ) as ear:
        ear.execute(f"LISTEN {services.KEYS_CHANNEL}")
        with pytest.raises(RuntimeError), transaction.atomic():
            services.create_api_key(project=project, scopes=["reward"])
            raise RuntimeError
        key, _ = services.create_api_key(project=project, scopes=["reward"])
        services.revoke_api_key(key=key, by=None)
        services.revoke_api_key(key=key, by=None)  # changes nothing, tells no one
        heard = list(ear.notifies(timeout=0.5))
    assert [note.channel for note in heard] == [services.KEYS_CHANNEL] * 2


@pytest.mark.parametrize("change", ["update", "delete"])
def test_the_trail_cannot_be_edited(project: Project, change: str) -> None:
    events = AuditEvent.objects.filter(project=project)
    before = list(events.values())
    with pytest.raises(DatabaseError, match=r"append-only|permission denied"), transaction.atomic():
        events.update(verb="nothing.happened") if change == "update" else events.delete()
    assert list(events.values()) == before


def test_the_trail_outlives_its_project(project: Project) -> None:
    project.delete()
    connection.check_constraints()
    assert AuditEvent.objects.get(verb="project.created").project_slug == "desk"


def test_every_change_leaves_its_line(project: Project, owner: User, people: dict[str, User]) -> None:
    services.set_member(project=project, user=people["annotator"], role=Role.REVIEWER, by=owner)
    # No change, no line.
    services.set_member(project=project, user=people["annotator"], role=Role.REVIEWER, by=owner)
    services.remove_member(membership=project.memberships.get(user=people["annotator"]), by=owner)
    mine = project.audit_events.filter(target=person_pseudonym("annotator@example.org")).order_by("pk")
    boss = person_pseudonym("owner@example.org")
    assert list(mine.values_list("verb", "actor")) == [
        ("member.added", boss),
        ("member.role-changed", boss),
        ("member.removed", boss),
    ]

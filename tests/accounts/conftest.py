"""A project with one member of each role, and a stranger."""

from collections.abc import Callable

import pytest
from django.test import Client

from apps.accounts import services
from apps.accounts.models import Project, Role, User

PASSWORD = "correct horse battery"


def person(name: str) -> User:
    user, _ = services.create_user(email=f"{name}@example.org", password=PASSWORD, name=name.title())
    return user


@pytest.fixture
def owner(db: None) -> User:
    return person("owner")


@pytest.fixture
def project(owner: User) -> Project:
    return services.create_project(slug="desk", name="Support desk", owner=owner)


@pytest.fixture
def people(project: Project, owner: User) -> dict[str, User]:
    """By role, and "stranger"."""
    members = {"owner": owner, "stranger": person("stranger")}
    for role in (Role.ANNOTATOR, Role.REVIEWER, Role.RESEARCHER):
        members[role.value] = person(role.value)
        services.set_member(project=project, user=members[role.value], role=role, by=owner)
    return members


@pytest.fixture
def as_(people: dict[str, User]) -> Callable[[str], Client]:
    """as_("owner") -> a client logged in; as_("anonymous") -> one that is not."""

    def client_of(who: str) -> Client:
        client = Client()
        if who != "anonymous":
            client.force_login(people[who])
        return client

    return client_of

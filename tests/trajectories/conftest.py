import json
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, Role, Scope, User
from apps.accounts.services import create_api_key
from tests.factories import make_member


@pytest.fixture(autouse=True)
def artifacts(own_home: None) -> None:
    """Artifacts of each test in a folder of its own."""


@pytest.fixture
def researcher(project: Project, client: Client) -> User:
    """A researcher, logged in."""
    user = make_member(project, "rose@example.org", Role.RESEARCHER)
    client.force_login(user)
    return user


@pytest.fixture
def annotator_client(project: Project) -> Client:
    client = Client()
    client.force_login(make_member(project, "ann@example.org", Role.ANNOTATOR))
    return client


@pytest.fixture
def outsider_client(db: None) -> Client:
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere")
    client = Client()
    client.force_login(make_member(elsewhere, "eve@example.org", Role.OWNER))
    return client


@pytest.fixture
def key(project: Project) -> dict[str, str]:
    """Headers of a key with the scope ingest."""
    _, secret = create_api_key(project=project, scopes=[Scope.INGEST])
    return {"Authorization": f"Bearer {secret}"}


def record(number: int = 0, **fields: Any) -> dict[str, Any]:
    """An OpenAI record; different numbers are different content."""
    messages = [
        {"role": "user", "content": f"What is {number} + 1?"},
        {"role": "assistant", "content": f"It is {number + 1}."},
    ]
    return {"task": {"id": f"task-{number}"}, "messages": messages} | fields


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)

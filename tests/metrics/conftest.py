import pytest
from django.test import Client

from apps.accounts.models import Project, User
from apps.metrics import executor
from apps.metrics.models import Induction
from apps.metrics.services import start_induction
from apps.metrics.tasks import advance_inductions
from tests.factories import make_member
from tests.metrics.said import comments, import_comments


@pytest.fixture
def commented(project: Project) -> Project:
    """Six tasks, two runs each, two comments on each run."""
    import_comments(project, comments(6))
    return project


@pytest.fixture
def owner(project: Project) -> User:
    return make_member(project, "owner@example.org", "owner")


@pytest.fixture
def owner_client(client: Client, owner: User) -> Client:
    """A browser the owner is signed in with."""
    client.force_login(owner)
    return client


@pytest.fixture
def fake_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "CHILD", "tests.metrics.fake_child")


@pytest.fixture
def induced(commented: Project, fake_child: None) -> Induction:
    """By the child that stands in: `metric 0` is about orders, `metric 1` about tone."""
    induction = start_induction(project=commented)
    advance_inductions()
    induction.refresh_from_db()
    assert induction.state == "succeeded", induction.error
    return induction


@pytest.fixture(autouse=True)
def quick_children(forked_children: None) -> None:
    """As all of these are."""

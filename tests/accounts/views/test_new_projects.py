"""Projects created in the browser, and the first account of an installation."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps.accounts.models import AuditEvent, FirstAccount, Membership, Project, Role, User
from apps.accounts.new_projects import create_first_account, first_account_notice, first_account_token
from apps.accounts.services import create_project
from apps.core.errors import NotFound

CREATE = "/projects/new"


def test_the_creator_is_the_owner_and_the_slug_is_made_from_the_name(as_: Callable[[str], Client]) -> None:
    client = as_("stranger")
    response = client.post(CREATE, {"name": "  Café agents,  2026 "})
    assert response["Location"] == "/p/cafe-agents-2026/"
    project = Project.objects.get(slug="cafe-agents-2026")
    assert project.name == "Café agents, 2026"
    assert [(each.user.email, each.role) for each in project.memberships.all()] == [
        ("stranger@example.org", "owner")
    ]
    assert AuditEvent.objects.filter(project=project, verb="project.created").count() == 1
    assert client.get(response["Location"]).status_code == 200


@pytest.mark.parametrize(
    ("name", "slug"), [("Support desk", "support-desk-3"), ("審査", "project"), ("x" * 200, "x" * 50)]
)
def test_a_slug_is_always_found(owner: User, as_: Callable[[str], Client], name: str, slug: str) -> None:
    for taken in ("support-desk", "support-desk-2"):
        create_project(slug=taken)
    assert as_("owner").post(CREATE, {"name": name})["Location"] == f"/p/{slug}/"


def test_a_name_is_needed(as_: Callable[[str], Client]) -> None:
    response = as_("owner").post(CREATE, {"name": "   "})
    assert response.status_code == 422
    assert "This field is required" in response.content.decode()


@pytest.mark.parametrize(
    ("creators", "may"),
    [
        ("everyone", {"owner", "researcher", "reviewer", "annotator", "stranger"}),
        ("researchers", {"owner", "researcher", "stranger"}),
        ("none", set()),
    ],
)
def test_who_may_create_projects_is_a_setting(
    as_: Callable[[str], Client], people: dict[str, User], settings: Any, creators: str, may: set[str]
) -> None:
    settings.PROJECT_CREATORS = creators
    before = Project.objects.count()
    for who in people:
        client = as_(who)
        assert client.get(CREATE).status_code == (200 if who in may else 403), who
        assert client.post(CREATE, {"name": who}).status_code == (302 if who in may else 403), who
        assert client.post("/projects/sample").status_code == (302 if who in may else 403), who
        offered = "/projects/new" in client.get("/?all").content.decode()
        assert offered is (who in may), who
    assert Project.objects.count() == before + 2 * len(may)


def test_no_one_signed_in_creates_nothing(db: None) -> None:
    assert Client().post(CREATE, {"name": "Mine"})["Location"].startswith("/login")
    assert not Project.objects.exists()


def test_the_link_that_up_prints_creates_the_first_account_and_no_second(db: None) -> None:
    line = first_account_notice("http://127.0.0.1:8000")
    path = line.partition("http://127.0.0.1:8000")[2]
    assert "Open the link" in Client().get("/login").content.decode()
    assert Client().get(reverse("accounts:first-account", args=["0" * 32])).status_code == 404
    client = Client()
    weak = client.post(path, {"email": "nora@example.org", "password": "short"})
    assert weak.status_code == 422
    assert not User.objects.exists()
    done = client.post(path, {"email": "Nora@example.org", "password": "correct horse battery"})
    assert done["Location"] == "/"
    home = client.get("/").content.decode()
    assert "Create project" in home
    assert "Open the sample project" in home
    assert first_account_notice("http://127.0.0.1:8000") == ""
    assert Client().get(path).status_code == 404
    taken = Client().post(path, {"email": "eve@example.org", "password": "correct horse battery"})
    assert taken.status_code == 404
    assert User.objects.count() == 1
    assert "Open the link" not in Client().get("/login").content.decode()


def test_the_link_stays_used_when_the_last_account_is_deleted(db: None) -> None:
    path = first_account_notice("")[len("Create the first account: ") :]
    Client().post(path, {"email": "nora@example.org", "password": "correct horse battery"})
    User.objects.all().delete()
    assert first_account_notice("") == "" and Client().get(path).status_code == 404
    again = Client().post(path, {"email": "eve@example.org", "password": "correct horse battery"})
    assert again.status_code == 404 and not User.objects.exists()


def test_the_link_is_refused_where_only_single_sign_on_lets_people_in(db: None, settings: Any) -> None:
    path = first_account_notice("")[len("Create the first account: ") :]
    settings.OIDC_ONLY = True
    assert first_account_notice("") == ""
    with pytest.raises(NotFound):
        create_first_account(token=first_account_token(), email="eve@example.org", password="correct horse")
    assert Client().get(path).status_code == 404 and not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_requests_at_once_one_creates_the_account() -> None:
    FirstAccount.objects.all().delete()
    ready = Barrier(2)

    def create(email: str) -> bool:
        ready.wait(timeout=10)
        try:
            create_first_account(token=first_account_token(), email=email, password="correct horse battery")
        except NotFound:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(create, ["nora@example.org", "eve@example.org"]))
    assert sorted(done) == [False, True] and User.objects.count() == 1


def test_a_member_of_one_project_reaches_the_list_and_the_button(
    as_: Callable[[str], Client], project: Project
) -> None:
    page = as_("researcher").get("/?all").content.decode()
    assert "Support desk" in page
    assert "Create project" in page
    assert Membership.objects.filter(role=Role.OWNER).count() == 1

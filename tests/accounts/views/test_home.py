"""Where one arrives."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts import services
from apps.accounts.models import Project, User


def test_home_asks_the_anonymous_to_log_in(db: None) -> None:
    assert Client().get(reverse("accounts:home"))["Location"] == "/login?next=/"


def test_home_of_one_project_is_that_project(as_: Callable[[str], Client], project: Project) -> None:
    assert as_("annotator").get(reverse("accounts:home"))["Location"] == "/p/desk/"


def test_home_lists_my_projects_and_no_others(
    as_: Callable[[str], Client], owner: User, project: Project
) -> None:
    services.create_project(slug="second", name="Second", owner=owner)
    services.create_project(slug="foreign", name="Foreign")
    page = as_("owner").get(reverse("accounts:home")).content.decode()
    assert "Support desk" in page
    assert "Second" in page
    assert "Foreign" not in page


def test_home_without_a_project_leads_to_the_first(as_: Callable[[str], Client], project: Project) -> None:
    page = as_("stranger").get(reverse("accounts:home")).content.decode()
    assert "Create project" in page
    assert "Open the sample project" in page
    assert "ask its owner to add stranger@example.org" in page


@pytest.mark.parametrize(("who", "sees"), [("annotator", False), ("reviewer", False), ("researcher", True)])
def test_the_feedback_loop_is_for_researchers(
    as_: Callable[[str], Client], project: Project, who: str, sees: bool
) -> None:
    page = as_(who).get(reverse("accounts:project-home", args=["desk"])).content.decode()
    assert ('class="feedback-loop"' in page) is sees
    assert (">Training<" in page) is sees


def test_project_names_are_shown_harmless(owner: User) -> None:
    services.create_project(slug="evil", name="<script>alert(1)</script>", owner=owner)
    client = Client()
    client.force_login(owner)
    page = client.get(reverse("accounts:project-home", args=["evil"])).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page

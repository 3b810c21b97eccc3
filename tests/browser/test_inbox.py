"""The inbox, its preferences, a project's data, masking, and criteria with categories, as people see them."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.inbox.models import Notification, NotificationEvent
from apps.inbox.services import notify_people
from apps.rubrics.models import Criterion
from tests.factories import make_member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def owner(page: Page, live_server: Any, tools: Any, project: Project) -> User:
    user = make_member(project, "owner@example.org", "owner")
    tools.login(page, live_server, user)
    return user


def tell(project: Project, user: User, event: NotificationEvent, title: str, detail: str = "") -> None:
    notify_people(
        project=project, users=[user], event=event, key=title, title=title, path="/p/desk/", detail=detail
    )


def test_what_is_unread_is_counted_opened_and_marked(
    page: Page, live_server: Any, tools: Any, project: Project, owner: User
) -> None:
    page.goto(f"{live_server.url}/inbox/")
    expect(page.get_by_text("No notifications yet")).to_be_visible()
    tools.shoot(page, "inbox-empty")
    tell(project, owner, NotificationEvent.JOB_SUCCEEDED, "The freeze of Support@3 finished")
    tell(
        project,
        owner,
        NotificationEvent.JOB_FAILED,
        "The training of polite on Support failed",
        "The dataset has 1 usable pair; label at least two and freeze again.",
    )
    tell(
        project,
        owner,
        NotificationEvent.COMMENT_MENTION,
        "ann@example.org mentioned you in a comment in Which",
    )
    page.goto(f"{live_server.url}/p/desk/")
    page.get_by_role("link", name="Inbox, 3 unread").click()
    expect(page.get_by_text("label at least two")).to_be_visible()
    tools.shoot(page, "inbox")
    page.get_by_role("link", name="mentioned you").click()
    expect(page.get_by_role("link", name="Inbox, 2 unread")).to_be_visible()
    page.get_by_role("link", name="Inbox, 2 unread").click()
    page.get_by_label("Select: The freeze of Support@3 finished").check()
    page.get_by_role("button", name="Mark selected as read").click()
    expect(page.get_by_text("1 notification marked as read.")).to_be_visible()
    page.get_by_label("Show").select_option("unread")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("listitem").filter(has_text="failed")).to_be_visible()
    expect(page.get_by_text("The freeze of Support@3 finished")).to_have_count(0)
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_text("Nothing unread")).to_be_visible()
    assert not Notification.objects.filter(read_at=None).exists()


def test_preferences(page: Page, live_server: Any, tools: Any, owner: User, settings: Any) -> None:
    settings.MAIL = True
    page.goto(f"{live_server.url}/inbox/preferences/")
    page.get_by_label("By mail: A job that I started failed").select_option("immediate")
    page.get_by_label("In the inbox: A job that I started finished").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("is saved")).to_be_visible()
    expect(page.get_by_label("By mail: A job that I started failed")).to_have_value("immediate")
    tools.shoot(page, "inbox-preferences")


def test_project_data_and_masking(
    page: Page, live_server: Any, tools: Any, project: Project, owner: User
) -> None:
    page.goto(f"{live_server.url}/p/desk/data/")
    page.get_by_label("Trajectories (days)").fill("90")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("would delete 0 trajectories")).to_be_visible()
    tools.shoot(page, "project-data")
    page.get_by_role("button", name="Archive project").click()
    expect(page.get_by_role("button", name="Open again")).to_be_visible()
    tools.shoot(page, "project-data-archived")
    page.get_by_role("button", name="Open again").click()
    expect(page.get_by_text("The project is open again.")).to_be_visible()
    page.goto(f"{live_server.url}/p/desk/trajectories/masking/")
    page.get_by_label("email addresses").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("email addresses")).to_be_checked()
    tools.shoot(page, "masking")


def test_a_rubric_with_categories(
    page: Page, live_server: Any, tools: Any, project: Project, owner: User
) -> None:
    page.goto(f"{live_server.url}/p/desk/rubrics/new/")
    page.get_by_label("Name").first.fill("Failures")
    first = page.get_by_role("group", name="Criterion 1")
    first.get_by_label("Name", exact=True).fill("failure")
    first.get_by_label("Type of answers").select_option("categories")
    first.get_by_label("Categories").fill("wrong tool: Calls a tool that cannot help\ngave up")
    tools.shoot(page, "rubric-categories-edit")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Several categories")).to_be_visible()
    tools.shoot(page, "rubric-categories")
    assert Criterion.objects.get().category_names == ["wrong tool", "gave up"]

"""From a filter to work, in a browser: "find failed tool calls of agent X, send twenty pairs to three annotators"."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from apps.accounts.models import Project, Role, User
from apps.annotation.models import Assignment, Campaign
from apps.trajectories.models import SavedView, Trajectory
from tests.factories import make_member
from tests.trajectories.conftest import record
from tests.trajectories.test_filters import tool_record
from tests.trajectories.test_views import bring

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PEOPLE = ("ann", "ben", "cho")


class CountedHand:
    """What a person does: clicks and keys, counted."""

    def __init__(self) -> None:
        self.clicks = self.keys = 0

    def click(self, target: Locator) -> None:
        self.clicks += 1
        target.click()

    def type(self, target: Locator, text: str) -> None:
        self.click(target)
        self.keys += len(text)
        target.press_sequentially(text)


@pytest.fixture
def desk(project: Project) -> Project:
    """30 tasks: each with a failed tool call of fox, and a trajectory of owl; and ten of owl alone."""
    for number in range(30):
        failed = tool_record(number, ("search", f"Error: no order {number}"), agent="fox", success=False)
        bring(project, failed, tool_record(number, ("search", "order 5"), agent="owl", success=True))
    bring(project, *(record(number, agent="owl") for number in range(100, 110)))
    for name in PEOPLE[1:]:  # the first is a member already
        make_member(project, f"{name}@example.org", Role.ANNOTATOR)
    return project


def test_failed_tool_calls_of_an_agent_become_twenty_pairs_for_three_annotators(
    page: Page, live_server: Any, tools: Any, desk: Project
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/")
    hand = CountedHand()
    bar = page.get_by_role("navigation")
    hand.click(bar.get_by_role("link", name="Data", exact=True))
    hand.click(bar.get_by_role("link", name="Agents", exact=True))
    tools.shoot(page, "agents")
    hand.click(page.get_by_role("link", name="30 trajectories of fox with a failed tool call"))
    expect(page.get_by_text("30 trajectories match")).to_be_visible()
    tools.shoot(page, "trajectories-filtered")
    hand.click(page.get_by_role("link", name="Create campaign"))
    expect(page.get_by_label("Name", exact=True)).to_have_value("fox, Failed tool call")
    hand.type(page.get_by_label("Maximum number of items"), "20")
    for name in PEOPLE:
        hand.click(page.get_by_label(f"{name}@example.org"))
    expect(page.get_by_text("20 items of 30 possible, of 20 tasks.")).to_be_visible()
    tools.shoot(page, "campaign-of-a-filter")
    hand.click(page.get_by_role("button", name="Create campaign"))
    expect(page.get_by_text("20 new items, each assigned to 3 annotators")).to_be_visible()
    assert (hand.clicks, hand.keys) == (9, 2)
    campaign = Campaign.objects.get()
    assert campaign.items.count() == 20 and campaign.overlap == 3
    assert Assignment.objects.filter(item__campaign=campaign, is_reserved=True).count() == 60
    agents = {
        tuple(sorted(run.agent_name for run in item.trajectories.all())) for item in campaign.items.all()
    }
    assert agents == {("fox", "owl")}


def test_selected_trajectories_and_a_view(page: Page, live_server: Any, tools: Any, desk: Project) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/trajectories/?agent=fox")
    page.get_by_text("Save as view").click()
    page.fill("#view-name", "Foxes")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("link", name="Foxes", exact=True)).to_have_attribute("aria-current", "true")
    page.get_by_label("Remove the condition Agent: fox").click()
    page.get_by_role("link", name="Foxes", exact=True).click()
    expect(page.get_by_text("30 trajectories match")).to_be_visible()
    for place in range(2):
        page.locator("tbody input[type=checkbox]").nth(place).check()
    tools.shoot(page, "trajectories-selected")
    page.locator("form.table-selection").get_by_role("button", name="Add to campaign").click()
    expect(page.get_by_text("No campaigns yet")).to_be_visible()
    page.get_by_role("link", name="Create campaign").click()
    expect(page.get_by_label("Number", exact=True)).not_to_have_value("")
    page.goto(f"{live_server.url}/p/desk/trajectories/?reward_from=x")
    expect(page.get_by_role("heading", name="The filter has an error")).to_be_visible()
    tools.shoot(page, "trajectories-filter-error")
    page.get_by_label("Change the view Foxes").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("View Foxes deleted.")).to_be_visible()
    assert not SavedView.objects.exists()


def test_a_deletion_is_confirmed_by_its_number(
    page: Page, live_server: Any, tools: Any, desk: Project
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/datasets/trajectories/delete/?agent=fox")
    tools.shoot(page, "trajectories-delete")
    page.fill("#confirmed", "30")
    page.get_by_role("button", name="Delete permanently").click()
    expect(page.get_by_text("0 of 30 deleted")).to_be_visible()
    tools.shoot(page, "trajectories-deletion")
    page.get_by_role("button", name="Cancel").click()
    assert Trajectory.objects.count() == 70

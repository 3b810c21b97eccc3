"""Key nodes are marked by clicking steps, and what a trajectory reaches of them is seen at once."""

import io
import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.key_nodes.models import TaskKeyNodes
from apps.key_nodes.services import refresh_completions
from apps.trajectories.models import Trajectory
from apps.trajectories.services import import_trajectories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
NODES = 10
PLACES = ("Kyoto", "Osaka", "Nara", "Kobe", "Uji", "Himeji", "Otsu", "Wakayama", "Tsu")


def trip(name: str, calls: int) -> dict[str, Any]:
    """A trajectory that looks up the first `calls` places, and says what it found."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Plan a trip through nine towns."}]
    for number, place in enumerate(PLACES[:calls]):
        arguments = json.dumps({"town": place, "nights": number + 1, "travellers": [{"name": "Ada"}]})
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "book_hotel", "arguments": arguments},
        }
        result = {"town": place, "status": "booked", "price": 80 + number}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps(result)},
        ]
    messages.append({"role": "assistant", "content": f"All {calls} towns are booked."})
    task = {"id": "trip", "instruction": "Plan a trip through nine towns."}
    return {"id": name, "task": task, "agent": "planner", "messages": messages}


def test_ten_key_nodes_are_marked_in_a_few_clicks_each(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    """Two clicks for each of nine calls, and a selection for a text: 22 in all, within the two minutes of a person who
    needs five seconds for a click."""
    lines = "".join(json.dumps(each) + "\n" for each in (trip("all", 9), trip("most", 6))).encode()
    import_trajectories(project=project, stream=io.BytesIO(lines), by=None)
    full = Trajectory.objects.get(project=project, external_id="all")
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/trajectories/{full.pk}/")
    clicks = 0
    for number in range(NODES - 1):
        card = page.locator(f"#t{full.pk}-s{1 + number}")
        card.get_by_role("link", name="Must be reached").click()
        if number == 0:
            expect(card.get_by_role("checkbox")).to_have_count(3)
            tools.shoot(page, "key-nodes-form")
        card.get_by_role("button", name="Add key node").click()
        expect(card.locator(".key-node-mark")).to_have_text("Key node")
        clicks += 2
    last = page.locator(f"#t{full.pk}-s{NODES}")
    last.get_by_text("All 9 towns are booked.").select_text()
    last.get_by_role("link", name="Must be reached").click()
    expect(last.get_by_label("Text of the step")).to_have_value("All 9 towns are booked.")
    last.get_by_text("Expected observation").click()
    last.get_by_label("Expected observation").fill("Thanks!")
    last.get_by_role("button", name="Add key node").click()
    clicks += 4
    assert clicks == 22
    expect(page.get_by_text(f"Key nodes ({NODES} of {NODES})")).to_be_visible()
    own = TaskKeyNodes.objects.get()
    assert len(own.nodes) == NODES and own.nodes[0]["name"] == "book_hotel Kyoto"
    assert own.nodes[8]["when"][0] == {"path": "town", "measure": "value", "one_of": ["Tsu"]}

    refresh_completions()
    other = Trajectory.objects.get(project=project, external_id="most")
    assert other.key_node_completion.reached == 6
    page.goto(f"{live_server.url}/p/desk/key-nodes/{own.pk}/")
    expect(page.get_by_role("heading", name="Key nodes of a task")).to_be_visible()
    page.get_by_role("link", name="Edit book_hotel Kyoto").click()
    page.get_by_label("Expected observation").fill('{"town": "Kyoto", "status": "booked", "price": 85}')
    page.get_by_label("Tests of their arguments").fill("- {path: town, one_of: [Kyoto]}")
    tools.shoot(page, "key-nodes-edit")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("town is one of Kyoto")).to_be_visible()
    tools.shoot(page, "key-nodes-detail")

    page.goto(f"{live_server.url}/p/desk/trajectories/{other.pk}/")
    expect(page.get_by_text(f"Key nodes (6 of {NODES})")).to_be_visible()
    expect(page.locator(".key-node-list .is-missing")).to_have_count(4)
    first = page.locator(f"#t{other.pk}-s1 .key-node")
    expect(first).to_contain_text("observed otherwise than expected")
    expect(first.locator("mark")).to_have_text([re.compile("85"), re.compile("80")])
    tools.shoot(page, "key-nodes-trajectory")
    page.goto(f"{live_server.url}/p/desk/trajectories/?sort=-key_nodes")
    expect(page.locator("tbody tr").first).to_contain_text("100.0 %")
    expect(page.locator("tbody tr").nth(1)).to_contain_text("60.0 %")
    tools.shoot(page, "key-nodes-explorer")
    page.goto(f"{live_server.url}/p/desk/key-nodes/")
    expect(page.locator("tbody tr").first).to_contain_text("80.0 %")
    tools.shoot(page, "key-nodes-list")

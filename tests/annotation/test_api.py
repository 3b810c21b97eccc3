"""POST /projects/{p}/items: what is stored, what comes along, what is refused."""

import json
from typing import Any

import pytest
from django.test import Client

from apps.accounts import services as accounts
from apps.accounts.models import Project, User
from apps.annotation.models import Campaign, Item
from apps.trajectories.models import Task, Trajectory
from tests.annotation import rows

MESSAGES = [{"role": "user", "content": "Refund it."}, {"role": "assistant", "content": "Done."}]


@pytest.fixture
def post(client: Client, project: Project, researcher: User, campaign: Campaign) -> Any:
    def send(
        items: list[Any], *, scopes: tuple[str, ...] = ("ingest",), name: str = campaign.name, **headers: str
    ) -> Any:
        secret = accounts.create_api_key(project=project, scopes=list(scopes), by=researcher)[1]
        body = json.dumps({"campaign": name, "items": items})
        headers = {"Authorization": f"Bearer {secret}", **headers}
        return client.post(
            "/api/v1/projects/desk/items", body, content_type="application/json", headers=headers
        )

    return send


def test_stored_trajectories_by_id_with_priority(post: Any, task: Task) -> None:
    ids = [str(rows.trajectory(task, name).pk) for name in ("one", "two")]
    item = {"trajectories": [{"trajectory_id": pk} for pk in ids], "priority": 2.5}
    answer = post([item, item]).json()
    assert (answer["created"], answer["duplicates"]) == (1, 1)
    stored = Item.objects.get(pk=answer["items"][0])
    assert stored.priority == 2.5
    assert [str(p.trajectory_id) for p in stored.places.order_by("position")] == ids


def test_trajectories_that_come_along_are_stored(post: Any, project: Project) -> None:
    other = [MESSAGES[0], {"role": "assistant", "content": "No."}]
    item = {"task": {"id": "t1"}, "trajectories": [{"messages": MESSAGES}, {"messages": other}]}
    assert post([item]).json()["created"] == 1
    assert Trajectory.objects.filter(project=project, task__external_id="t1").count() == 2


@pytest.mark.parametrize(
    ("item", "status", "pointer"),
    [
        ({"trajectories": [{"trajectory_id": "999"}]}, 404, "/items/0/trajectories/0/trajectory_id"),
        ({"trajectories": [{"text": "hello"}], "task": {"id": "t"}}, 422, "/items/0/trajectories/0"),
        ({"trajectories": [{"messages": MESSAGES}]}, 422, "/items/0/trajectories/0"),
        ({"trajectories": []}, 422, "/items/0/trajectories"),
        ({"trajectories": [{"messages": MESSAGES}], "task": {"id": "t"}}, 400, None),
    ],
)
def test_what_is_wrong_is_named(post: Any, item: dict[str, Any], status: int, pointer: str | None) -> None:
    response = post([item])
    assert response.status_code == status, response.content
    assert response.json().get("pointer") == pointer
    assert not Item.objects.exists()


def test_scope_campaign_and_project(post: Any, client: Client) -> None:
    assert post([{"trajectories": [{"trajectory_id": "1"}]}], scopes=("reward",)).status_code == 403
    assert post([{"trajectories": [{"trajectory_id": "1"}]}], name="no such").json()["pointer"] == "/campaign"
    assert (
        client.post("/api/v1/projects/desk/items", "{}", content_type="application/json").status_code == 401
    )


def test_somebody_elses_trajectory_is_not_there(post: Any) -> None:
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere")
    theirs = rows.trajectory(Task.objects.create(project=elsewhere, external_id="x"), "theirs")
    assert post([{"trajectories": [{"trajectory_id": str(theirs.pk)}]}]).status_code == 404


def test_one_bad_item_stores_nothing_of_the_good_ones(post: Any, project: Project) -> None:
    good = {
        "task": {"id": "t1"},
        "trajectories": [
            {"messages": MESSAGES},
            {"messages": [MESSAGES[0], {"role": "assistant", "content": "No."}]},
        ],
    }
    bad = {"task": {"id": "t2"}, "trajectories": [{"messages": MESSAGES}, {"trajectory_id": "999"}]}
    answer = post([good, bad])
    assert (answer.status_code, answer.json()["pointer"]) == (404, "/items/1/trajectories/1/trajectory_id")
    assert not Item.objects.exists()
    assert not Trajectory.objects.exists()
    assert not Task.objects.exists()

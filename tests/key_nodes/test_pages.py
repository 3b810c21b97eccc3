"""The pages of key nodes: marking a step, the nodes of a task, the column of the explorer."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, Role
from apps.key_nodes import services
from apps.key_nodes.models import TaskKeyNodes
from apps.key_nodes.step_marks import key_node_marks
from apps.trajectories.list_neighbors import list_neighbors
from apps.trajectories.models import Task, Trajectory
from tests.factories import make_outsider, member_client, signed_in
from tests.key_nodes.conftest import FIND, NODES, REFUND

HTMX: Any = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def client(project: Project) -> Client:
    return member_client(project, Role.RESEARCHER)


def step_url(trajectory: Trajectory, index: int) -> str:
    return reverse("key_nodes:node-create", args=["shop", trajectory.pk, index])


def nodes() -> list[dict[str, Any]]:
    return list(TaskKeyNodes.objects.get().nodes)


def test_a_step_proposes_its_call_and_arguments(client: Client, full: Trajectory) -> None:
    page = client.get(step_url(full, 1), **HTMX).content.decode()
    assert "find_order" in page and "order.id" in page and "order.fields.0" in page
    assert page.count("checkbox") == 3 and page.count("checked") == 3  # the call, and both short arguments
    answer = client.post(step_url(full, 1), {"pattern": "call-0", "arguments": ["0.0"]}, **HTMX)
    assert answer.headers["HX-Trigger"] == '{"key-nodes-changed": {}}'
    assert "find_order 7" in answer.content.decode()
    test = {"path": "order.id", "measure": "value", "one_of": [7.0]}
    assert nodes() == [{"name": "find_order 7", "tools": ["find_order"], "when": [test]}]
    assert client.post(step_url(full, 1), {"pattern": "call-0"}).status_code == 302  # without a script
    assert [node["name"] for node in nodes()] == ["find_order 7", "find_order"]


def test_a_quoted_text_is_found_whatever_its_white_space(client: Client, full: Trajectory) -> None:
    page = client.get(step_url(full, 2) + "?quote=Shall+I", **HTMX).content.decode()
    assert 'value="Shall I"' in page and 'value="text" checked' in page
    client.post(step_url(full, 2), {"pattern": "text", "quote": "Shall  I", "name": "asks"}, **HTMX)
    client.post(step_url(full, 1), {"pattern": "text", "quote": "order 7: paid", "expected": "paid"}, **HTMX)
    first, second = nodes()
    assert (first["name"], first["within"]) == ("asks", "said")
    assert (second["name"], second["within"], second["expected"]) == ("order 7: paid", "seen", "paid")
    refused = client.post(step_url(full, 2), {"pattern": "text", "quote": "never said"})
    assert refused.status_code == 422 and b"This step does not have it" in refused.content
    assert client.post(step_url(full, 2), {"pattern": "call-7"}).status_code == 422
    assert len(nodes()) == 2


def test_the_page_of_a_trajectory_shows_marks_missing_nodes_and_the_difference(
    client: Client, task: Task, full: Trajectory
) -> None:
    page = reverse("trajectories:trajectory-detail", args=["shop", full.pk])
    assert "key-node-mark" not in client.get(page).content.decode()
    services.set_key_nodes(task=task, nodes=[*NODES, {"name": "thanks", "text": "thank you"}], by=None)
    shown = client.get(page).content.decode()
    assert shown.count("key-node-mark") == 3
    assert "refunded <mark>20 </mark>EUR" in shown and "refunded <mark>25 </mark>EUR" in shown
    part = client.get(reverse("key_nodes:trajectory-nodes", args=["shop", full.pk]), **HTMX).content.decode()
    assert "Key nodes (3 of 4)" in part and "missing" in part and "step 4" in part
    assert "other observation" in part


def test_marks_come_from_the_completion_where_no_observation_is_expected(
    client: Client, task: Task, full: Trajectory, django_assert_max_num_queries: Any
) -> None:
    own = services.set_key_nodes(task=task, nodes=[FIND], by=None)
    with django_assert_max_num_queries(3):  # task, nodes and completion: no steps
        assert list(key_node_marks(full)) == [1]
    own.completions.update(revision=0)  # of before a change, until it is computed again
    assert list(key_node_marks(full)) == [1]


def test_the_explorer_has_the_completion(client: Client, task: Task) -> None:
    page = reverse("trajectories:trajectory-list", args=["shop"])
    assert 'title="Share of the task' not in client.get(page).content.decode()
    services.set_key_nodes(task=task, nodes=NODES, by=None)
    shown = client.get(f"{page}?sort=-key_nodes").content.decode()
    assert shown.index("100.0 %") < shown.index("33.3 %") < shown.index("0 of 3")
    lines = b"".join(client.get(f"{page}?sort=-key_nodes&csv=1").streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    column = lines[0].split(",").index("Key nodes")
    assert [line.split(",")[column] for line in lines[1:]] == ["1.0", str(1 / 3), "0.0"]
    ordered = list(Trajectory.objects.order_by("-key_node_completion__share"))
    neighbors = list_neighbors(task.project, ordered[1], "sort=-key_nodes")
    assert (neighbors.previous, neighbors.following) == (ordered[0].pk, ordered[2].pk)


def test_nodes_of_a_task_are_edited_moved_and_deleted(client: Client, task: Task) -> None:
    own = services.set_key_nodes(task=task, nodes=[FIND, REFUND], by=None)
    detail = reverse("key_nodes:key-nodes-detail", args=["shop", own.pk])
    assert b"refund 7" in client.get(reverse("key_nodes:key-nodes-list", args=["shop"])).content
    assert "2 of 3" in client.get(detail).content.decode()
    edit = reverse("key_nodes:node-edit", args=["shop", own.pk, 0])
    assert "order.id" in client.get(edit).content.decode()
    typed = {"name": "any order", "tools": "find_*, get_order", "when": "- {path: order.id, at_least: 1}"}
    assert client.post(edit, typed).status_code == 302
    assert nodes()[0]["tools"] == ["find_*", "get_order"] and nodes()[0]["when"][0]["at_least"] == 1
    for wrong in ({"when": "{"}, {"when": "a: 1"}, {"when": "- {path: a}"}, {"text": "("}, {"tools": ""}):
        assert client.post(edit, {**typed, **wrong}).status_code == 422
    client.post(reverse("key_nodes:node-move", args=["shop", own.pk, 0]), {"down": "1"})
    assert [node["name"] for node in nodes()] == ["refund it", "any order"]
    client.post(reverse("key_nodes:node-add", args=["shop", own.pk]), {"name": "page", "url": "shop.example"})
    assert nodes()[2] == {"name": "page", "url": "shop.example"}
    client.post(detail, {"in_order": "on"})
    assert TaskKeyNodes.objects.get().in_order
    client.post(reverse("key_nodes:node-delete", args=["shop", own.pk, 2]))
    assert len(nodes()) == 2
    assert client.post(detail, {"delete": "1"}).status_code == 302
    assert not TaskKeyNodes.objects.exists()


def test_strangers_and_annotators_are_kept_out(project: Project, task: Task, full: Trajectory) -> None:
    own = services.set_key_nodes(task=task, nodes=[FIND], by=None)
    annotator, stranger = member_client(project, Role.ANNOTATOR), signed_in(make_outsider())
    for address in (
        reverse("key_nodes:key-nodes-detail", args=["shop", own.pk]),
        reverse("key_nodes:trajectory-nodes", args=["shop", full.pk]),
        step_url(full, 1),
    ):
        assert annotator.get(address).status_code == 403
        assert stranger.get(address).status_code == 404
    client = member_client(project, Role.RESEARCHER)
    assert client.get(step_url(full, 99)).status_code == 404
    assert client.get(reverse("key_nodes:node-edit", args=["shop", own.pk, 5])).status_code == 404
    assert client.get(reverse("key_nodes:node-delete", args=["shop", own.pk, 0])).status_code == 405

"""Wrong input to the explorer and the viewer: an answer in words, never a fault of ours."""

import pytest
from django.test import Client

from apps.accounts.models import Project, User
from apps.trajectories.models import Trajectory
from tests.trajectories.conftest import record
from tests.trajectories.test_views import bring

LIST = "/p/desk/trajectories/"
NUMBER = "9" * 20


@pytest.mark.parametrize(
    "name", ["text", "task", "agent", "version", "tag", "metadata", "format", "success", "cursor"]
)
@pytest.mark.parametrize(
    "value", ["%00", "a%00b", "a%3D%00", "%ED%A0%80", "%F0%9F%92%A9", "%22" * 300, "or+or+-+-%22"]
)
def test_filters_of_text(project: Project, researcher: User, client: Client, name: str, value: str) -> None:
    bring(project, record())
    assert client.get(f"{LIST}?{name}={value}").status_code in (200, 400)


@pytest.mark.parametrize(
    "query",
    [
        *(
            "metadata=a%3D1e999",
            "metadata=a%3DNaN",
            "metadata=a%3D%22%5Cud800%22",
            "metadata=a%3D%22%5Cu0000%22",
        ),
        *("metadata=a%3D" + "[" * 390, "metadata=a%3D" + "9" * 390),
        *("reward_from=nan", "reward_from=inf", "reward_to=1e400", "steps_from=" + NUMBER, "steps_to=-1"),
    ],
)
def test_filters_of_numbers(project: Project, researcher: User, client: Client, query: str) -> None:
    bring(project, record())
    assert client.get(f"{LIST}?{query}").status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("{pk}/?find=%00", 400),
        ("{pk}/find/?find=%ED%A0%80", 200),
        ("{pk}/find/", 200),
        ("{pk}/?find=" + "a" * 5000, 200),
        ("{pk}/compare/{pk}/?start=-1", 400),
        (f"{{pk}}/compare/{{pk}}/?start={NUMBER}", 400),
        ("{pk}/compare/{pk}/?start=5", 200),
        ("agents/?a=%00&b=%00", 400),
        ("agents/?a=nobody", 400),
        (f"tasks/{NUMBER}/", 404),
        (f"{{pk}}/compare/{NUMBER}/", 404),
        (f"{NUMBER}/find/", 404),
    ],
)
def test_pages(project: Project, researcher: User, client: Client, path: str, status: int) -> None:
    pk = bring(project, record()).pk
    assert client.get(LIST + path.format(pk=pk)).status_code == status


@pytest.mark.parametrize(
    "query", ["reward_from=abc", "metadata=x", "text=%00", "pattern=none", "agnet=fox", "campaign=none"]
)
def test_a_filter_with_a_mistake_tags_nothing(
    project: Project, researcher: User, client: Client, query: str
) -> None:
    bring(project, record())
    answer = client.post(f"{LIST}tags/", {"tag": "a", "all_matching": "1", "query": query})
    assert answer.status_code == 400 and b"filter" in answer.content
    assert Trajectory.objects.get().tags == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("tags/", {"tag": "a\0", "all_matching": "1"}),
        ("tags/", {"tag": "a", "selected": ["\u00b2"]}),
        ("views/", {"name": "a\0", "query": "text=a"}),
        ("views/", {"name": " ", "query": "text=a"}),
    ],
)
def test_posts(project: Project, researcher: User, client: Client, path: str, body: dict[str, str]) -> None:
    bring(project, record())
    assert client.post(LIST + path, body).status_code == 400

"""The results of a search by meaning are selected as trajectories of the list are."""

import pytest
from django.test import Client

from apps.accounts.models import Project, User
from apps.semantic_search import views
from apps.semantic_search.selectors import FoundPassage
from apps.trajectories.models import Trajectory
from tests.bulk.stored import store_trajectories

pytestmark = pytest.mark.django_db
SEARCH = "/p/desk/semantic-search/?q=flight"


@pytest.fixture
def keys(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    keys = store_trajectories(project, 3)
    rows = Trajectory.objects.select_related("task").in_bulk(keys)
    found = [FoundPassage(rows[key], 1, 2, 0.9 - place / 10, "A flight") for place, key in enumerate(keys)]
    monkeypatch.setattr(views, "search_by_meaning", lambda *_, **__: found)
    return keys


def test_results_are_selected_for_the_actions_of_trajectories(
    project: Project, keys: list[int], client: Client, researcher: User
) -> None:
    client.force_login(researcher)
    answer = client.get(SEARCH)
    html, table = answer.content.decode(), answer.context["table"]
    assert [row.key for row in table.body] == [str(key) for key in keys], "the most similar first"
    assert all(f'name="selected" value="{key}"' in html for key in keys)
    assert f"/trajectories/{keys[0]}/#t{keys[0]}-s1" in html and "1 to 2" in html and "0.90" in html
    names = [action.name for action in table.visible_actions]
    assert names == ["tag", "campaign", "items", "score", "judge", "export", "dataset"]
    url = next(action.url for action in table.visible_actions if action.name == "campaign")
    chosen = client.post(url, {"selected": [str(keys[0]), str(keys[2])]})
    assert chosen.status_code == 302 and f"id={keys[0]}%2C{keys[2]}" in chosen.headers["location"]
    everything = client.post(url, {"all_matching": "1", "query": table.filter_query})
    assert f"id={keys[0]}-{keys[2]}" in everything.headers["location"]


def test_results_are_a_file_too(project: Project, keys: list[int], client: Client, researcher: User) -> None:
    client.force_login(researcher)
    lines = b"".join(client.get(f"{SEARCH}&csv=1")).decode()  # type: ignore[arg-type]
    assert lines.startswith("Trajectory,Steps,Text,Similarity") and lines.count("A flight") == 3

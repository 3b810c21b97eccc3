"""Search and the command palette: what is found, and by whom."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, User
from apps.accounts.services import create_project
from apps.annotation import services
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.overview.search import ACTIONS, OBJECT_KINDS
from apps.rewards.models import Endpoint
from apps.trajectories.models import SearchText, Task
from apps.trajectories.services import import_trajectories
from tests.annotation import rows
from tests.factories import member_client
from tests.trajectories.conftest import lines

PALETTE, SEARCH = "/p/desk/palette/", "/p/desk/search/"


def import_texts(project: Project, texts: dict[str, str]) -> None:
    """A trajectory for each task."""
    records = [
        {
            "task": {"id": task},
            "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "Done."}],
        }
        for task, text in texts.items()
    ]
    import_trajectories(project=project, stream=io.BytesIO(lines(*records)), format="openai", by=None)


@pytest.fixture
def ask(project: Project) -> Callable[..., str]:
    """ask("refund", "owner") -> the options, or the page."""
    clients: dict[str, Client] = {}

    def asked(text: str, role: str = "researcher", path: str = PALETTE) -> str:
        if role not in clients:
            clients[role] = member_client(project, role)
        response = clients[role].get(path, {"q": text})
        assert response.status_code == 200
        return response.content.decode()

    return asked


def test_pages_and_actions_are_found_by_the_beginnings_of_words(ask: Callable[..., str]) -> None:
    assert 'href="/p/desk/training/runs/"' in ask("tra ru")
    assert 'href="/p/desk/campaigns/new/"' in ask("create camp")
    assert "API keys" not in ask("api")
    assert 'href="/p/desk/keys"' in ask("api", "owner")
    assert "Nothing found for “&lt;zebra&gt;”" in ask("<zebra>")


def test_annotators_find_their_pages_and_campaigns_and_nothing_else(
    project: Project, ask: Callable[..., str]
) -> None:
    campaign = services.create_campaign(project=project, name="Refunds", feedback_types=["pairwise"])
    closed = services.create_campaign(project=project, name="Refunds of May", feedback_types=["pairwise"])
    services.close_campaign(campaign=closed)
    rows.pair(campaign, "refund-1")
    Endpoint.objects.create(project=project, name="refund-reward")
    found = ask("refund", "annotator")
    assert f'href="/p/desk/campaigns/{campaign.pk}/work/"' in found
    assert "Refunds of May" not in found
    assert "refund-reward" not in found
    assert "refund-1" not in found
    everything = ask("", "annotator")
    assert "Datasets" not in everything
    assert "Create campaign" not in everything


def test_a_text_without_words_finds_no_trajectory(project: Project, ask: Callable[..., str]) -> None:
    import_texts(project, {"refund-1": "Please refund me."})
    SearchText.objects.all().delete()  # as of one that has not been indexed yet
    assert "refund-1" in ask("refund-1", path=SEARCH)
    for text in ("--", "!!", '""'):
        assert "refund-1" not in ask(text, path=SEARCH)


def test_objects_are_found_by_a_part_of_their_name(project: Project, ask: Callable[..., str]) -> None:
    services.create_campaign(project=project, name="Customer refunds", feedback_types=["pairwise"])
    DatasetVersion.objects.create(project=project, name="refunds", version=3, state=JobState.SUCCEEDED)
    Endpoint.objects.create(project=project, name="refund-reward")
    foreign = create_project(slug="foreign")
    Endpoint.objects.create(project=foreign, name="refund-of-others")
    found = ask("REFUND")
    for label in ("Customer refunds", "refunds@3", "refund-reward"):
        assert label in found
    assert "refund-of-others" not in found


def test_trajectories_are_found_by_number_by_task_and_by_their_words(
    project: Project, ask: Callable[..., str]
) -> None:
    import_texts(project, {"order-17": "Refund the blue kettle", "order-18": "Nothing"})
    first = project.trajectories.get(task__external_id="order-17")
    for text in (str(first.pk), "order-17", "kettle"):
        found = ask(text)
        assert f'href="/p/desk/trajectories/{first.pk}/"' in found, text
    page = ask("kettle", path=SEARCH)
    assert f'href="/p/desk/trajectories/{first.pk}/"' in page
    assert 'value="kettle"' in page


def test_more_matches_lead_to_the_list(project: Project, ask: Callable[..., str]) -> None:
    import_texts(project, {f"order-{number}": "Refund the kettle" for number in range(7)})
    assert 'href="/p/desk/trajectories/?text=kettle"' in ask("kettle")


@pytest.mark.parametrize("role", ["annotator", "reviewer", "researcher"])
def test_only_owners_find_people(ask: Callable[..., str], annotator: User, role: str) -> None:
    assert "ann@example.org" not in ask("ann@", role)
    assert "ann@example.org" in ask("ann@", "owner")


def test_projects_are_found_by_their_members(
    ask: Callable[..., str], researcher: User, client: Client
) -> None:
    create_project(slug="kettles", name="Kettles", owner=researcher)
    create_project(slug="kettles-of-others", name="Kettles of others")
    client.force_login(researcher)
    for path in (PALETTE, "/palette/", "/search/"):
        found = client.get(path, {"q": "kettle"}).content.decode()
        assert 'href="/p/kettles/"' in found
        assert "kettles-of-others" not in found
    assert "Kettles" not in ask("kettle", "owner")


def test_every_action_and_kind_has_its_page(project: Project, ask: Callable[..., str]) -> None:
    found = ask("", "owner")
    for action in ACTIONS:
        assert action.label in found
    for kind in OBJECT_KINDS:
        assert kind.find(project, "x", 5) == [], kind.label


@pytest.mark.parametrize("text", ["\x00", "%", "_", '"', "-", "a" * 5000, "9" * 40, "' OR 1=1 --", "🫖"])
def test_strange_text_is_searched_like_any_other(ask: Callable[..., str], client: Any, text: str) -> None:
    response = member_client(Project.objects.get(slug="desk"), "owner").get(PALETTE, {"q": text})
    assert response.status_code in (200, 400)


def test_queries_do_not_grow_with_the_rows(
    project: Project, ask: Callable[..., str], django_assert_max_num_queries: Any
) -> None:
    for number in range(9):
        task = Task.objects.create(project=project, external_id=f"kettle-{number}", instruction="Kettle")
        rows.trajectory(task, "kettle")
        services.create_campaign(project=project, name=f"kettle {number}", feedback_types=["rating"])
    ask("x", "owner")
    with django_assert_max_num_queries(26):
        ask("kettle", "owner")

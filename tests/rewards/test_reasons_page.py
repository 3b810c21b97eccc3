"""The reasons for a stored trajectory's reward: on a page, as a fragment, and as a panel of the trajectory's page."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project
from apps.accounts.services import create_project
from apps.core.number_format import decimal
from apps.core.storage import artifacts
from apps.rewards.serving.state import StoredModels
from apps.training.models import RewardModel
from apps.trajectories.models import Trajectory
from apps.trajectories.services import store_trajectories
from tests.rewards.conftest import Service, make_model
from tests.workers.models.linear_models import agent, asked, linear_model, save_linear
from workers.models import load

pytestmark = pytest.mark.ml

STORED = asked(
    agent("Sorry, the parcel is late.", call="parcel", observation="error: no such parcel"),
    agent("<b>Parcel</b> found; it comes today. Sorry!"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_linear(linear_model([STORED]), tmp_path_factory.mktemp("artifact") / "model")


@pytest.fixture
def trajectory(project: Project) -> Trajectory:
    store_trajectories(project=project, trajectories=[STORED], source_format="openai")
    return Trajectory.objects.get()


@pytest.fixture
def linear(service: Service, project: Project, folder: Path, settings: Any) -> RewardModel:
    """Stored, and not deployed."""
    settings.REWARDS_ADDRESS = service.url
    service.state.deployments._load = StoredModels()
    return store_linear(project, folder)


def store_linear(project: Project, folder: Path, *, name: str = "plain") -> RewardModel:
    artifact = artifacts.store_tree(folder, f"models/{project.slug}/{name}-1")
    manifest = load(folder).manifest
    return RewardModel.objects.create(
        project=project, name=name, version=1, artifact=artifact, manifest=manifest
    )


def address(pk: int, project: str = "desk") -> str:
    return reverse("rewards:trajectory-reasons", args=[project, pk])


def test_the_page_has_the_words_and_events_of_the_model(
    researcher_client: Client, linear: RewardModel, trajectory: Trajectory, folder: Path
) -> None:
    page = researcher_client.get(address(trajectory.pk))
    expected = load(folder).reasons(STORED)
    explained = page.context["explained"]
    assert sorted(reason.by for reason in (*explained.words, *explained.events)) == pytest.approx(
        sorted(reason.by for reason in expected)
    )
    assert explained.words
    assert {step for reason in explained.words for step in reason.steps} <= {1, 2}  # among all steps
    content = page.content.decode()
    for reason in explained.words:
        assert reason.text in content
    assert any(reason.by < 0 for reason in (*explained.words, *explained.events))
    for reason in (*explained.words, *explained.events):
        sign = "+" if reason.by > 0 else ""
        assert f'<td class="number">{sign}{decimal(reason.by)}</td>' in content
    assert "<html" in content
    assert "<b>" not in content


def test_htmx_gets_a_fragment(researcher_client: Client, linear: RewardModel, trajectory: Trajectory) -> None:
    page = researcher_client.get(address(trajectory.pk), headers={"HX-Request": "true"})
    assert page.status_code == 200
    assert "<html" not in page.content.decode()
    assert page.context["explained"].events


def test_one_of_the_models_is_chosen(
    researcher_client: Client,
    service: Service,
    project: Project,
    linear: RewardModel,
    trajectory: Trajectory,
    folder: Path,
) -> None:
    second = store_linear(project, folder, name="second")
    make_model(project, service)  # gives no reasons
    assert researcher_client.get(address(trajectory.pk)).context["models"] == [second, linear]
    page = researcher_client.get(address(trajectory.pk), {"model": "plain@1"})
    assert page.context["chosen"] == linear
    for unknown in ("politeness@1", "none@1", "plain@2"):
        assert researcher_client.get(address(trajectory.pk), {"model": unknown}).status_code == 404


def test_without_such_a_model_it_says_what_to_train(
    researcher_client: Client, trajectory: Trajectory
) -> None:
    page = researcher_client.get(address(trajectory.pk))
    assert "backbone <code>linear</code>" in page.content.decode()


def test_a_service_that_is_down_is_named(
    researcher_client: Client, linear: RewardModel, trajectory: Trajectory, settings: Any
) -> None:
    settings.REWARDS_ADDRESS = "http://127.0.0.1:9"
    page = researcher_client.get(address(trajectory.pk))
    assert page.status_code == 200
    assert "failure" in page.context
    assert "explained" not in page.context


def test_a_trajectory_of_another_project_is_not_found(
    researcher_client: Client, linear: RewardModel, trajectory: Trajectory
) -> None:
    other = create_project(slug="other")
    store_trajectories(project=other, trajectories=[STORED], source_format="openai")
    hidden = Trajectory.objects.get(project=other)
    assert researcher_client.get(address(hidden.pk)).status_code == 404
    assert researcher_client.get(address(hidden.pk, "other")).status_code == 404


def test_posting_is_refused(researcher_client: Client, trajectory: Trajectory) -> None:
    assert researcher_client.post(address(trajectory.pk)).status_code == 405


def test_the_trajectory_links_to_it_where_a_model_gives_reasons(
    researcher_client: Client, service: Service, project: Project, trajectory: Trajectory, folder: Path
) -> None:
    make_model(project, service)
    page = reverse("trajectories:trajectory-detail", args=["desk", trajectory.pk])
    assert address(trajectory.pk) not in researcher_client.get(page).content.decode()
    store_linear(project, folder)
    content = researcher_client.get(page).content.decode()
    assert f'hx-get="{address(trajectory.pk)}"' in content
    assert 'hx-indicator="#reasons-progress"' in content and 'id="reasons-progress"' in content


def test_of_an_event_in_many_steps_some_are_named(
    researcher_client: Client, linear: RewardModel, trajectory: Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.rewards.reasons.MAX_STEPS", 1)
    page = researcher_client.get(address(trajectory.pk))
    events = page.context["explained"].events
    assert {len(event.steps) for event in events} == {1}
    assert any(event.has_more for event in events)
    content = page.content.decode()
    assert "and others" in content
    assert "Words: the reward minus the reward without the word, wherever the agent wrote it" in content

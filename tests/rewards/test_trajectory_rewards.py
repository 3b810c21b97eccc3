"""The reward of a stored trajectory on its page: by an endpoint or a model, by step, and where nothing answers."""

from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from touchstone_client import RewardServiceError

from apps.accounts.models import Project, User
from apps.core.storage import artifacts
from apps.rewards.models import Endpoint, EndpointRevision
from apps.rewards.serving.state import StoredModels
from apps.training.models import RewardModel
from apps.trajectories.models import Trajectory
from apps.trajectories.services import store_trajectories
from tests.rewards.conftest import Service
from tests.workers.models.linear_models import agent, asked, linear_model, save_linear
from workers.models import Lineage, load, save
from workers.models.build import build
from workers.schema import Step, Task
from workers.schema import Trajectory as StoredTrajectory
from workers.schema.recipe import Recipe

pytestmark = pytest.mark.ml

STORED = asked(agent("Sorry, the parcel is late.", call="parcel"), agent("It comes today."))
HTMX = {"HX-Request": "true"}


@pytest.fixture
def trajectory(project: Project) -> Trajectory:
    store_trajectories(project=project, trajectories=[STORED], source_format="openai")
    return Trajectory.objects.get()


def address(trajectory: Trajectory) -> str:
    return reverse("rewards:trajectory-rewards", args=["desk", trajectory.pk])


def ask(client: Client, trajectory: Trajectory, scorer: str, **more: Any) -> Any:
    return client.post(address(trajectory), {"scorer": scorer}, **more)


def test_a_model_scores_each_step(
    researcher_client: Client,
    service: Service,
    project: Project,
    trajectory: Trajectory,
    settings: Any,
    tmp_path: Path,
) -> None:
    settings.REWARDS_ADDRESS = service.url
    service.state.deployments._load = StoredModels()
    folder = save_linear(linear_model([STORED]), tmp_path / "model")
    RewardModel.objects.create(
        project=project,
        name="plain",
        version=1,
        artifact=artifacts.store_tree(folder, "models/desk/plain-1"),
        manifest=load(folder).manifest,
    )
    assert "model:plain@1" in researcher_client.get(address(trajectory)).content.decode()
    page = ask(researcher_client, trajectory, "model:plain@1", headers=HTMX)
    score = page.context["score"]
    assert set(score.steps) == {1, 2}  # among all steps
    assert score.raw == pytest.approx(score.offset + sum(score.steps.values()), abs=1e-4)
    content = page.content.decode()
    assert "<html" not in content and 'id="reward-curve" hx-swap-oob="true"' in content
    assert "<html" in ask(researcher_client, trajectory, "model:plain@1").content.decode()


def test_without_endpoint_and_model_the_next_step_is_named(
    researcher_client: Client, trajectory: Trajectory
) -> None:
    page = researcher_client.get(address(trajectory), headers=HTMX).content.decode()
    assert "No endpoint is deployed and there is no model." in page and "Create a judge" in page
    for scorer in ("endpoint:none", "model:none@1", "none"):
        assert ask(researcher_client, trajectory, scorer).status_code == 404


def test_a_service_that_is_down_is_reported(
    researcher_client: Client, project: Project, trajectory: Trajectory, settings: Any
) -> None:
    settings.REWARDS_ADDRESS = "http://127.0.0.1:9"
    endpoint = Endpoint.objects.create(project=project, name="helpful")
    endpoint.active = EndpointRevision.objects.create(endpoint=endpoint, number=1, spec={})
    endpoint.save()
    page = ask(researcher_client, trajectory, "endpoint:helpful", headers=HTMX)
    assert page.status_code == 200 and page.context["failure"]
    assert page.context["failure"] in unescape(page.content.decode())


def test_only_a_post_with_its_token_scores(
    researcher: User, project: Project, trajectory: Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[str] = []

    def score(**given: Any) -> Any:
        asked_for.append(given["scorer"])
        raise RewardServiceError("no answer")

    module = import_module("apps.rewards.views.trajectory_rewards")
    monkeypatch.setattr(module, "score_trajectory", score)
    Endpoint.objects.create(project=project, name="helpful")
    client = Client(enforce_csrf_checks=True)
    client.force_login(researcher)
    url = address(trajectory)
    assert client.get(f"{url}?scorer=endpoint:helpful").status_code == 200
    assert ask(client, trajectory, "endpoint:helpful").status_code == 403
    assert asked_for == []
    token = client.get(url).cookies["csrftoken"].value
    assert ask(client, trajectory, "endpoint:helpful", headers={"X-CSRFToken": token}).status_code == 200
    assert asked_for == ["endpoint:helpful"]
    Project.objects.update(archived_at=timezone.now())
    assert ask(client, trajectory, "endpoint:helpful", headers={"X-CSRFToken": token}).status_code == 409
    assert asked_for == ["endpoint:helpful"]


def test_of_a_team_the_rewards_of_each_agent_are_summed(
    researcher_client: Client, service: Service, project: Project, settings: Any, tmp_path: Path
) -> None:
    turns = [
        {"scout": (1.0, 2.0), "medic": (0.0, 1.0, 4.0)},
        {"scout": (3.0, 0.0), "medic": (-1.0, 1.0, 2.0)},
    ]
    steps = tuple(
        Step(source="agent", speaker=who, features=row) for turn in turns for who, row in turn.items()
    )
    team = StoredTrajectory(steps=steps, task=Task(id="rescue 3"))
    settings.REWARDS_ADDRESS = service.url
    service.state.deployments._load = StoredModels()
    recipe = Recipe(backbone="features", layers=0, aggregation="mean", width=16, ensemble=2)
    model = build(recipe, [team])
    model.backbone.prepare([model.backbone.renderer.render(team)])
    reward = {"median": 0.0, "std": 1.0}
    save(model, tmp_path / "model", recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    RewardModel.objects.create(
        project=project,
        name="team",
        version=1,
        artifact=artifacts.store_tree(tmp_path / "model", "models/desk/team-1"),
        manifest=load(tmp_path / "model").manifest,
    )
    store_trajectories(project=project, trajectories=[team], source_format="gymnasium")
    page = ask(researcher_client, Trajectory.objects.get(), "model:team@1", headers=HTMX)
    score = page.context["score"]
    assert score.agents == pytest.approx(
        {"scout": score.steps[0] + score.steps[2], "medic": score.steps[1] + score.steps[3]}
    )
    assert score.raw == pytest.approx(
        load(tmp_path / "model").score([model.backbone.renderer.render(team)])[0].raw
    )
    assert "Step rewards by agent" in page.content.decode()

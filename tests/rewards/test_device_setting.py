"""A device that is not there is the server's fault, and trainers are told so."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from apps.accounts.models import Project
from apps.rewards.services import deploy
from apps.rewards.serving.state import StoredModels
from apps.training.models import RewardModel
from tests.rewards.conftest import Service, serves, store_model, wait_until
from tests.rewards.test_swap import BODY
from tests.workers.models.linear_models import linear_model, save_linear
from workers.schema import Task, Trajectory, from_messages

pytestmark = pytest.mark.ml


@pytest.fixture
def model(tmp_path: Path, project: Project) -> RewardModel:
    messages = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "It was sent."}]
    known = Trajectory(steps=from_messages(messages), task=Task(id="t"))
    folder = save_linear(linear_model([known]), tmp_path / "model")
    return store_model(project, folder, "linear")


def test_trainers_are_told_of_a_wrong_device_and_not_of_damage(
    service: Service, http: httpx.Client, model: RewardModel, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("apps.rewards.serving.deployments.RETRY_SECONDS", 0.0)
    settings.REWARDS_DEVICE = "cuda:7"
    service.state.deployments._load = StoredModels()
    deploy(model=model, endpoint_name="linear", project=model.project, by=None)
    wait_until(lambda: getattr(service.deployed.get("linear"), "failure", None) is not None)
    reply = http.post("/api/v1/rewards/linear/score", json=BODY)
    assert reply.status_code == 503
    assert (
        "the server has a wrong device setting, TOUCHSTONE_REWARDS_DEVICE=cuda:7: " in reply.json()["detail"]
    )
    assert "damaged" not in reply.text
    ready = httpx.get(f"{service.url}/readyz", trust_env=False)
    assert (ready.status_code, ready.json()["status"]) == (503, "failed")
    settings.REWARDS_DEVICE = "auto"
    wait_until(lambda: serves(service, "linear", 1), 60)
    assert httpx.get(f"{service.url}/readyz", trust_env=False).status_code == 200

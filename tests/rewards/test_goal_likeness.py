"""The component `goal_likeness` over HTTP: goals of one imported encoder, deployed with their texts."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.rewards.services import put_spec
from tests.picture_files import BLUE, RED, coloured, data_url, file_of
from tests.rewards.conftest import Service, serves, store_model, wait_until
from tests.rewards.wire.score_calls import score_results
from tests.workers.dual_encoders import import_dual_encoder
from workers.models import load
from workers.schema import from_messages
from workers.schema.records import Task, Trajectory

pytestmark = pytest.mark.ml

Json = dict[str, Any]


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_dual_encoder(tmp_path_factory.mktemp("likeness"))


def register(project: Project, folder: Path, name: str) -> None:
    model = store_model(project, folder, name)
    model.manifest = json.loads((folder / "touchstone.json").read_text())
    model.save(update_fields=["manifest"])


def component(**values: Any) -> Json:
    return {"name": "like", "type": "goal_likeness", "model": "clip@1", **values}


def looked_at(colour: tuple[int, int, int]) -> Json:
    page = {"type": "image_url", "image_url": {"url": data_url(file_of(coloured(colour)))}}
    return {
        "messages": [{"role": "user", "content": [page]}, {"role": "assistant", "content": "It is done."}]
    }


def test_goals_of_one_encoder_are_scored(
    service: Service, project: Project, http: httpx.Client, artifact: Path
) -> None:
    from apps.rewards.serving.state import StoredModels

    service.state.deployments._load = StoredModels()
    register(project, artifact, "clip")
    parts = [component(), component(name="blue", goal="a blue page", weight=0.5)]
    put_spec(project=project, endpoint_name="seen", spec={"components": parts, "transforms": []}, by=None)
    wait_until(lambda: serves(service, "seen", 1), 60)
    found = score_results(http, "seen", looked_at(RED), looked_at(BLUE))
    model = load(artifact)
    for result, colour in zip(found, (RED, BLUE), strict=True):
        steps = from_messages(looked_at(colour)["messages"])
        rendered = model.render(Trajectory(steps=steps, task=Task(id="t")))
        own = model.score([rendered])[0].raw
        assert result["components"]["like"] == pytest.approx(own, abs=1e-5)
        assert result["reward"] == pytest.approx(sum(result["components"].values()), abs=1e-5)
        assert -0.5 <= result["components"]["blue"] <= 0.5 and result["flags"] == []
    assert abs(found[0]["reward"] - found[1]["reward"]) > 1e-4
    words = {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}
    reply = http.post("/api/v1/rewards/seen/score", json={"inputs": [looked_at(RED), words]})
    assert reply.status_code == 422 and "has no picture" in reply.text
    assert reply.json()["pointer"].startswith("/inputs/1")


def test_a_model_that_compares_no_pictures_is_not_deployed(
    project: Project, artifact: Path, tmp_path: Path
) -> None:
    (tmp_path / "touchstone.json").write_text('{"aggregation": "value"}')
    store_model(project, tmp_path, "clip")
    with pytest.raises(DomainError, match="compares no pictures with a text") as caught:
        put_spec(project=project, endpoint_name="seen", spec={"components": [component()]}, by=None)
    assert caught.value.pointer == "/components/0/model"
    with pytest.raises(DomainError, match=r"clip@9|no model"):
        spec = {"components": [component(model="clip@9")]}
        put_spec(project=project, endpoint_name="seen", spec=spec, by=None)

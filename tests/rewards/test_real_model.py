"""The real thing: a stored artifact with the embedded encoder, asked by every ITEM form it can take."""

import random
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from apps.accounts.models import Project
from apps.accounts.services import create_project
from apps.trajectories.services import store_trajectories
from tests.rewards.conftest import Service, serve_stored
from workers import schema
from workers.models import Lineage, build, load, save
from workers.models.backbones.hybrid import HybridBackbone
from workers.schema.recipe import Recipe, parse_recipe

pytestmark = pytest.mark.ml

PROMPT, RESPONSE = "Where is my parcel?", "It left the depot this morning and comes today."
MESSAGES = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": RESPONSE}]
CALL = {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"parcel": 7}'}}
LONGER = [
    MESSAGES[0],
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "out for delivery"},
    MESSAGES[1],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights will do: what is tested is that every way of asking gives the same number."""
    torch.manual_seed(7)
    recipe = Recipe(width=16, layers=1, attention_heads=2, ensemble=3, max_tokens=400)
    folder = tmp_path_factory.mktemp("artifact") / "model"
    folder.mkdir()
    reward = {"median": 0.1, "std": 0.5}
    save(build(recipe), folder, recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    return folder


@pytest.fixture
def real(service: Service, project: Project, key: str, folder: Path) -> str:
    return serve_stored(service, project, folder, "real")


def store(project: Project, trajectory: schema.Trajectory) -> str:
    """Its id."""
    store_trajectories(project=project, trajectories=[trajectory], source_format="openai")
    return str(project.trajectories.get().pk)


def score(http: httpx.Client, *inputs: dict[str, Any]) -> list[dict[str, Any]]:
    reply = http.post("/api/v1/rewards/real/score", json={"inputs": list(inputs)})
    assert reply.status_code == 200, reply.text
    return reply.json()["results"]


def test_every_form_gives_the_same_reward(service, real, project, http, key) -> None:
    task = schema.Task(id="t1", instruction="Answer the customer.")
    trajectory = schema.Trajectory(steps=schema.from_messages(MESSAGES), task=task)
    stored = store(project, trajectory)
    atif = schema.to_atif(trajectory)
    (reference,) = score(http, {"messages": MESSAGES})
    forms = [
        {"trajectory": atif},
        {"prompt": PROMPT, "response": RESPONSE},
        {"prompt": MESSAGES[:1], "response": MESSAGES[1:]},
        {"trajectory_id": stored},
    ]
    for item in forms:
        (result,) = score(http, item)
        assert result["reward"] == pytest.approx(reference["reward"], abs=1e-5), item
        assert sum(step["reward"] for step in result["steps"]) == pytest.approx(
            result["raw"] - result["baseline"], abs=1e-5
        )
    body = {"query": [PROMPT + RESPONSE], "prompts": [PROMPT], "labels": [None]}
    reply = http.post("/compat/openrlhf/real/get_reward", json=body).json()
    assert reply["rewards"] == [pytest.approx(reference["reward"], abs=1e-5)]


def test_text_and_its_token_ids(service, real, http) -> None:
    model = service.deployed[real].version.models["desk/real@1"].model
    ids = model.renderer.token_ids(RESPONSE)
    text, tokens = score(http, {"text": RESPONSE}, {"input_ids": ids})
    assert tokens["reward"] == pytest.approx(text["reward"], abs=1e-5)
    query = http.post("/compat/openrlhf/real/get_reward", json={"query": [RESPONSE]}).json()
    assert query["rewards"] == [pytest.approx(text["reward"], abs=1e-5)]
    message = score(http, {"messages": [{"role": "assistant", "content": RESPONSE}]})[0]
    assert message["reward"] == pytest.approx(text["reward"], abs=1e-5)


def test_alone_in_a_batch_and_in_any_order(service, real, http) -> None:
    """Caches emptied in between, so that every number is computed where it stands."""
    deployments = service.state.deployments
    words = RESPONSE.split()
    chance = random.Random(3)
    items = [{"text": " ".join(chance.choices(words, k=chance.randint(1, 120)))} for _ in range(12)]
    items += [{"messages": MESSAGES}, {"messages": LONGER}]

    def forget() -> None:
        for served in deployments.by_key["desk", real].version.models.values():
            served.cache.cache._entries.clear()
            served.cache.cache.bytes = 0
            service.state.deployments.batchers[0].evict(served)

    together = [result["reward"] for result in score(http, *items)]
    alone = []
    for item in items:
        forget()
        alone.append(score(http, item)[0]["reward"])
    order = chance.sample(range(len(items)), len(items))
    forget()
    shuffled = [result["reward"] for result in score(http, *(items[place] for place in order))]
    assert together == pytest.approx(alone, abs=1e-5)
    assert [together[place] for place in order] == pytest.approx(shuffled, abs=1e-5)
    assert max(together) - min(together) > 1e-3


def test_a_growing_trajectory_costs_its_new_chunks(real, http) -> None:
    first = score(http, {"messages": MESSAGES})[0]
    (result,) = score(http, {"messages": [*MESSAGES, {"role": "user", "content": "Thanks!"}, MESSAGES[1]]})
    assert result["cached_tokens"] >= first["tokens"]
    (again,) = score(http, {"messages": MESSAGES})
    assert again["cached_tokens"] == again["tokens"]


def test_too_long_is_flagged_and_never_silent(real, http) -> None:
    turns = [{"role": "user", "content": "go on"}, {"role": "assistant", "content": "word " * 60}] * 10
    (result,) = score(http, {"messages": turns})
    assert "truncated" in result["flags"]
    assert len(result["steps"]) == 10
    assert result["steps"][4]["reward"] == 0


def test_an_id_outside_the_vocabulary(real, http) -> None:
    reply = http.post("/api/v1/rewards/real/score", json={"inputs": [{"input_ids": [5, 10**7]}]})
    assert (reply.status_code, reply.json()["pointer"]) == (422, "/inputs/0/input_ids/1")


def test_a_trajectory_of_another_project_is_not_there(service, real, http) -> None:
    trajectory = schema.Trajectory(steps=schema.from_messages(MESSAGES), task=schema.Task(id="t1"))
    stored = store(create_project(slug="other"), trajectory)
    item = {"trajectory_id": stored}
    reply = http.post("/api/v1/rewards/real/score", json={"inputs": [item]})
    assert (reply.status_code, reply.json()["pointer"]) == (422, "/inputs/0/trajectory_id")


def test_a_hybrid_model_is_served_through_the_cache_of_chunks(service, project, key, http, tmp_path) -> None:
    texts = [RESPONSE, "It is lost.", f"{PROMPT} {RESPONSE}" * 20]
    recipe = parse_recipe({"backbone": "hybrid", "ensemble": 2})
    model = build(recipe)
    backbone = model.backbone
    assert isinstance(backbone, HybridBackbone)
    backbone.prepare([backbone.renderer.render(schema.Text(text)) for text in texts])
    backbone.weight.data.normal_(generator=torch.Generator().manual_seed(3))
    reward = {"median": 0.0, "std": 1.0}
    save(model, tmp_path / "model", recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    serve_stored(service, project, tmp_path / "model", "real")
    (served,) = service.state.deployments.by_key["desk", "real"].version.models.values()
    served.cache.cache._entries.clear()
    loaded = load(tmp_path / "model")
    expected = [loaded.score([loaded.render(schema.Text(text))])[0].raw for text in texts]
    for _ in range(2):
        assert [
            result["raw"] for result in score(http, *({"text": text} for text in texts))
        ] == pytest.approx(expected, abs=1e-5)
        chunks = {chunk for text in texts for chunk in loaded.render(schema.Text(text)).chunks[0]}
        assert len(served.cache.cache) == len(chunks) > len(texts)
        service.state.deployments.batchers[0].evict(served)

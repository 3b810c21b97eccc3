"""Behind an endpoint, a judge that writes: its reasons with scores, and comparisons in both orders."""

from pathlib import Path

import httpx
import pytest
import torch
from touchstone_client import RewardClient

from apps.accounts.models import Project
from tests.rewards.conftest import Service, serve_stored
from tests.workers.judge.judges import decoder, recipe, writer
from workers.models import Lineage, load_scorer, save_generative
from workers.models.generative.model import GenerativeModel
from workers.schema import parse_item

pytestmark = pytest.mark.ml

A, B = (
    {"messages": [{"role": "user", "content": "the order"}, {"role": "assistant", "content": said}]}
    for said in ("good", "bad and lost")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = decoder(tmp_path_factory.mktemp("decoder"))
    place = tmp_path_factory.mktemp("artifact") / "model"
    reward = {"median": 0.0, "std": 0.5}
    judge = writer(base)
    with torch.no_grad():
        for weights in judge.language.parameters():
            weights.mul_(4)  # so that it does not say the same of everything
    save_generative(judge, place, recipe=recipe(base), reward=reward, lineage=Lineage())
    return place


@pytest.fixture
def writes(service: Service, project: Project, key: str, folder: Path) -> str:
    return serve_stored(service, project, folder, "judge")


def ask(http: httpx.Client, endpoint: str, call: str, *inputs: dict) -> httpx.Response:
    return http.post(f"/api/v1/rewards/{endpoint}/{call}", json={"inputs": list(inputs)})


def test_reasons_come_with_scores(http: httpx.Client, writes: str, folder: Path) -> None:
    scored = ask(http, writes, "score", A, B).json()["results"]
    reply = ask(http, writes, "critique", A, B)
    assert reply.status_code == 200, reply.text
    said = reply.json()["results"]
    model = load_scorer(folder)
    assert isinstance(model, GenerativeModel)
    for entry, plain, item in zip(said, scored, (A, B), strict=True):
        (raw,) = model.score([model.render(parse_item(item).content)])
        assert entry["critiques"] == {"judge": raw.critique} and raw.critique
        assert entry["reward"] == plain["reward"] == pytest.approx(raw.raw / 0.5, abs=1e-5)
        assert "critiques" not in plain
        assert sum(step["reward"] for step in entry["steps"]) == pytest.approx(
            entry["raw"] - entry["baseline"]
        )


def test_the_client_asks_for_them(service: Service, writes: str, key: str, http: httpx.Client) -> None:
    expected = [result["critiques"] for result in ask(http, writes, "critique", A, B).json()["results"]]
    with RewardClient(service.url, writes, key, batch=1) as client:
        assert [result.critiques for result in client.critique([A, B]).results] == expected
        assert client.score([A]).results[0].critiques == {}


def test_two_are_compared_in_both_orders(http: httpx.Client, writes: str, folder: Path) -> None:
    first, second = (ask(http, writes, "compare", *pair).json() for pair in ((A, B), (B, A)))
    assert first["probability"] == pytest.approx(1 - second["probability"], abs=1e-6)
    model = load_scorer(folder)
    assert isinstance(model, GenerativeModel)
    (expected,) = model.compare([(parse_item(A).content, parse_item(B).content)])
    assert first["probability"] == pytest.approx(expected.probability, abs=1e-6)
    assert ask(http, writes, "rank", A, B).status_code == 200


def test_what_cannot_be_asked_is_said(http: httpx.Client, writes: str) -> None:
    reply = ask(http, writes, "critique", {"input_ids": [1, 2]})
    assert reply.status_code == 422 and reply.json()["pointer"] == "/inputs/0/input_ids"
    reply = http.post(f"/api/v1/rewards/{writes}/score", json={"inputs": [A], "criteria": ["kind"]})
    assert reply.status_code == 422 and reply.json()["pointer"] == "/criteria"


def test_an_endpoint_that_writes_nothing_says_so(http: httpx.Client, endpoint: str) -> None:
    reply = ask(http, endpoint, "critique", A)
    assert reply.status_code == 422
    assert "writes critiques" in reply.json()["detail"]


def test_the_door_is_the_same(service: Service, writes: str) -> None:
    reply = httpx.post(
        f"{service.url}/api/v1/rewards/{writes}/critique", json={"inputs": [A]}, trust_env=False
    )
    assert reply.status_code == 401

"""Behind an endpoint, a judge that follows principles: scored by those a request names, or by one permanently."""

from pathlib import Path

import httpx
import pytest
import torch

from apps.accounts.models import Project
from tests.rewards.conftest import Service, serve_stored
from tests.rewards.test_critique import A, B, ask
from tests.workers.judge.judges import decoder, recipe, writer
from workers.models import Lineage, load_scorer, save_generative
from workers.models.generative.model import GenerativeModel
from workers.schema import parse_item

pytestmark = pytest.mark.ml

KNOWN = {"kind": {"text": "kind: Says please.", "scale": [0.0, 1.0]}}
ASKED = ["kind", "The opposite of: kind", "never lost"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = decoder(tmp_path_factory.mktemp("decoder"))
    place = tmp_path_factory.mktemp("artifact") / "model"
    judge = writer(base, principles=True)
    with torch.no_grad():
        for weights in judge.language.parameters():
            weights.mul_(4)  # so that it does not say the same of everything
    save_generative(
        judge,
        place,
        recipe=recipe(base, principles=True),
        reward={"median": 0.0, "std": 0.5},
        criteria=KNOWN,
        lineage=Lineage(),
    )
    return place


@pytest.fixture
def follows(service: Service, project: Project, key: str, folder: Path) -> str:
    return serve_stored(service, project, folder, "judge")


def by(http: httpx.Client, endpoint: str, call: str, *inputs: dict) -> dict:
    reply = http.post(f"/api/v1/rewards/{endpoint}/{call}", json={"inputs": list(inputs), "criteria": ASKED})
    assert reply.status_code == 200, reply.text
    found: dict = reply.json()
    return found


def test_a_request_names_its_principles(http: httpx.Client, follows: str, folder: Path) -> None:
    plain = ask(http, follows, "score", A, B).json()["results"]
    said = by(http, follows, "score", A, B)["results"]
    model = load_scorer(folder)
    assert isinstance(model, GenerativeModel)
    for entry, without, item in zip(said, plain, (A, B), strict=True):
        (expected,) = model.score([model.render(parse_item(item).content)], criteria=ASKED)
        assert entry["criteria"] == pytest.approx(expected.criteria, abs=1e-6)
        assert len(set(entry["criteria"].values())) == 3
        assert entry["reward"] == without["reward"] and without["criteria"] is None
        assert entry["tokens"] == expected.tokens > without["tokens"]


def test_comparisons_and_critiques_tell_them_too(http: httpx.Client, follows: str) -> None:
    scored = [result["criteria"] for result in by(http, follows, "score", A, B)["results"]]
    assert [result["criteria"] for result in by(http, follows, "critique", A, B)["results"]] == scored
    plain = ask(http, follows, "compare", A, B).json()
    assert by(http, follows, "compare", A, B)["probability"] == plain["probability"]


def test_the_endpoint_says_which_it_knows(http: httpx.Client, follows: str) -> None:
    described = http.get(f"/api/v1/rewards/{follows}").json()
    assert described["models"][0]["criteria"] == {"kind": [0.0, 1.0]}

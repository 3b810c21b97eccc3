"""Reasons with scores: of a linear model behind an endpoint, by the reply and by both clients."""

import asyncio
from pathlib import Path

import httpx
import pytest
from touchstone_client import AsyncRewardClient, Reason, RewardClient

from apps.accounts.models import Project
from apps.rewards.services import put_spec
from tests.rewards.conftest import Service, serve_stored, serves, wait_until
from tests.workers.models.linear_models import linear_model, save_linear
from workers.models import LoadedModel, load
from workers.schema import parse_item

pytestmark = pytest.mark.ml

ITEMS = [
    {"messages": [{"role": "user", "content": "the order"}, {"role": "assistant", "content": answer}]}
    for answer in ("Sorry, the order is late. Sorry!", "It is sent; the order comes today.")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = linear_model([parse_item(item).content for item in ITEMS])
    return save_linear(model, tmp_path_factory.mktemp("artifact") / "model")


@pytest.fixture
def linear(service: Service, project: Project, key: str, folder: Path) -> str:
    return serve_stored(service, project, folder, "plain")


def ask(http: httpx.Client, endpoint: str, call: str = "score", **body: object) -> httpx.Response:
    return http.post(f"/api/v1/rewards/{endpoint}/{call}", json={"inputs": ITEMS} | body)


def test_each_result_has_those_of_the_model(http: httpx.Client, linear: str, folder: Path) -> None:
    reply = ask(http, linear, reasons=True)
    assert reply.status_code == 200, reply.text
    model = load(folder)
    assert isinstance(model, LoadedModel)
    plain = ask(http, linear).json()["results"]
    for item, result, without in zip(ITEMS, reply.json()["results"], plain, strict=True):
        expected = [reason.to_json() for reason in model.reasons(parse_item(item).content)]
        assert result["reasons"] == {"plain": expected}
        assert len(expected) == 10
        assert {reason["kind"] for reason in expected} == {"word", "event"}
        assert "reasons" not in without
        assert result["reward"] == without["reward"]


def test_deleting_the_word_changes_the_component_by_what_is_told(http: httpx.Client, linear: str) -> None:
    def score(answer: str, **body: object) -> dict:
        messages = [{"role": "user", "content": "the order"}, {"role": "assistant", "content": answer}]
        result: dict = ask(http, linear, inputs=[{"messages": messages}], **body).json()["results"][0]
        return result

    before = score("Sorry, the order is late. Sorry!", reasons=True)
    told = [reason for reason in before["reasons"]["plain"] if reason["kind"] == "word"]
    assert told
    changed = {
        "sorry": ", the order is late. !",
        "the": "Sorry,  order is late. Sorry!",
        "order": "Sorry, the  is late. Sorry!",
        "is": "Sorry, the order  late. Sorry!",
        "late": "Sorry, the order is . Sorry!",
    }
    for reason in told:
        after = score(changed[reason["text"]])
        difference = before["components"]["plain"] - after["components"]["plain"]
        assert reason["by"] == pytest.approx(difference, abs=1e-9)


def test_a_component_has_them_by_its_weight(
    http: httpx.Client, linear: str, service: Service, project: Project
) -> None:
    before = ask(http, linear, reasons=True).json()["results"][0]["reasons"]["plain"]
    components = [
        {"name": "half", "type": "reward_model", "model": "plain@1", "weight": 0.5},
        {"name": "long", "type": "token_penalty", "per": 10},
    ]
    put_spec(
        project=project, endpoint_name=linear, spec={"components": components, "transforms": []}, by=None
    )
    wait_until(lambda: serves(service, linear, 2), 60)
    after = ask(http, linear, reasons=True).json()["results"][0]["reasons"]
    assert list(after) == ["half"]
    assert [reason["by"] for reason in after["half"]] == pytest.approx(
        [reason["by"] / 2 for reason in before]
    )


def test_both_clients_ask_for_them(service: Service, linear: str, key: str, http: httpx.Client) -> None:
    expected = ask(http, linear, reasons=True).json()["results"][0]["reasons"]["plain"]
    with RewardClient(service.url, linear, key) as client:
        scores = client.score(ITEMS * 20, reasons=True)  # in requests of 32
        assert client.score(ITEMS).results[0].reasons == {}
    assert len(scores.results) == 40

    async def score() -> dict[str, tuple[Reason, ...]]:
        async with AsyncRewardClient(service.url, linear, key) as client:
            return (await client.score(ITEMS, reasons=True)).results[0].reasons

    for found in (scores.results[0].reasons, asyncio.run(score())):
        assert [(reason.kind, reason.text, reason.by) for reason in found["plain"]] == [
            (reason["kind"], reason.get("text") or reason["name"], reason["by"]) for reason in expected
        ]
        word = next(reason for reason in found["plain"] if reason.kind == "word")
        assert word.steps == (0,)
        assert word.count


def test_the_client_asks_for_them_with_critiques_too(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict] = []
    monkeypatch.setattr(RewardClient, "_paged", lambda self, call, items, options: sent.append(options))
    with RewardClient("http://127.0.0.1:9", "plain", "tsk_1") as client:
        client.critique(ITEMS, reasons=True)
        client.critique(ITEMS)
    assert [options.get("reasons") for options in sent] == [True, None]


@pytest.mark.parametrize("call", ["compare", "rank"])
def test_other_calls_give_them_too(http: httpx.Client, linear: str, call: str) -> None:
    reply = ask(http, linear, call, reasons=True)
    assert [list(result["reasons"]) for result in reply.json()["results"]] == [["plain"]] * 2


def test_an_endpoint_without_a_linear_model_says_what_to_do(http: httpx.Client, endpoint: str) -> None:
    reply = ask(http, endpoint, reasons=True)
    assert (reply.status_code, reply.json()["pointer"]) == (422, "/reasons")
    assert "backbone `linear`" in reply.json()["detail"]


def test_more_than_32_inputs_are_refused(http: httpx.Client, linear: str) -> None:
    assert ask(http, linear, inputs=ITEMS * 16, reasons=True).status_code == 200
    reply = ask(http, linear, inputs=[*ITEMS * 16, ITEMS[0]], reasons=True)
    assert (reply.status_code, reply.json()["pointer"], reply.json()["limit"]) == (413, "/reasons", 32)
    assert ask(http, linear, inputs=ITEMS * 17, reasons=False).status_code == 200


def test_only_true_and_false_are_read(http: httpx.Client, linear: str) -> None:
    reply = ask(http, linear, reasons="yes")
    assert (reply.status_code, reply.json()["pointer"]) == (422, "/reasons")


def test_the_key_is_the_same(service: Service, linear: str) -> None:
    reply = httpx.post(
        f"{service.url}/api/v1/rewards/{linear}/score",
        json={"inputs": ITEMS, "reasons": True},
        trust_env=False,
    )
    assert reply.status_code == 401

"""Two projects with an endpoint of one name: a key decides whose answers, and nothing of the other is seen."""

import io
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from apps.accounts.models import Scope
from apps.accounts.services import create_api_key, create_project
from apps.rewards.models import Endpoint, ScoreRollup
from apps.rewards.services import deploy, switch_off
from apps.rewards.serving.wire import WIRES
from tests.rewards.conftest import make_model, wait_until
from tests.workers.engine.fakes import FakeModel

NAME = "reward"
CHAT = [{"role": "user", "content": "Where is it?"}]
TEXTS = {"inputs": "a b", "text": ["a b"], "query": ["a b"], "input": "a b", "text_1": "a", "text_2": "b"}
# What each protocol wants besides the endpoint; keys it does not know are ignored.
BODIES: dict[str, Any] = {
    "rerank": {"query": "a", "documents": ["b"], "texts": ["b"]},
    "nemo-gym": {
        "responses_create_params": {"input": CHAT},
        "response": {
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Here."}],
                }
            ]
        },
    },
    "slime": {"prompt": "a", "response": "b"},
    "llamafactory": {"model": NAME, "messages": ["a b"]},
}


@pytest.fixture
def both(service) -> Iterator[dict[str, httpx.Client]]:
    """Clients by project: `desk` answers with a factor of one, `shop` of a hundred."""
    clients = {}
    for slug, factor in (("desk", 1.0), ("shop", 100.0)):
        project = create_project(slug=slug)
        deploy(
            model=make_model(project, service, FakeModel(factor=factor)),
            endpoint_name=NAME,
            project=project,
            by=None,
        )
        secret = create_api_key(project=project, scopes=[Scope.REWARD])[1]
        headers = {"Authorization": f"Bearer {secret}"}
        clients[slug] = httpx.Client(base_url=service.url, headers=headers, trust_env=False, timeout=30)
    deployed = service.state.deployments.by_key
    wait_until(lambda: len(deployed) == 2 and all(entry.version is not None for entry in deployed.values()))
    yield clients
    for client in clients.values():
        client.close()


def wired_body(path: str) -> dict[str, Any]:
    special = next((body for part, body in BODIES.items() if part in path), {})
    return {"model": NAME, "prompts": ["a"], "labels": [""], **TEXTS, **special}


def test_the_key_says_whose_endpoint_answers(both) -> None:
    body = {"inputs": [{"text": "one and the same"}]}
    replies = {
        slug: http.post(f"/api/v1/rewards/{NAME}/score", json=body).json() for slug, http in both.items()
    }
    desk, shop = (replies[slug]["results"][0]["raw"] for slug in ("desk", "shop"))
    assert abs(desk) > 0
    assert shop == pytest.approx(100 * desk, rel=0.2)
    assert both["shop"].get(f"/api/v1/rewards/{NAME}/").json()["project"] == "shop"


# Moderations are of a guard, which these endpoints lack: tests/rewards/wire/test_moderations.py.
@pytest.mark.parametrize("path", sorted({wire.path for wire in WIRES if "moderations" not in wire.path}))
def test_by_every_protocol(path: str, both) -> None:
    where = path.replace("{endpoint}", NAME)
    texts = {}
    for slug, http in both.items():
        reply = http.post(where, json=wired_body(path))
        assert reply.status_code == 200, reply.text
        texts[slug] = reply.text
    assert texts["desk"] != texts["shop"]


def test_switching_one_off_leaves_the_other(both, service) -> None:
    switch_off(endpoint=Endpoint.objects.get(project__slug="desk"), reason="hacked", by=None)
    body = {"inputs": [{"text": "a"}]}
    wait_until(lambda: both["desk"].post(f"/api/v1/rewards/{NAME}/score", json=body).status_code == 503)
    answer = both["shop"].post(f"/api/v1/rewards/{NAME}/score", json=body)
    assert (answer.status_code, "hacked" in answer.text) == (200, False)


def test_what_is_counted_is_told_apart(both, service) -> None:
    for _ in range(3):
        both["shop"].post(f"/api/v1/rewards/{NAME}/score", json={"inputs": [{"text": "a"}]})
    text = httpx.get(f"{service.url}/metrics", trust_env=False).text
    assert f'touchstone_items_total{{endpoint="{NAME}",project="shop"}} 3.0' in text
    assert f'touchstone_items_total{{endpoint="{NAME}",project="desk"}}' not in text
    wait_until(lambda: ScoreRollup.objects.filter(endpoint__project__slug="shop").exists())
    assert not ScoreRollup.objects.filter(endpoint__project__slug="desk").exists()


def printed(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command(*arguments, "--json", stdout=out, stderr=io.StringIO())
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_commands_ask_which_one_and_print_what_they_accept(both, service, settings) -> None:
    settings.REWARDS_ADDRESS = service.url
    with pytest.raises(
        CommandError, match="2 projects have an endpoint 'reward'; use one of desk/reward, shop/"
    ):
        call_command("switch_off", NAME, "--reason", "x")
    assert printed("switch_off", "shop/reward", "--reason", "x")["endpoint"] == "shop/reward"
    assert Endpoint.objects.get(project__slug="shop").switched_off
    assert not Endpoint.objects.get(project__slug="desk").switched_off
    name = printed("deploy", "shop/politeness", NAME, "--no-wait")["endpoint"]
    assert name == "shop/reward"
    assert printed("switch_on", name)["switched_off"] is False
    with pytest.raises(CommandError, match="belongs to the project shop"):
        call_command("deploy", "shop/politeness", "desk/reward", "--no-wait")
    with pytest.raises(CommandError, match="There is no endpoint 'other/reward'"):
        call_command("switch_on", "other/reward")

"""`version` in the body, the address or a header pins every protocol; a change within a policy run is announced."""

import logging
from typing import Any

import httpx
import pytest
from touchstone_client import RewardClient, openrlhf_reward_func, trl_reward

from apps.rewards.models import Endpoint
from apps.rewards.services import put_spec
from tests.rewards.conftest import serves, wait_until

Json = dict[str, Any]
SAID = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}]
REQUESTS: list[tuple[str, Json]] = [
    ("compat/openrlhf/{e}/get_reward", {"query": ["ab"], "prompts": ["a"]}),
    ("compat/vllm/classify", {"model": "{e}", "input": "a"}),
    ("compat/vllm/pooling", {"model": "{e}", "input": "a"}),
    ("compat/vllm/v1/embeddings", {"model": "{e}", "input": "a"}),
    ("compat/vllm/score", {"model": "{e}", "text_1": "a", "text_2": "b"}),
    ("compat/vllm/rerank", {"model": "{e}", "query": "a", "documents": ["b"]}),
    ("compat/sglang/classify", {"model": "{e}", "text": "a"}),
    ("compat/tei/{e}/predict", {"inputs": "a"}),
    ("compat/tei/{e}/rerank", {"query": "a", "texts": ["b"]}),
    (
        "compat/nemo-gym/{e}/verify",
        {"responses_create_params": {"input": "a"}, "response": {"output": SAID}},
    ),
    ("compat/slime/{e}", {"prompt": "a", "response": "b"}),
    ("compat/llamafactory/{e}", {"messages": ["a"]}),
    ("api/v1/rewards/{e}/score", {"inputs": [{"text": "a"}]}),
    ("api/v1/rewards/{e}/rank", {"inputs": [{"text": "a"}]}),
    ("api/v1/rewards/{e}/advantages", {"groups": [[{"text": "a"}]]}),
]


def filled(path: str, body: Json, endpoint: str) -> tuple[str, Json]:
    named = {"model": endpoint} if "model" in body else {}
    return "/" + path.replace("{e}", endpoint), body | named


def redeploy(service: Any, endpoint: str) -> None:
    row = Endpoint.objects.get(name=endpoint)
    spec = {
        "components": [{"name": "m", "model": "politeness@1"}],
        "transforms": [{"type": "clip", "eta": 1}],
    }
    put_spec(project=row.project, endpoint_name=endpoint, spec=spec, by=None)
    wait_until(lambda: serves(service, endpoint, 2))


def test_every_call_is_pinned_by_body_address_and_header(http, endpoint) -> None:
    for path, body in REQUESTS:
        path, body = filled(path, body, endpoint)
        for right, query, headers in (
            ({"version": 1}, "", {}),
            ({}, "?version=1", {}),
            ({}, "", {"X-Touchstone-Version": "1"}),
        ):
            reply = http.post(path + query, json=body | right, headers=headers)
            assert reply.status_code == 200, (path, reply.text)
            assert reply.headers["X-Touchstone-Version"] == "1"
        for wrong, query, headers in (
            ({"version": 7}, "", {}),
            ({}, "?version=7", {}),
            ({}, "", {"X-Touchstone-Version": "7"}),
        ):
            reply = http.post(path + query, json=body | wrong, headers=headers)
            assert reply.status_code == 409, (path, reply.text)
            assert reply.json()["active"] == 1
        assert http.post(path + "?version=newest", json=body).status_code == 422
        assert http.post(path, json=body, headers={"X-Touchstone-Version": "1.0"}).status_code == 422


def test_a_change_within_a_policy_run_is_announced_once(http, endpoint, service, caplog) -> None:
    path, body = f"/api/v1/rewards/{endpoint}/score", {"inputs": [{"text": "a"}], "run": "grpo-ä"}
    assert "X-Touchstone-Warning" not in http.post(path, json=body).headers
    redeploy(service, endpoint)
    other = http.post(path, json=body | {"run": "another"})
    assert "X-Touchstone-Warning" not in other.headers
    reply = http.post(f"/compat/slime/{endpoint}", json={"prompt": "a", "response": "b", "run": "grpo-ä"})
    assert "from 1 to 2 within the run 'grpo-\\xe4'" in reply.headers["X-Touchstone-Warning"]
    assert "X-Touchstone-Warning" not in http.post(path, json=body).headers


def test_the_client_logs_a_change_and_can_be_pinned(service, endpoint, key, caplog) -> None:
    caplog.set_level(logging.WARNING, logger="touchstone_client")
    with RewardClient(service.url, endpoint, key, run="r") as client:
        client.score([{"text": "a"}])
        redeploy(service, endpoint)
        client.score([{"text": "a"}])
    logged = [record.getMessage() for record in caplog.records if record.name == "touchstone_client"]
    assert any("changed from 1 to 2 within the run 'r'" in line for line in logged)
    assert any("changed from version 1 to 2" in line for line in logged)
    with (
        RewardClient(service.url, endpoint, key, version=1) as client,
        pytest.raises(Exception, match="409"),
    ):
        client.score([{"text": "a"}])
    for call in (
        lambda: trl_reward(service.url, endpoint, key, version=1)(prompts=["a"], completions=["b"]),
        lambda: openrlhf_reward_func(service.url, endpoint, key, version=1)(["ab"], ["a"], [None]),
    ):
        with pytest.raises(Exception, match="409"):
            call()


def test_pages_are_answered_by_one_version(service, endpoint, key, http, monkeypatch) -> None:
    """A new version between two pages: all of them are scored again by it."""
    with RewardClient(service.url, endpoint, key, batch=2) as client:
        asked: list[Any] = []
        call = client._caller.call

        def spied(method: str, path: str, **request: Any) -> Any:
            asked.append(request["json"].get("version"))
            if len(asked) == 2:
                redeploy(service, endpoint)
            return call(method, path, **request)

        monkeypatch.setattr(client._caller, "call", spied)
        scores = client.score([{"text": letter} for letter in "abc"])
    assert asked == [None, 1, None, 2]
    assert scores.version == 2
    alone = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [{"text": "a"}]}).json()
    assert scores.rewards[0] == alone["results"][0]["reward"]


def test_probes(http, endpoint, service) -> None:
    for base in ("/compat", "/compat/vllm", "/compat/sglang", "/compat/tei", f"/compat/tei/{endpoint}"):
        assert httpx.get(service.url + base + "/health", trust_env=False).status_code == 200
    for base in ("/compat", "/compat/vllm", "/compat/sglang", "/compat/tei"):
        listed = http.get(base + "/v1/models").json()
        assert [model["id"] for model in listed["data"]] == [endpoint]
        assert http.get(base + "/info").json()["models"][0]["model_id"] == endpoint
    described = http.get(f"/compat/tei/{endpoint}/info").json()
    assert (described["model_id"], described["model_sha"]) == (endpoint, "1")
    assert http.get("/compat/tei/nobodys/info").status_code == 404
    assert httpx.get(f"{service.url}/compat/v1/models", trust_env=False).status_code == 401


def test_vllms_own_client_finds_the_endpoint(service, endpoint, key) -> None:
    import openai

    with openai.OpenAI(
        base_url=f"{service.url}/compat/vllm/v1", api_key=key, http_client=httpx.Client(trust_env=False)
    ) as client:
        assert [model.id for model in client.models.list()] == [endpoint]

"""The error table: every refusal is a problem document that says what, where, and how to fix it."""

import json
from datetime import timedelta

import httpx
import pytest
from django.utils import timezone

from apps.accounts.models import ApiKey, Scope
from apps.accounts.services import create_api_key, create_project, revoke_api_key
from apps.rewards import tokens
from apps.rewards.models import Endpoint
from apps.rewards.services import switch_off, switch_on
from apps.rewards.serving import requests
from tests.rewards.conftest import wait_until

HELLO = {"inputs": [{"text": "Hello"}]}


def refused(reply: httpx.Response, status: int, *, pointer: str | None = None) -> dict:
    assert reply.status_code == status, reply.text
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert reply.headers["X-Request-Id"]
    problem = reply.json()
    assert problem["status"] == status
    assert problem["detail"]
    assert problem.get("pointer") == pointer
    return problem


def post(
    http: httpx.Client, endpoint: str, body: object = HELLO, verb: str = "score", **kwargs
) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return http.post(f"/api/v1/rewards/{endpoint}/{verb}", content=content, **kwargs)


def bearer(secret: str) -> dict:
    return {"headers": {"Authorization": f"Bearer {secret}"}}


BAD_ROLE = [{"role": "user", "content": "a"}, {"role": "wizard", "content": "b"}]


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (b"{", 400, None),
        ([], 422, None),
        ({}, 422, "/inputs"),
        ({"inputs": {}}, 422, "/inputs"),
        ({"inputs": [{"text": "a"}] * 3 + [{"messages": BAD_ROLE}]}, 422, "/inputs/3/messages/1/role"),
        ({"inputs": [{"messages": [{"role": "user", "content": "a"}]}]}, 422, "/inputs/0/messages"),
        ({"inputs": [{"text": "a", "prompt": "b"}]}, 422, "/inputs/0"),
        ({"inputs": [{"text": 3}]}, 422, "/inputs/0/text"),
        ({"inputs": [{"text": "a"}, {"text": "refused"}]}, 422, "/inputs/1"),
        ({"inputs": [{"text": "a"}, {"text": "nan"}]}, 422, "/inputs/1"),
        ({"inputs": [{"text": "a"}, {"text": "broken"}]}, 422, "/inputs/1"),
        ({"inputs": [{"features": [[1.0]]}]}, 422, "/inputs/0/features"),
        ({"inputs": [{"trajectory_id": "77"}]}, 422, "/inputs/0/trajectory_id"),
        ({"inputs": [], "steps": 1}, 422, "/steps"),
        ({"inputs": [], "criteria": ["polite"]}, 422, "/criteria"),
        ({"inputs": [], "version": "one"}, 422, "/version"),
        ({"inputs": [], "version": 2}, 409, "/version"),
        ({"inputs": [], "run": "a\nb"}, 422, "/run"),
        ({"inputs": [], "policy_version": {}}, 422, "/policy_version"),
        ({"inputs": [], "colour": "red"}, 422, "/colour"),
        (b'{"inputs": [{"text": "a", "logprob": NaN}]}', 400, None),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_bad_input(http, endpoint, body, status, pointer) -> None:
    problem = refused(post(http, endpoint, body), status, pointer=pointer)
    if status == 409:
        assert problem["active"] == 1


def test_who_may_ask(service, project, http, endpoint) -> None:
    other = create_project(slug="other")
    foreign = create_api_key(project=other, scopes=[Scope.REWARD])[1]
    ingest = create_api_key(project=project, scopes=[Scope.INGEST])[1]
    expired, old = create_api_key(project=project, scopes=[Scope.REWARD])
    ApiKey.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(days=1))
    create_api_key(project=project, scopes=[Scope.TRAIN])  # announces the expiry too
    wait_until(lambda: len(service.state.access.registry.keys) == 5)
    anonymous = httpx.post(f"{service.url}/api/v1/rewards/{endpoint}/score", json=HELLO, trust_env=False)
    assert "Bearer" in refused(anonymous, 401)["detail"]
    for secret in ("nonsense", old, tokens.PREFIX + "forged"):
        refused(post(http, endpoint, **bearer(secret)), 401)
    theirs = refused(post(http, endpoint, **bearer(foreign)), 404)
    unknown = refused(post(http, "nothing-here"), 404)
    assert theirs["detail"].replace(endpoint, "X") == unknown["detail"].replace("nothing-here", "X")
    assert "--scopes reward" in refused(post(http, endpoint, **bearer(ingest)), 403)["detail"]
    refused(post(http, endpoint, **bearer(tokens.make_token("other"))), 404)
    assert post(http, endpoint, **bearer(tokens.make_token("desk"))).status_code == 200


def test_a_revoked_key_is_refused(service, project, http, endpoint) -> None:
    key, secret = create_api_key(project=project, scopes=[Scope.REWARD])
    wait_until(lambda: post(http, endpoint, **bearer(secret)).status_code == 200)
    revoke_api_key(key=key, by=None)
    wait_until(lambda: post(http, endpoint, **bearer(secret)).status_code == 401)


def test_switched_off_says_why(http, endpoint) -> None:
    row = Endpoint.objects.get(name=endpoint)
    switch_off(endpoint=row, reason="reward hacking seen", by=None)
    wait_until(lambda: post(http, endpoint).status_code == 503)
    problem = refused(post(http, endpoint), 503)
    assert "reward hacking seen" in problem["detail"]
    assert problem["switched_off"] is True
    assert http.get(f"/api/v1/rewards/{endpoint}/").json()["switched_off_reason"] == "reward hacking seen"
    switch_on(endpoint=row, by=None)
    wait_until(lambda: post(http, endpoint).status_code == 200)


def test_the_limit_of_a_body_is_in_the_error(http, endpoint, settings) -> None:
    settings.REWARDS_MAX_BODY_BYTES = 100
    assert refused(post(http, endpoint, b" " * 101), 413)["limit"] == 100

    def chunks():
        yield from [b" " * 60] * 2

    streamed = http.post(f"/api/v1/rewards/{endpoint}/score", content=chunks())
    assert "100 bytes" in refused(streamed, 413)["detail"]


def test_overload_is_said_at_once(service, http, endpoint, fake) -> None:
    batcher = service.state.deployments.batchers[0]
    batcher.queue_tokens = 10
    batcher._fair.put(("desk", "another key"), 5)  # never taken
    problem = refused(post(http, endpoint, {"inputs": [{"text": "a" * 20}]}), 429)
    assert problem["retry_after"] >= 1
    reply = post(http, endpoint, {"inputs": [{"text": "a" * 20}]})
    assert reply.headers["Retry-After"] == str(problem["retry_after"])


def test_wrong_place_and_wrong_method(http, endpoint) -> None:
    refused(http.get("/api/v1/rewards"), 404)
    refused(http.get(f"/api/v1/rewards/{endpoint}/score"), 405)


def test_a_bug_is_a_reference_and_not_a_traceback(http, endpoint, fake, monkeypatch, caplog) -> None:
    monkeypatch.setattr(type(fake), "render", lambda self, content, session: 1 / 0)
    reply = post(http, endpoint, headers={"X-Request-Id": "call-7"})
    problem = refused(reply, 500)
    assert problem["reference"] == reply.headers["X-Request-Id"] == "call-7"
    assert "ZeroDivisionError" not in reply.text
    assert "ZeroDivisionError" in caplog.text


def test_a_request_id_that_could_forge_log_lines_is_replaced(http, endpoint) -> None:
    reply = post(http, endpoint, headers={"X-Request-Id": "a b"})
    assert reply.headers["X-Request-Id"] != "a b"


def test_more_items_than_one_request_may_have(http, endpoint, monkeypatch) -> None:
    monkeypatch.setattr(requests, "MOST_ITEMS", 3)
    for path, body, pointer in (
        (f"/api/v1/rewards/{endpoint}/score", {"inputs": [{"text": "a"}] * 4}, "/inputs"),
        (f"/api/v1/rewards/{endpoint}/advantages", {"groups": [[{"text": "a"}] * 2] * 2}, "/groups"),
        ("/compat/vllm/classify", {"model": endpoint, "input": ["a"] * 4}, "/input"),
        (f"/compat/openrlhf/{endpoint}/get_reward", {"query": ["a"] * 4}, "/query"),
        (f"/compat/tei/{endpoint}/predict", {"inputs": [["a"]] * 4}, "/inputs"),
    ):
        reply = http.post(path, json=body)
        assert (reply.status_code, reply.json()["pointer"], reply.json()["limit"]) == (413, pointer, 3), path

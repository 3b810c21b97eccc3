"""Whether an agent may do what it proposes, as the reward service and its client tell."""

import asyncio
from typing import Any

import pytest
from touchstone_client import AsyncRewardClient, Refused, RewardClient
from touchstone_client.retries import Retries

from apps.core.errors import DomainError
from apps.rewards.services import put_spec
from tests.rewards.conftest import serves, wait_until

CHECKS: list[dict[str, Any]] = [
    {"name": "confirm", "tools": ["cancel_*"], "confirmation": {}, "reason": "Ask the customer first."},
    {"name": "limit", "tools": ["refund"], "argument": {"path": "amount", "at_most": 50}, "effect": "ask"},
]
SPEC: dict[str, Any] = {
    "components": [
        {"name": "policy", "type": "policy_checks", "checks": CHECKS},
        {"name": "short", "type": "step_penalty", "free": 3},
    ],
    "guard": {"on_failure": "allow", "ask_below": -2.5},
}
TALK = [
    {"role": "user", "content": "Cancel order 7."},
    {"role": "assistant", "content": "Shall I cancel order 7?"},
    {"role": "user", "content": "Yes."},
]
CANCEL = {"name": "cancel_order", "arguments": {"order": 7}}


@pytest.fixture
def guarded(service: Any, endpoint: str, project: Any) -> str:
    version = put_spec(project=project, endpoint_name=endpoint, spec=SPEC, by=None).number
    wait_until(lambda: serves(service, endpoint, version))
    return endpoint


def post(http: Any, endpoint: str, **body: Any) -> Any:
    return http.post(f"/api/v1/rewards/{endpoint}/guard", json=body)


def test_allow_deny_and_ask(http: Any, guarded: str) -> None:
    allowed = post(http, guarded, messages=TALK, action=CANCEL).json()
    assert (allowed["decision"], allowed["rule"], allowed["on_failure"]) == ("allow", None, "allow")
    assert allowed["flags"] == ["guard_allow"] and allowed["milliseconds"] >= 0
    denied = post(http, guarded, messages=TALK[:1], action=CANCEL).json()
    assert (denied["decision"], denied["rule"], denied["reason"]) == (
        "deny",
        "confirm",
        "Ask the customer first.",
    )
    (violation,) = denied["violations"]
    assert violation == {
        "rule": "confirm",
        "effect": "deny",
        "tool": "cancel_order",
        "call": 0,
        "reason": "cancel_order needs the user's confirmation first.",
    }
    asked = post(
        http, guarded, messages=TALK, action={"name": "refund", "arguments": '{"amount": 80}'}
    ).json()
    assert (asked["decision"], asked["rule"]) == ("ask", "limit") and "at most 50" in asked["reason"]
    message = {"role": "assistant", "content": "It is done."}
    assert post(http, guarded, messages=TALK, action=message).json()["decision"] == "allow"
    long = [*TALK, *[message, {"role": "user", "content": "Yes."}] * 5]
    unsure = post(http, guarded, messages=long, action=message).json()
    assert unsure["decision"] == "ask" and "is below -2.5" in unsure["reason"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"messages": TALK}, "/action"),
        ({"messages": TALK, "action": {"role": "user", "content": "Hm."}}, "/action"),
        ({"messages": TALK, "action": {"name": "a", "x": 1}}, "/action/x"),
        ({"messages": {}, "action": CANCEL}, "/messages"),
        ({"messages": [{"role": "strange"}], "action": CANCEL}, "/messages/0/role"),
        ({"messages": TALK, "action": {"role": "assistant", "tool_calls": 3}}, "/action/tool_calls"),
        ({"messages": TALK, "action": CANCEL, "more": 1}, "/more"),
    ],
)
def test_what_is_refused(http: Any, guarded: str, body: dict[str, Any], pointer: str) -> None:
    refused = post(http, guarded, **body)
    assert (refused.status_code, refused.json()["pointer"]) == (422, pointer)


def test_an_endpoint_without_checks_or_settings(http: Any, endpoint: str) -> None:
    refused = post(http, endpoint, messages=TALK, action=CANCEL)
    assert refused.status_code == 422 and "no policy checks" in refused.json()["detail"]


def test_the_client_and_its_fail_mode(service: Any, guarded: str, key: str) -> None:
    once = Retries(attempts=1)
    with RewardClient(service.url, guarded, key, retries=once, timeout=5) as client:
        assert client.guard(TALK, CANCEL).is_allowed
        denied = client.guard(TALK[:1], CANCEL)
        assert (denied.decision, denied.rule, denied.has_failed) == ("deny", "confirm", False)
        with pytest.raises(Refused):
            client.guard(TALK, {"role": "user", "content": "Hm."})
        with pytest.raises(ValueError, match="allow or deny"):
            client.guard(TALK, CANCEL, on_failure="shrug")
        service.server.should_exit = True
        wait_until(lambda: _is_closed(service.url))
        failed = client.guard(TALK[:1], CANCEL)
        assert (failed.decision, failed.has_failed, failed.on_failure) == ("allow", True, "allow")
        assert client.guard(TALK, CANCEL, on_failure="deny").decision == "deny"

    async def before_the_first_decision() -> str:
        async with AsyncRewardClient(service.url, guarded, key, retries=once, timeout=5) as client:
            return (await client.guard(TALK, CANCEL)).decision

    assert asyncio.run(before_the_first_decision()) == "deny"


def _is_closed(url: str) -> bool:
    import socket
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname, parts.port)) != 0


def test_weighed_checks_decide_by_the_probability(
    service: Any, http: Any, endpoint: str, project: Any
) -> None:
    """-1 and 3 for `confirm`: 0.88 denies; a check without a weight still decides alone."""
    guard = {"ask_above": 0.3, "deny_above": 0.8, "intercept": -1.0, "check_weights": {"confirm": 3.0}}
    version = put_spec(project=project, endpoint_name=endpoint, spec={**SPEC, "guard": guard}, by=None).number
    wait_until(lambda: serves(service, endpoint, version))
    denied = post(http, endpoint, messages=TALK[:1], action=CANCEL).json()
    assert (denied["decision"], denied["rule"]) == ("deny", "violation probability")
    assert "0.88" in denied["reason"] and denied["violations"][0]["rule"] == "confirm"
    assert post(http, endpoint, messages=TALK, action=CANCEL).json()["decision"] == "allow"
    asked = post(http, endpoint, messages=TALK, action={"name": "refund", "arguments": {"amount": 80}})
    assert (asked.json()["decision"], asked.json()["rule"]) == ("ask", "limit")


def test_a_model_of_rewards_is_no_model_of_violations(endpoint: str, project: Any) -> None:
    model = project.models.first()
    spec = {
        "components": [{"name": "quality", "type": "reward_model", "model": str(model)}],
        "guard": {"component": "quality", "ask_above": 0.5},
    }
    with pytest.raises(DomainError, match="objective 'violation'") as raised:
        put_spec(project=project, endpoint_name=endpoint, spec=spec, by=None)
    assert raised.value.pointer == "/guard/component"

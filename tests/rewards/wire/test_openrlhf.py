"""OpenRLHF's protocol, asked as OpenRLHF's remote reward client asks: POST json, read `rewards`."""

import logging
import math

import httpx
import pytest


def remote_rm(url: str, queries: list[str], prompts: list[str], labels: list) -> dict:
    """What OpenRLHF does: no header of its own, `raise_for_status`, then `json()`."""
    body = {"query": queries, "prompts": prompts, "labels": labels}
    response = httpx.post(url, json=body, timeout=180, trust_env=False)
    response.raise_for_status()
    return response.json()


@pytest.fixture
def url(service, endpoint, key) -> str:
    return f"{service.url}/compat/openrlhf/{endpoint}/get_reward?key={key}"


def reward_of(http: httpx.Client, endpoint: str, item: dict) -> float:
    reply = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [item]})
    return reply.json()["results"][0]["reward"]


def test_the_reply_is_theirs_to_the_letter(url) -> None:
    reply = remote_rm(url, ["Where is it?It comes today."], ["Where is it?"], [None])
    assert set(reply) == {"rewards", "scores", "extra_logs"}
    (reward,), (score,) = reply["rewards"], reply["scores"]
    assert score == pytest.approx(1 / (1 + math.exp(-reward)))
    assert set(reply["extra_logs"]) == {"raw_reward", "truncated", "flagged", "reward_std"}
    assert all(len(values) == 1 and isinstance(values[0], float) for values in reply["extra_logs"].values())


def test_the_response_is_the_query_without_its_prompt(url, http, endpoint) -> None:
    expected = reward_of(http, endpoint, {"prompt": "Where is it?", "response": "It comes today."})
    assert remote_rm(url, ["Where is it?It comes today."], ["Where is it?"], [""])["rewards"] == [expected]
    assert remote_rm(url, ["<s>Where is it?It comes today."], ["Where is it?"], [""])["rewards"] == [expected]


def test_without_a_prompt_the_query_is_text(url, http, endpoint) -> None:
    expected = reward_of(http, endpoint, {"text": "It comes today."})
    assert remote_rm(url, ["It comes today."], [""], [""])["rewards"] == [expected]


def test_older_clients_send_long_lists(url) -> None:
    queries = [f"q{chr(97 + n % 26) * (n % 9 + 1)}" for n in range(300)]
    rewards = remote_rm(url, queries, ["q"] * 300, [None] * 300)["rewards"]
    assert len(rewards) == 300
    assert rewards[17] == remote_rm(url, [queries[17]], ["q"], [None])["rewards"][0]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"prompts": []}, "/query"),
        ({"query": ["a"], "prompts": ["a", "b"]}, "/prompts"),
        ({"query": ["a", 3], "prompts": ["", ""]}, "/query/1"),
        ({"query": ["ab", "cd"], "prompts": ["a", "x"]}, "/query/1"),
        ({"query": ["a", "nan"], "prompts": ["", ""]}, "/query/1"),
        ({"query": ["a", "refused"], "prompts": ["", ""]}, "/query/1"),
    ],
)
def test_bad_input_says_where(url, body, pointer) -> None:
    reply = httpx.post(url, json=body, trust_env=False)
    assert (reply.status_code, reply.json()["pointer"]) == (422, pointer)


def test_the_key_may_be_a_header_and_never_reaches_the_log(url, http, endpoint, key, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    assert httpx.post(url.replace(key, "wrong"), json={"query": ["a"]}, trust_env=False).status_code == 401
    assert httpx.post(url, json={"query": ["a"]}, trust_env=False).status_code == 200
    path = f"/compat/openrlhf/{endpoint}/get_reward"
    assert http.post(path, json={"query": ["a"]}).status_code == 200
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("touchstone.rewards")]
    assert any(path in line for line in ours)
    assert not any(key in line for line in ours)

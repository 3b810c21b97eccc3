"""What trainers call: verl, OpenRLHF, Gymnasium, and many single samples at once."""

import asyncio
import importlib.util
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from touchstone_client import (
    Pool,
    Refused,
    Retries,
    RewardClient,
    openrlhf_reward_func,
    trl_reward,
    verl_compute_score,
    verl_compute_score_sync,
)
from touchstone_client.gym import RewardWrapper

from tests.client.conftest import Reply

pytestmark = pytest.mark.ml

ONCE = Retries(attempts=1)


def test_verl_sends_samples_that_are_asked_for_at_once_together(server) -> None:
    compute = verl_compute_score(server.url, "sample", "k", run="r1")

    async def ask() -> list[dict[str, Any]]:
        calls = [
            compute(data_source="d", solution_str="a" * n, ground_truth="x", extra_info={"prompt": "?"})
            for n in range(1, 6)
        ]
        return await asyncio.gather(*calls)

    found = asyncio.run(ask())
    assert [entry["score"] for entry in found] == [1.0, 2.0, 3.0, 4.0, 5.0]
    logged = {"raw_reward": 1.0, "uncertain": 0.0, "truncated": 0.0, "flagged": 0.0}
    assert found[0] == {"score": 1.0, **logged}
    (call,) = server.calls
    assert call["body"]["inputs"][1] == {"prompt": "?", "response": "aa", "reference": "x"}
    assert call["body"]["run"] == "r1"
    asyncio.run(ask())  # verl makes an event loop of its own now and then
    assert len(server.calls) == 2


def test_verl_without_a_prompt_scores_text_and_with_messages_a_conversation(server) -> None:
    compute = verl_compute_score(server.url, "sample", "k", prompt="raw_prompt")
    messages = np.array([{"role": "user", "content": "?"}], dtype=object)
    asyncio.run(compute(solution_str="abc", ground_truth={"not": "text"}, extra_info=None))
    asyncio.run(compute(solution_str="abc", extra_info={"raw_prompt": messages}))
    assert [call["body"]["inputs"] for call in server.calls] == [
        [{"text": "abc", "reference": '{"not": "text"}'}],
        [{"prompt": [{"role": "user", "content": "?"}], "response": "abc"}],
    ]


def test_verl_sends_what_a_parquet_file_holds_as_json(server) -> None:
    """Arrays of numpy at any depth, and the empty fields that Arrow gives every row."""
    compute = verl_compute_score(server.url, "sample", "k")
    parts = np.array([{"type": "text", "text": "?"}], dtype=object)
    row = {"role": "user", "content": parts, "tool_calls": None, "name": None}
    asked = np.array([row, {"role": "assistant", "content": None}], dtype=object)
    asyncio.run(
        compute(solution_str="abc", ground_truth=np.float64(3), extra_info={"prompt": asked, "index": 1})
    )
    text = '[{"role": "user", "content": "?"}]'
    asyncio.run(compute(solution_str="abc", ground_truth=np.array(["a"]), extra_info={"prompt": text}))
    assert [call["body"]["inputs"][0] for call in server.calls] == [
        {
            "prompt": [
                {"role": "user", "content": [{"type": "text", "text": "?"}]},
                {"role": "assistant", "content": None},
            ],
            "response": "abc",
            "reference": "3.0",
        },
        {"prompt": text, "response": "abc", "reference": '["a"]'},
    ]


def test_verls_synchronous_managers_get_a_score(server) -> None:
    compute = verl_compute_score_sync(server.url, "sample", "k", version=3)
    found = compute(data_source="d", solution_str="abc", ground_truth="x", extra_info={"prompt": "?"})
    assert found["score"] == 3.0
    assert server.calls[0]["body"]["version"] == 3


def test_verl_loads_it_from_a_file(server, tmp_path) -> None:
    """As its `custom_reward_function.path`, `.name`."""
    file = tmp_path / "reward.py"
    file.write_text(
        "from touchstone_client import verl_compute_score\n"
        f"compute_score = verl_compute_score({server.url!r}, 'sample', 'k')\n"
    )
    spec = importlib.util.spec_from_file_location("custom_module", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert asyncio.iscoroutinefunction(module.compute_score)  # verl awaits those
    assert asyncio.run(module.compute_score("d", "ab", "x", {}))["score"] == 2.0


def test_a_pool_fails_all_of_a_request_and_goes_on(server) -> None:
    server.replies = [Reply(422, {"detail": "no", "pointer": "/inputs/1"})]

    async def ask() -> Any:
        pool = Pool(server.url, "sample", "k", retries=ONCE, batch=2, wait_seconds=5)
        first = await asyncio.gather(
            pool.score({"text": "a"}), pool.score({"text": "b"}), return_exceptions=True
        )
        second = await asyncio.gather(pool.score({"text": "a"}), pool.score({"text": "bb"}))
        return first, [entry.reward for entry in second]

    failed, right = asyncio.run(ask())
    assert all(isinstance(entry, Refused) for entry in failed)
    assert right == [1.0, 2.0]


def test_openrlhf(server) -> None:
    reward_func = openrlhf_reward_func(server.url, "sample", "k")
    reply = reward_func(["<s>hello there", "free text"], ["hello", ""], ["the label", None])
    assert server.calls[0]["body"]["inputs"] == [
        {"prompt": "hello", "response": " there", "reference": "the label"},
        {"text": "free text"},
    ]
    assert torch.equal(reply["rewards"], torch.tensor([6.0, 9.0]))
    assert torch.allclose(reply["scores"], torch.sigmoid(torch.tensor([6.0, 9.0])))
    assert set(reply["extra_logs"]) == {"raw_reward", "truncated", "flagged"}
    with pytest.raises(ValueError, match="does not begin with its prompt"):
        reward_func(["something else"], ["hello"], [None])


def test_openrlhf_aligns_and_says_so(server) -> None:
    reward_func = openrlhf_reward_func(server.url, "sample", "k")
    reply = reward_func(["is my cafe\u0301?No."], ["Where is my caf\u00e9?"], [{"answer": 3}])
    assert server.calls[0]["body"]["inputs"] == [
        {"prompt": "Where is my caf\u00e9?", "response": "No.", "reference": '{"answer": 3}'}
    ]
    assert reply["extra_logs"]["flagged"].tolist() == [1.0]


def test_a_row_without_a_reference_sends_none(server) -> None:
    reward = trl_reward(server.url, "sample", "k", reference="answer")
    reward(prompts=["?", "?"], completions=["ab", "b"], answer=[None, "x"])
    assert [("reference" in item) for item in server.calls[0]["body"]["inputs"]] == [False, True]


def test_trl_sends_a_column_along_as_references(server) -> None:
    reward = trl_reward(server.url, "sample", "k", reference="answer")
    assert reward(prompts=["?"], completions=["ab"], completion_ids=[[1]], answer=[42]) == [2.0]
    assert server.calls[0]["body"]["inputs"] == [{"prompt": "?", "response": "ab", "reference": "42"}]


class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.at = 0.0
        return np.array([self.at, 0.5], dtype=np.float32), {}

    def step(self, action: int) -> Any:
        self.at += 0.25
        return np.array([self.at, 0.5], dtype=np.float32), 7.0, self.at >= 0.5, False, {"own": True}


def test_gymnasium_takes_each_steps_reward(server) -> None:
    with RewardClient(server.url, "sample", "k", retries=ONCE) as client:
        env = RewardWrapper(Corridor(), client)
        steps = [{"agent_step": n, "reward": 0.5 * (n + 1)} for n in range(2)]
        head = {"endpoint": "s", "version": 1, "usage": {}}
        base = {
            "raw": 1,
            "baseline": 0,
            "std": None,
            "criteria": None,
            "components": {},
            "flags": [],
            "tokens": 1,
        }
        server.replies = [
            Reply(body=head | {"results": [base | {"reward": 2.0, "cached_tokens": 0, "steps": steps[:n]}]})
            for n in (1, 2)
        ]
        env.reset(seed=1)
        _, reward, ended, _, info = env.step(2)
        assert (reward, ended, info) == (
            0.5,
            False,
            {"own": True, "environment_reward": 7.0, "trajectory_reward": 2.0},
        )
        _, reward, ended, _, _ = env.step(0)
        assert (reward, ended) == (1.0, True)
        (first,), (second,) = (call["body"]["inputs"] for call in server.calls)
        assert second["features"] == [[0.0, 0.5, 0.0, 0.0, 1.0], [0.25, 0.5, 1.0, 0.0, 0.0]]
        assert first["session"] == second["session"]
        env.reset()
        env.step(1)
        assert server.calls[2]["body"]["inputs"][0]["session"] != first["session"]


def test_every_attempt_has_the_same_name(server) -> None:
    server.replies = [Reply(503, headers={"Retry-After": "0"}), Reply(hang_up=True)]
    with RewardClient(server.url, "sample", "k", retries=Retries(first_seconds=0.01)) as client:
        client.score([{"text": "a"}])
        client.score([{"text": "a"}])
    names = [call["headers"]["Idempotency-Key"] for call in server.calls]
    assert len(set(names[:3])) == 1
    assert names[3] != names[0]


def test_criteria_and_advantages(server) -> None:
    with RewardClient(server.url, "sample", "k", run="r", retries=ONCE) as client:
        client.score([{"text": "a"}], criteria=["polite"])
        server.replies = [Reply(body={"groups": [[{"advantage": 1, "steps": [1, 1], "reward": 2}]]})]
        ((one,),) = client.advantages([[{"text": "a"}]], "rloo")
    assert (one.trajectory, one.steps) == (1.0, (1.0, 1.0))
    assert server.calls[0]["body"]["criteria"] == ["polite"]
    assert server.calls[1]["body"] == {
        "groups": [[{"text": "a"}]],
        "estimator": "rloo",
        "options": {},
        "run": "r",
    }

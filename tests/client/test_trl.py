"""The reward function as TRL's trainers call it."""

import asyncio
import inspect
import threading
from types import SimpleNamespace

import pytest
from touchstone_client import trl_reward, trl_reward_async

PLAIN = {"prompts": ["p", "p"], "completions": ["four", "sixsix"]}
CHAT = {
    "prompts": [[{"role": "user", "content": "p"}]] * 2,
    "completions": [[{"role": "assistant", "content": text}] for text in PLAIN["completions"]],
}


@pytest.mark.parametrize("batch", [PLAIN, CHAT])
def test_rewards_come_in_order(server, batch) -> None:
    reward = trl_reward(server.url, "sample", "KEY", run="grpo-1")
    state = SimpleNamespace(global_step=7)
    ids = [[1], [2]]
    assert reward(**batch, completion_ids=ids, trainer_state=state, answer=["a", "b"]) == [4.0, 6.0]
    body = server.calls[0]["body"]
    assert body["inputs"][0] == {"prompt": batch["prompts"][0], "response": batch["completions"][0]}
    assert (body["run"], body["policy_version"], body["steps"]) == ("grpo-1", "step-7", False)


def test_it_has_the_name_trl_logs() -> None:
    assert trl_reward("http://x", "sample", "KEY").__name__ == "sample"
    assert trl_reward("http://x", "sample", "KEY", name="politeness").__name__ == "politeness"


def test_the_asynchronous_one_is_seen_as_one(server) -> None:
    reward = trl_reward_async(server.url, "sample", "KEY")
    assert inspect.iscoroutinefunction(reward)
    assert asyncio.run(reward(**PLAIN)) == [4.0, 6.0]
    assert asyncio.run(reward(**PLAIN)) == [4.0, 6.0]


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="1 prompts for 2"):
        trl_reward("http://x", "sample", "KEY")(prompts=["p"], completions=["a", "b"])


@pytest.mark.slow
@pytest.mark.parametrize("make", [trl_reward, trl_reward_async])
def test_trls_own_code_takes_the_rewards(server, make) -> None:
    """TRL's `GRPOTrainer._calculate_rewards` itself, on as much of a trainer as it looks at."""
    trl = pytest.importorskip("trl.trainer.grpo_trainer")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    trainer = SimpleNamespace(
        accelerator=SimpleNamespace(device="cpu", is_main_process=True),
        reward_funcs=[make(server.url, "sample", "KEY")],
        reward_processing_classes=[None],
        reward_func_names=["sample"],
        state=SimpleNamespace(global_step=3),
        environments=None,
        async_loop=loop,
        args=SimpleNamespace(report_to=[]),
        _log_completion_extra=None,
        _log_metric=None,
    )
    inputs = [{"prompt": prompt, "answer": "42"} for prompt in CHAT["prompts"]]
    arguments = (trainer, inputs, CHAT["prompts"], CHAT["completions"], [[1], [2]])
    try:
        rewards = trl.GRPOTrainer._calculate_rewards(*arguments)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
    assert rewards.tolist() == [[4.0], [6.0]]
    assert server.calls[0]["body"]["policy_version"] == "step-3"

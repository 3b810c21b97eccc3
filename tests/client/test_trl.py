"""The reward function as TRL's trainers call it."""

import asyncio
import inspect
import statistics
from types import SimpleNamespace

import pytest
from touchstone_client import trl_reward, trl_reward_async

from tests.grpo import grpo_config
from tests.workers.decoders import save_decoder

pytestmark = pytest.mark.ml

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
@pytest.mark.filterwarnings("ignore")  # TRL and transformers, about each other
@pytest.mark.parametrize("make", [trl_reward, trl_reward_async])
def test_a_grpo_trainer_trains_on_the_rewards(server, make, tmp_path) -> None:
    """A whole `GRPOTrainer` with a tiny policy: the rewards it logs are those the endpoint gave."""
    from datasets import Dataset
    from trl import GRPOTrainer

    folder = save_decoder(tmp_path / "policy", "llama")
    questions = ["hello", "the order was lost"]
    data = Dataset.from_dict({"prompt": [[{"role": "user", "content": question}] for question in questions]})
    config = grpo_config(
        tmp_path / "out",
        max_steps=2,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=8,
    )
    reward = make(server.url, "sample", "KEY", run="grpo-1")
    trainer = GRPOTrainer(model=str(folder), reward_funcs=[reward], args=config, train_dataset=data)
    trainer.train()
    bodies = [call["body"] for call in server.calls]
    assert [body["policy_version"] for body in bodies] == ["step-0", "step-1"]
    assert {(body["run"], len(body["inputs"])) for body in bodies} == {("grpo-1", 4)}
    means = [
        statistics.mean(float(len(item["response"][0]["content"])) for item in body["inputs"])
        for body in bodies
    ]
    logged = [row["rewards/sample/mean"] for row in trainer.state.log_history if "rewards/sample/mean" in row]
    assert logged == pytest.approx(means)

"""TRL's `GRPOTrainer(tools=...)` against a running endpoint: only the sampled tokens are replaced."""

from pathlib import Path
from typing import Any

import pytest
from touchstone_client import trl_reward

from benchmarks.chat_templates import template_text
from tests.grpo import grpo_config
from tests.workers.decoders import save_decoder

pytestmark = [pytest.mark.ml, pytest.mark.slow]

CALL = '<tool_call>\n{"name": "look_up", "arguments": {"order": "1007"}}\n</tool_call><|im_end|>'
ANSWER = "It comes today.<|im_end|>"


def look_up(order: str) -> str:
    """
    Looks an order up.

    Args:
        order: its number
    Returns:
        what is known of it
    """
    return f"{order} was sent on Monday"


@pytest.mark.filterwarnings("ignore")  # TRL and transformers, about each other
def test_a_grpo_trainer_with_tools_trains_on_the_rewards(
    service, http, endpoint, key, tmp_path: Path
) -> None:
    from datasets import Dataset
    from trl import GRPOTrainer

    shape = {"max_position_embeddings": 4096}  # TRL leaves out a result that does not fit
    folder = save_decoder(tmp_path / "policy", "qwen3", template=template_text("qwen3"), shape=shape)
    asked = [{"role": "user", "content": "Where is my order 1007?"}]
    config = grpo_config(
        tmp_path / "out",
        max_steps=1,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=384,
    )
    reward, seen = trl_reward(service.url, endpoint, key, run="tools"), []

    def scored(prompts: Any, completions: Any, **more: Any) -> list[float]:
        seen.extend(zip(prompts, completions, strict=True))
        return reward(prompts, completions, **more)

    trainer = GRPOTrainer(
        model=str(folder),
        reward_funcs=[scored],
        args=config,
        train_dataset=Dataset.from_dict({"prompt": [asked] * 2}),
        tools=[look_up],
    )
    tokens, turns = trainer._tokenizer, []

    def sampled(prompt_ids: Any, *args: Any, **options: Any) -> Any:
        """What the policy would have written: a call, then an answer. No log-probabilities."""
        turns.append(CALL if not turns else ANSWER)
        ids = [tokens(turns[-1], add_special_tokens=False)["input_ids"] for _ in prompt_ids]
        return ids, None

    trainer._generate_single_turn = sampled
    trainer.train()

    prompt, completion = seen[0]
    assert [message["role"] for message in completion] == ["assistant", "tool", "assistant"]
    assert "tool_call_id" not in completion[1]
    call = {"id": "c1", "type": "function", "function": completion[0]["tool_calls"][0]["function"]}
    paired = [
        *prompt,
        completion[0] | {"tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "1007 was sent on Monday"},
        completion[2],
    ]
    body = {"inputs": [{"messages": paired}]}
    reply = http.post(f"/api/v1/rewards/{endpoint}/score", json=body).json()["results"][0]
    (logged,) = (row for row in trainer.state.log_history if "rewards/scored/mean" in row)
    assert logged["rewards/scored/mean"] == pytest.approx(reply["reward"], abs=1e-5)
    assert reply["flags"] == []

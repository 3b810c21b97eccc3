"""TRL's GRPOTrainer on the support desk over several turns: the policy calls tools, reads their results, and replies.

python -m docs.examples.grpo_tools --url http://127.0.0.1:8000 --endpoint desk --key tsk_...

TRL runs a conversation in an environment of its own (`environment_factory`), and trains on the tokens of the policy
alone. The reward of a conversation is the endpoint's, once, at its end.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from touchstone_client import RewardClient
from touchstone_client.trl import policy_of
from trl import GRPOConfig, GRPOTrainer

from apps.demo.world import TASKS
from docs.examples.command_line import argument_parser
from docs.examples.desk import MOST_MOVES, TrainingCurve
from docs.examples.tool_desk import (
    CONTEXT,
    DeskEnvironment,
    new_tool_policy,
    play_out,
    prompt,
    tool_tokenizer,
    true_tool_reward,
)

STEPS = 120
GROUP = 8  # conversations of a request
AT_ONCE = 64  # conversations of a step
NEAR = 0.05  # TRL's beta: how much moving away from the first policy costs, by nat


def train(client: RewardClient, *, seed: int, steps: int = STEPS) -> TrainingCurve:
    """Raises RewardServiceError where the endpoint gives no rewards."""
    tokenizer = tool_tokenizer()
    policy = new_tool_policy(tokenizer, seed=seed)
    curve = TrainingCurve(before=true_tool_reward(policy, tokenizer))

    def desk(
        prompts: Sequence[Any],
        completions: Sequence[Any],
        environments: Sequence[DeskEnvironment],
        **more: Any,
    ) -> list[float]:
        """The reward function for TRL. The hidden reward is recorded, and not passed on."""
        played = [
            play_out(environment, _reply(completion))
            for environment, completion in zip(environments, completions, strict=True)
        ]
        rewards = client.score(
            [{"messages": episode.messages} for episode in played],
            steps=False,
            uncertainty=False,
            policy_version=f"{policy_of(more.get('trainer_state'))} of {seed}",
        ).rewards
        curve.note(played, rewards)
        return rewards

    with tempfile.TemporaryDirectory() as scratch:
        policy.save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        trainer = GRPOTrainer(
            model=scratch,
            reward_funcs=[desk],
            args=_config(Path(scratch) / "out", seed=seed, steps=steps),
            train_dataset=Dataset.from_list(
                [{"prompt": prompt(task), "task": task.id} for task in TASKS.values()]
            ),
            processing_class=tokenizer,
            environment_factory=DeskEnvironment,
        )
        trainer.train()
    curve.after = true_tool_reward(trainer.model.eval(), tokenizer)
    return curve


def _reply(completion: Sequence[dict[str, Any]]) -> str:
    """What the policy wrote last without a tool call; nothing where it did not."""
    last = completion[-1] if completion else {}
    is_reply = last.get("role") == "assistant" and not last.get("tool_calls")
    return str(last.get("content") or "") if is_reply else ""


def _config(folder: Path, *, seed: int, steps: int) -> GRPOConfig:
    return GRPOConfig(
        output_dir=str(folder),
        seed=seed,
        max_steps=steps,
        per_device_train_batch_size=AT_ONCE,
        num_generations=GROUP,
        max_completion_length=CONTEXT - 64,  # calls and the results of tools
        max_tool_calling_iterations=MOST_MOVES - 1,
        learning_rate=3e-4,
        beta=NEAR,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        disable_tqdm=True,
        logging_steps=steps,
        dataloader_pin_memory=False,
    )


def main() -> None:
    parser = argument_parser(__doc__, seed=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    torch.set_num_threads(1)  # it is too small for more
    run = f"grpo-tools-{options.seed}"
    with RewardClient(options.url, options.endpoint, options.key, run=run) as client:
        print(train(client, seed=options.seed, steps=options.steps))


if __name__ == "__main__":
    main()

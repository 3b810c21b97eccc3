"""TRL's GRPOTrainer or RLOOTrainer on the support desk: a Touchstone endpoint as the only reward, and the feedback loop
on request.

python -m docs.examples.grpo --url http://127.0.0.1:8000 --endpoint desk --key tsk_... [--web http://127.0.0.1:8000]
    [--trainer grpo|rloo]

With --web, people are asked about what the policy does after every round, and the reward learns from it: see people.py.
Without, the reward stays as it is, and the policy finds out sooner or later what it pays for by mistake.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from datasets import Dataset
from touchstone_client import RewardClient
from touchstone_client.trl import policy_of
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

from apps.demo.world import TASKS
from docs.examples.command_line import argument_parser
from docs.examples.desk import (
    MOST_MOVES,
    TrainingCurve,
    new_policy,
    play,
    sampled,
    tokenizer,
    true_reward,
    words,
)
from docs.examples.people import ANSWERS, FeedbackLoop

ROUNDS = 6
STEPS = 40  # of a round
GROUP = 8  # answers to a request
AT_ONCE = 64  # answers to a step
NEAR = 0.05  # TRL's beta: how much moving away from the round's first policy costs, by nat
TrainerName = Literal["grpo", "rloo"]
TRAINERS: dict[TrainerName, tuple[Any, Any]] = {
    "grpo": (GRPOConfig, GRPOTrainer),
    "rloo": (RLOOConfig, RLOOTrainer),
}


def train(
    client: RewardClient,
    *,
    seed: int,
    feedback_loop: FeedbackLoop | None = None,
    rounds: int = ROUNDS,
    steps: int = STEPS,
    trainer: TrainerName = "grpo",
) -> TrainingCurve:
    """Raises RewardServiceError where the endpoint gives no rewards."""
    reads = tokenizer()
    policy: Any = new_policy(reads, seed=seed)
    curve = TrainingCurve(before=true_reward(policy, reads))
    for number in range(rounds):
        if number and feedback_loop is not None:
            feedback_loop.collect_comparisons(
                sampled(policy, reads, ANSWERS), occasion=f"round {number} of {seed}"
            )
            feedback_loop.retrain()
        with tempfile.TemporaryDirectory() as scratch:
            policy.save_pretrained(scratch)
            reads.save_pretrained(scratch)
            policy = _round(
                Path(scratch), reads, client, curve, steps=steps, seed=seed + 1000 * number, trainer=trainer
            )
    curve.after = true_reward(policy, reads)
    return curve


def _round(
    folder: Path,
    reads: Any,
    client: RewardClient,
    curve: TrainingCurve,
    *,
    steps: int,
    seed: int,
    trainer: TrainerName,
) -> Any:
    """Some steps of a stock trainer on the policy in a folder; the policy after them."""

    def desk(
        prompts: Sequence[str], completions: Sequence[str], task: Sequence[str], **more: Any
    ) -> list[float]:
        """The reward function for TRL. The hidden reward is recorded, and not passed on."""
        played = [play(TASKS[name], text.split()) for name, text in zip(task, completions, strict=True)]
        version = f"{policy_of(more.get('trainer_state'))} of {seed}"
        rewards = client.score(
            [{"messages": episode.messages} for episode in played],
            steps=False,
            uncertainty=False,
            policy_version=version,
        ).rewards
        curve.note(played, rewards)
        return rewards

    config_class, trainer_class = TRAINERS[trainer]
    config = config_class(
        output_dir=str(folder / "out"),
        seed=seed,
        max_steps=steps,
        per_device_train_batch_size=AT_ONCE,
        num_generations=GROUP,
        max_completion_length=MOST_MOVES,
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
    data = Dataset.from_list([{"prompt": words(task), "task": task.id} for task in TASKS.values()])
    made = trainer_class(
        model=str(folder), reward_funcs=[desk], args=config, train_dataset=data, processing_class=reads
    )
    made.train()
    return made.model.eval()


def main() -> None:
    parser = argument_parser(__doc__, seed=0)
    parser.add_argument("--web", help="of the pages; people are asked after every round")
    parser.add_argument("--project", default="sample")
    parser.add_argument("--trainer", choices=TRAINERS, default="grpo")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS, help="of a round")
    options = parser.parse_args()
    torch.set_num_threads(1)  # it is too small for more
    feedback_loop = (
        FeedbackLoop(options.web, options.project, options.endpoint, options.key) if options.web else None
    )
    with RewardClient(
        options.url, options.endpoint, options.key, run=f"{options.trainer}-{options.seed}"
    ) as client:
        print(
            train(
                client,
                seed=options.seed,
                feedback_loop=feedback_loop,
                rounds=options.rounds,
                steps=options.steps,
                trainer=options.trainer,
            )
        )


if __name__ == "__main__":
    main()

"""verl's GRPO on the support desk over several turns: its reward manager, its estimators and its loss, in one process.

python -m docs.examples.verl_policy --url http://127.0.0.1:8000 --endpoint desk --key tsk_...
    [--estimator grpo|rloo|reinforce_plus_plus|...]

verl's trainer runs its parts as Ray actors on GPUs. Here a loop calls the same parts: `NaiveRewardManager` awaits
`compute_score` for each conversation, an advantage estimator and a policy loss are taken from verl's registries by
name, and the optimiser step is torch's. Results of tools are in a response, and masked, as verl's agent loops have it.
"""

import asyncio
import copy
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from touchstone_client import verl_compute_score
from touchstone_client.verl import ComputeScore
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo import core_algos
from verl.workers.config import FSDPActorConfig

from apps.demo.world import TASKS, DeskTask
from docs.examples.command_line import argument_parser
from docs.examples.desk import MOST_MOVES, MOVES, REPLIES, DeskEpisode, TrainingCurve
from docs.examples.tool_desk import (
    DeskEnvironment,
    call_text,
    new_tool_policy,
    play_out,
    prompt,
    tool_tokenizer,
    true_tool_reward,
)

STEPS = 60
GROUP = 8  # conversations of a request
REQUESTS = 8  # to a step
EPOCHS = 2  # passes over a step's conversations
MINI_BATCH = 32  # conversations to an optimiser step
LEARNING_RATE = 5e-4
NEAR = 0.05  # verl's kl_loss_coef: how much moving away from the first policy costs, by nat
GROUPED = ("grpo", "grpo_vectorized", "rloo", "rloo_vectorized", "reinforce_plus_plus_baseline", "opo")
ESTIMATORS = (*GROUPED, "reinforce_plus_plus")


@dataclass
class Conversation:
    """response: the tokens after the prompt; written: whether the policy wrote them, or a tool did."""

    environment: DeskEnvironment
    prompt: list[int]
    response: list[int] = field(default_factory=list)
    written: list[bool] = field(default_factory=list)
    reply: str = ""
    is_over: bool = False

    def add(self, tokens: list[int], *, written: bool) -> None:
        self.response += tokens
        self.written += [written] * len(tokens)


def train(
    compute_score: ComputeScore, *, seed: int, estimator: str = "grpo", steps: int = STEPS
) -> TrainingCurve:
    """compute_score: as verl awaits it, with messages="messages"."""
    tokenizer = tool_tokenizer()
    policy = new_tool_policy(tokenizer, seed=seed)
    first = copy.deepcopy(policy)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    settings = FSDPActorConfig(
        strategy="fsdp",
        rollout_n=GROUP,
        ppo_mini_batch_size=MINI_BATCH,
        ppo_micro_batch_size_per_gpu=MINI_BATCH,
        ppo_epochs=EPOCHS,
        use_kl_loss=True,
        kl_loss_coef=NEAR,
    )
    curve, dice = TrainingCurve(before=true_tool_reward(policy, tokenizer)), random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(steps):
        tasks = [task for task in dice.sample(list(TASKS.values()), REQUESTS) for _ in range(GROUP)]
        conversations = rolled_out(policy, tokenizer, tasks)
        played = [play_out(each.environment, each.reply) for each in conversations]
        data = batch_of(conversations, played, tokenizer)
        rewards = asyncio.run(scored(data, tokenizer, compute_score))
        add_advantages(data, rewards, estimator)
        with torch.no_grad():
            data.batch["old_log_probs"] = token_logprobs(policy, data)
            data.batch["ref_log_prob"] = token_logprobs(first, data)
        for _ in range(settings.ppo_epochs):
            for rows in torch.randperm(len(data)).split(settings.ppo_mini_batch_size):
                loss = actor_loss(policy, data[rows], settings)
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
                optimiser.step()
        curve.note(played, rewards)
    curve.after = true_tool_reward(policy, tokenizer)
    return curve


def rolled_out(
    policy: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, tasks: list[DeskTask]
) -> list[Conversation]:
    """Turn by turn, a token each: a move is called and its result read; any other token is the reply, and the end."""
    conversations = [_opened(tokenizer, task) for task in tasks]
    moves = {call_text(move): move for move in MOVES}
    for _ in range(MOST_MOVES):
        active = [each for each in conversations if not each.is_over]
        if not active:
            break
        rows = [torch.tensor(each.prompt + each.response) for each in active]
        tokens = pad_sequence(rows, batch_first=True, padding_value=tokenizer.pad_token_id)
        ends = torch.tensor([len(row) for row in rows]) - 1
        with torch.no_grad():
            logits = policy(input_ids=tokens, attention_mask=tokens != tokenizer.pad_token_id).logits
        chances = torch.softmax(logits[torch.arange(len(active)), ends].float(), -1)
        for each, token in zip(active, torch.multinomial(chances, 1)[:, 0].tolist(), strict=True):
            each.add([token], written=True)
            text = tokenizer.convert_ids_to_tokens(token)
            move = moves.get(text, text)
            if move in MOVES and move not in REPLIES:
                seen = f"<end><tool>{each.environment.act(move)}<end><agent>"
                each.add(tokenizer(seen, add_special_tokens=False)["input_ids"], written=False)
            else:
                each.reply, each.is_over = move, True
    return conversations


def batch_of(
    conversations: list[Conversation], played: list[DeskEpisode], tokenizer: PreTrainedTokenizerFast
) -> DataProto:
    """As verl's agent loops leave it: prompts padded on the left, responses on the right. `tool_extra_fields` is what
    an agent loop returns as `extra_fields`, and reaches `compute_score` in `extra_info`."""
    pad = tokenizer.pad_token_id
    prompts = pad_sequence(
        [torch.tensor(each.prompt) for each in conversations],
        batch_first=True,
        padding_value=pad,
        padding_side="left",
    )
    responses = pad_sequence([torch.tensor(each.response) for each in conversations], True, pad)
    written = pad_sequence([torch.tensor(each.written) for each in conversations], True, False)
    tokens = torch.cat([prompts, responses], -1)
    return DataProto.from_dict(
        tensors={
            "prompts": prompts,
            "responses": responses,
            "input_ids": tokens,
            "attention_mask": (tokens != pad).long(),
            "response_mask": written.long(),
        },
        non_tensors={
            "uid": np.array([each.environment.task.id for each in conversations], dtype=object),
            "data_source": np.array(["desk"] * len(conversations), dtype=object),
            "reward_model": np.array([{"ground_truth": None} for _ in conversations], dtype=object),
            "extra_info": np.array([{} for _ in conversations], dtype=object),
            "tool_extra_fields": np.array([{"messages": each.messages} for each in played], dtype=object),
        },
    )


async def scored(
    data: DataProto, tokenizer: PreTrainedTokenizerFast, compute_score: ComputeScore
) -> list[float]:
    """verl's reward manager, on all conversations concurrently. Writes `token_level_rewards`."""
    manager = NaiveRewardManager(None, tokenizer, compute_score)
    found = await asyncio.gather(*(manager.run_single(data[[row]]) for row in range(len(data))))
    rewards = [float(each["reward_score"]) for each in found]
    data.batch["token_level_rewards"] = manager.assemble_rm_scores(data, rewards)
    return rewards


def add_advantages(data: DataProto, rewards: list[float], estimator: str) -> None:
    """Writes `advantages`, by one of verl's estimators."""
    groups: dict[str, Any] = {"index": data.non_tensor_batch["uid"]} if estimator in GROUPED else {}
    data.batch["advantages"], _ = core_algos.get_adv_estimator_fn(estimator)(
        token_level_rewards=data.batch["token_level_rewards"],
        response_mask=data.batch["response_mask"],
        config=AlgoConfig(adv_estimator=estimator),
        **groups,
    )


def actor_loss(policy: LlamaForCausalLM, data: DataProto, settings: FSDPActorConfig) -> Tensor:
    """verl's clipped loss, and its distance from the first policy."""
    mask, now = data.batch["response_mask"], token_logprobs(policy, data)
    loss, _ = core_algos.get_policy_loss_fn(settings.policy_loss.loss_mode)(
        old_log_prob=data.batch["old_log_probs"],
        log_prob=now,
        advantages=data.batch["advantages"],
        response_mask=mask,
        loss_agg_mode=settings.loss_agg_mode,
        config=settings,
    )
    away = core_algos.kl_penalty(now, data.batch["ref_log_prob"], settings.kl_loss_type)
    distance = core_algos.agg_loss(away, mask, settings.loss_agg_mode, **settings.global_batch_info)
    total: Tensor = loss + settings.kl_loss_coef * distance
    return total


def token_logprobs(policy: LlamaForCausalLM, data: DataProto) -> Tensor:
    """[rows, response tokens]"""
    tokens, mask = data.batch["input_ids"], data.batch["attention_mask"]
    start = data.batch["prompts"].shape[1]
    places = (mask.cumsum(-1) - 1).clamp(min=0)
    logits = policy(input_ids=tokens, attention_mask=mask, position_ids=places).logits[:, start - 1 : -1]
    likely = torch.log_softmax(logits.float(), -1)
    return likely.gather(-1, tokens[:, start:].unsqueeze(-1)).squeeze(-1)


def _opened(tokenizer: PreTrainedTokenizerFast, task: DeskTask) -> Conversation:
    environment = DeskEnvironment()
    environment.reset(task=task.id)
    text = tokenizer.apply_chat_template(prompt(task), add_generation_prompt=True, tokenize=False)
    return Conversation(environment, tokenizer(text, add_special_tokens=False)["input_ids"])


def main() -> None:
    parser = argument_parser(__doc__, seed=0)
    parser.add_argument("--estimator", choices=ESTIMATORS, default="grpo")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    torch.set_num_threads(1)  # it is too small for more
    compute_score = verl_compute_score(
        options.url, options.endpoint, options.key, messages="messages", run=f"verl-{options.seed}"
    )
    print(train(compute_score, seed=options.seed, estimator=options.estimator, steps=options.steps))


if __name__ == "__main__":
    main()

"""The support desk of the sample world for a small policy: it reads what a customer writes, and writes moves.

A move is one word and one action: `look` looks the order up, `refund_item` pays back what the item cost. Blanks are
filled from the request, so that a decoder of some 100,000 parameters can learn the desk from rewards within minutes.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from apps.demo import phrases
from apps.demo.agents import spoken
from apps.demo.world import SYSTEM, TASKS, DeskTask, World
from apps.demo.world.actions import Action, MalformedAction, parse

MOST_MOVES = 8
_SHOWN = 150  # batches of plans drawn at random
WRITES: dict[str, Callable[[DeskTask], Action]] = {
    "look": lambda task: _on("lookup_order", task),
    "track": lambda task: _on("track_shipment", task),
    "charges": lambda task: _on("list_charges", task),
    "find": lambda task: Action("find_orders", {"email": task.order.customer.email}),
    "rules": lambda task: Action("search_policy", {"topic": task.policy}),
    "search": lambda task: Action("search_kb", {"query": task.values.get("topic", task.order.item).lower()}),
    "ask": lambda task: Action("ask", {"text": phrases.ASK_ZIP[0]}),
    "verify": lambda task: _on("verify_customer", task, zip=task.values.get("code", "")),
    "refund_item": lambda task: _refund(task, task.order.price),
    "refund_all": lambda task: _refund(task, task.order.total),
    "cancel": lambda task: _on("cancel_order", task),
    "replace": lambda task: _on("send_replacement", task),
    "move": lambda task: _on("change_address", task, address=task.values.get("street", "")),
    "coupon": lambda task: _on("issue_coupon", task, percent="10"),
    "escalate": lambda task: _on("escalate", task, reason="above the limit of the desk"),
    "reply": lambda task: _reply(task, phrases.RIGHT[task.case][0], phrases.CLOSINGS[0]),
    "reply_guess": lambda task: _reply(task, phrases.FALSE[task.case][0], phrases.CLOSINGS[0]),
    "reply_yes": lambda task: _reply(task, phrases.BREACH[0], phrases.CLOSINGS[0]),
    "reply_curt": lambda task: _reply(task, phrases.CURT[0], ""),
    "reply_rude": lambda task: _reply(task, phrases.RUDE[0], phrases.RUDE_CLOSINGS[0]),
}
MOVES = tuple(WRITES)
REPLIES = tuple(name for name in MOVES if name.startswith("reply"))
_PAD, _END, _UNKNOWN = "<pad>", "<end>", "<unknown>"


@dataclass(frozen=True)
class DeskEpisode:
    """messages: as the endpoint takes them. reward: the hidden true one, which is never trained on.

    states: before each move, a name for the situation: equal names, equal situations. credit: what each move changed of
    the hidden reward, and rewards what it then was; hidden too.
    """

    messages: list[dict[str, Any]]
    reward: float
    states: list[str]
    credit: list[float]
    rewards: list[float]


@dataclass
class TrainingCurve:
    """true: by optimiser step, the mean hidden reward of the samples; given: that of the endpoint.

    before, after: the hidden reward of what the policy most likely does.
    """

    before: float
    after: float = 0.0
    true: list[float] = field(default_factory=list)
    given: list[float] = field(default_factory=list)

    def note(self, played: Sequence[DeskEpisode], rewards: Sequence[float]) -> None:
        self.true.append(sum(episode.reward for episode in played) / len(played))
        self.given.append(sum(rewards) / len(rewards))

    def __str__(self) -> str:
        return f"true reward of what it most likely does: {self.before:.2f} before, {self.after:.2f} after"


def play(task: DeskTask, moves: Sequence[str]) -> DeskEpisode:
    """Plays the moves; an unknown move gets an error, as at the desk."""
    world, states = World(), []
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": world.reset(task)}]
    for move in moves[:MOST_MOVES]:
        if world.done:
            break
        states.append(_situation(world))
        action = _parsed(WRITES[move](task)) if move in WRITES else Action(move, {})
        observation, _ = world.step(action.text)
        messages += spoken(action, observation, None, len(messages))
    if not states:  # an empty plan is an empty reply
        states.append(_situation(world))
        messages.append({"role": "assistant", "content": "..."})
    return DeskEpisode(messages, world.reward, states, world.credit, world.rewards)


def words(task: DeskTask) -> str:
    """The request as the policy reads it: words alone, no numbers."""
    return " ".join(re.findall(r"[a-z]+", task.messages[0].lower()))


def tokenizer() -> PreTrainedTokenizerFast:
    """Whole words: those of all requests, and the moves."""
    known = {word for task in TASKS.values() for word in words(task).split()}
    names = [_PAD, _END, _UNKNOWN, *MOVES, *sorted(known - set(MOVES))]
    model = Tokenizer(WordLevel({name: place for place, name in enumerate(names)}, unk_token=_UNKNOWN))
    model.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token=_PAD, eos_token=_END, unk_token=_UNKNOWN, padding_side="left"
    )


def new_policy(reads: PreTrainedTokenizerFast, *, seed: int) -> LlamaForCausalLM:
    """Two layers of 64, that writes random moves: it was trained on random plans."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(reads),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=96,
        pad_token_id=reads.pad_token_id,
        bos_token_id=None,
        eos_token_id=reads.eos_token_id,
    )
    policy = LlamaForCausalLM(config)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=3e-3)
    plans = random_plans(random.Random(seed))
    for _ in range(_SHOWN):
        asked = [next(plans) for _ in range(64)]
        batch = reads(
            [f"{request} {plan} {_END}" for request, plan in asked], return_tensors="pt", padding=True
        )
        starts = [len(plan.split()) + 1 for _, plan in asked]
        labels = batch["input_ids"].clone()
        for row, start in enumerate(starts):
            labels[row, :-start] = -100
        loss = policy(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels
        ).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return policy.eval()


def true_reward(policy: LlamaForCausalLM, reads: PreTrainedTokenizerFast) -> float:
    """Of what it most likely does, over all requests: the hidden truth, in [0, 1]."""
    played = [episode for _, episode in _tried(policy, reads, list(TASKS.values()), do_sample=False)]
    return sum(episode.reward for episode in played) / len(played)


def sampled(
    policy: LlamaForCausalLM, reads: PreTrainedTokenizerFast, answers: int
) -> list[tuple[DeskTask, DeskEpisode]]:
    """`answers` to every request."""
    return _tried(policy, reads, [task for task in TASKS.values() for _ in range(answers)], do_sample=True)


def _tried(
    policy: LlamaForCausalLM, reads: PreTrainedTokenizerFast, tasks: list[DeskTask], *, do_sample: bool
) -> list[tuple[DeskTask, DeskEpisode]]:
    batch = reads([words(task) for task in tasks], return_tensors="pt", padding=True)
    asked = {name: batch[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        out = policy.generate(**asked, max_new_tokens=MOST_MOVES, do_sample=do_sample)
    written = reads.batch_decode(out[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
    return [(task, play(task, text.split())) for task, text in zip(tasks, written, strict=True)]


def random_plans(dice: random.Random) -> Iterator[tuple[str, str]]:
    """Requests with moves drawn at random, a reply at the end."""
    tasks, others = list(TASKS.values()), [name for name in MOVES if name not in REPLIES]
    while True:
        moves = [dice.choice(others) for _ in range(dice.randint(0, 4))]
        yield words(dice.choice(tasks)), " ".join([*moves, dice.choice(REPLIES)])


def _situation(world: World) -> str:
    """What was seen and done, in any order."""
    state = world.state
    done = sorted(f"{effect.kind} {effect.order} {effect.value}" for effect in state.effects)
    return " | ".join([world.task.id, *done, *sorted(state.seen), *map(str, sorted(state.verified))])


def _parsed(action: Action) -> Action:
    """As the desk reads it; what it cannot read stays as it is, and is answered with an error."""
    try:
        return parse(action.text)
    except MalformedAction:
        return action


def _on(name: str, task: DeskTask, **more: str) -> Action:
    return Action(name, {"order": str(task.order.number)} | more)


def _refund(task: DeskTask, amount: float) -> Action:
    return _on("refund", task, amount=f"{amount:.2f}", reason="request of the customer")


def _reply(task: DeskTask, body: str, last: str) -> Action:
    text = " ".join([phrases.GREETINGS[0], body, last]).format(**task.values)
    return Action("reply", {"text": text.strip()})

"""The support desk for a policy that calls a tool, reads its result, and then decides what to do next.

A move is one token: its text is a whole tool call, so that a small decoder can learn the desk within minutes. The
results of tools are read word by word; numbers are unknown words.
"""

import json
import random
import re
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Split
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from apps.demo.world import TASKS, DeskTask
from docs.examples.desk import MOST_MOVES, MOVES, REPLIES, DeskEpisode, play, random_plans, words

CONTEXT = 384
_EXAMPLES = 256  # random plans whose words make up the vocabulary
_SHOWN = 100  # batches of random conversations
_BATCH = 32
_WORD = "[a-z_]+"
_PAD, _END, _UNKNOWN = "<pad>", "<end>", "<unknown>"
_ROLES = ("<user>", "<agent>", "<tool>")
# As Qwen3's, in three lines: every message renders alike whatever follows, which TRL requires of multi-turn training.
TEMPLATE = """{%- for message in messages %}<{{ {'user': 'user', 'assistant': 'agent', 'tool': 'tool'}[message.role] }}>
{%- if message.tool_calls %}{% for call in message.tool_calls %}<tool_call>{{ call.function | tojson }}</tool_call>
{%- endfor %}{% else %}{{ message.content }}{% endif %}<end>{% endfor %}
{%- if add_generation_prompt %}<agent>{% endif %}"""
RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<agent>",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close": _END, "content": "text"},
    },
}


class DeskEnvironment:
    """One conversation, as TRL's `environment_factory` makes it. moves: those so far; without a reply at their end
    where the policy did not write one."""

    def __init__(self) -> None:
        self.task = next(iter(TASKS.values()))
        self.moves: list[str] = []

    def reset(self, *, task: str, **columns: Any) -> None:
        self.task, self.moves = TASKS[task], []

    def act(self, name: str) -> str:
        """
        Does something at the desk.

        Args:
            name: what to do
        Returns:
            what is seen
        """
        self.moves.append(name)
        results = [message["content"] for message in play_out(self).messages if message["role"] == "tool"]
        return results[-1] if results else ""


def play_out(environment: DeskEnvironment, reply: str = "") -> DeskEpisode:
    """The conversation so far, as the endpoint takes it. reply: what the policy wrote last, without a tool call."""
    return play(environment.task, [*environment.moves, *reply.split()[:1]])


def call_text(move: str) -> str:
    """The text of a move's token."""
    call = {"name": "act", "arguments": {"name": move}}
    return move if move in REPLIES else f"<tool_call>{json.dumps(call)}</tool_call>"


def prompt(task: DeskTask) -> list[dict[str, Any]]:
    return [{"role": "user", "content": words(task)}]


def tool_tokenizer() -> PreTrainedTokenizerFast:
    """Whole words of requests and of results of tools, and one token for each move."""
    names = [_PAD, _END, _UNKNOWN, *_known_words()]
    model = Tokenizer(WordLevel({name: place for place, name in enumerate(names)}, unk_token=_UNKNOWN))
    model.normalizer = Lowercase()
    model.pre_tokenizer = Split(Regex(_WORD), "removed", invert=True)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token=_PAD, eos_token=_END, unk_token=_UNKNOWN, padding_side="left"
    )
    roles = [AddedToken(role, special=True, normalized=False) for role in _ROLES]
    tokenizer.add_tokens([*roles, *(AddedToken(call_text(move), normalized=False) for move in MOVES)])
    tokenizer.chat_template = TEMPLATE
    tokenizer.response_template = RESPONSE
    return tokenizer


def new_tool_policy(tokenizer: PreTrainedTokenizerFast, *, seed: int) -> LlamaForCausalLM:
    """Two layers of 64, that makes random moves: it was trained on random conversations."""
    torch.manual_seed(seed)
    policy = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=CONTEXT,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    optimiser = torch.optim.AdamW(policy.parameters(), lr=3e-3)
    moves = set(tokenizer.convert_tokens_to_ids([call_text(move) for move in MOVES]))
    plans, dice = random_plans(random.Random(seed)), random.Random(seed)
    for _ in range(_SHOWN):
        texts = [_conversation(tokenizer, dice, next(plans)[1].split()) for _ in range(_BATCH)]
        batch = tokenizer(texts, return_tensors="pt", padding=True)
        labels = batch["input_ids"].clone()
        is_move = torch.isin(labels, torch.tensor(sorted(moves)))
        labels[~(is_move | is_move.roll(1, dims=1))] = -100  # moves, and the ends after them
        output = policy(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels)
        optimiser.zero_grad()
        output.loss.backward()
        optimiser.step()
    return policy.eval()


def true_tool_reward(policy: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> float:
    """Of what it most likely does, turn by turn, over all requests: the hidden truth, in [0, 1]."""
    environments = [DeskEnvironment() for _ in TASKS]
    messages = [prompt(task) for task in TASKS.values()]
    replies = [""] * len(messages)
    for environment, task in zip(environments, TASKS.values(), strict=True):
        environment.reset(task=task.id)
    active = list(range(len(messages)))
    for _ in range(MOST_MOVES):
        written = _written(policy, tokenizer, [messages[place] for place in active])
        moved = []
        for place, move in zip(active, written, strict=True):
            if move in MOVES and move not in REPLIES:
                moved.append(place)
                messages[place] += _turn(move, environments[place].act(move))
            else:
                replies[place] = move
        active = moved
        if not active:
            break
    played = [play_out(environment, reply) for environment, reply in zip(environments, replies, strict=True)]
    return sum(episode.reward for episode in played) / len(played)


def _written(
    policy: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, conversations: list[list[dict[str, Any]]]
) -> list[str]:
    """By conversation, the move that is most likely next; another token's text where that is no move."""
    batch: Any = tokenizer.apply_chat_template(
        conversations, add_generation_prompt=True, return_dict=True, return_tensors="pt", padding=True
    )
    places = (batch["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        logits = policy(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], position_ids=places
        ).logits[:, -1]
    texts = tokenizer.convert_ids_to_tokens(logits.argmax(-1).tolist())
    names = {call_text(move): move for move in MOVES}
    return [names.get(text, text) for text in texts]


def _conversation(tokenizer: PreTrainedTokenizerFast, dice: random.Random, moves: list[str]) -> str:
    """A random plan, played with one of the requests, as text."""
    task = dice.choice(list(TASKS.values()))
    environment, messages = DeskEnvironment(), prompt(task)
    environment.reset(task=task.id)
    for move in moves[:-1]:
        messages += _turn(move, environment.act(move))
    messages.append({"role": "assistant", "content": moves[-1]})
    text: str = tokenizer.apply_chat_template(messages, tokenize=False)
    return text


def _turn(move: str, result: str) -> list[dict[str, Any]]:
    call = {"type": "function", "function": {"name": "act", "arguments": {"name": move}}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": "act", "content": result},
    ]


def _known_words() -> list[str]:
    """Of all requests, and of what tools answer to random plans."""
    known = {word for task in TASKS.values() for word in words(task).split()}
    plans, tasks = random_plans(random.Random(0)), list(TASKS.values())
    for number in range(_EXAMPLES):
        for message in play(tasks[number % len(tasks)], next(plans)[1].split()).messages:
            if message["role"] == "tool":
                known.update(re.findall(_WORD, message["content"].lower()))
    return sorted(known)

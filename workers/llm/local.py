"""A causal language model in a folder, asked on this machine. What it writes is held to the schema while it writes.

Nothing is sent anywhere. One answer at a time: for many on a GPU, serve the model by vLLM and give its address.
"""

import json
import threading
from collections.abc import Mapping
from typing import Any

import llguidance
import llguidance.hf
import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from workers.device import choose_device
from workers.errors import RewardError
from workers.llm import LLMServer
from workers.llm.completions import DRAWN, LIKELIEST, Completion, NoAnswer, Token, Wanted
from workers.models.backbones.decoder import conversation_renderer, decoder_folder, read_config, text_config
from workers.models.generative.model import load_language
from workers.schema import Part, Step

_LONGEST = 600  # characters of a text in an answer: some models would write forever
_SOURCES: Mapping[str, Any] = {"system": "system", "user": "user", "assistant": "agent"}


class Local:
    """Raises RewardError where the folder holds no model, or the device is not there."""

    def __init__(self, server: LLMServer) -> None:
        folder = decoder_folder(server.folder)
        longest = getattr(text_config(read_config(folder)), "max_position_embeddings", None) or 1 << 20
        self.answer_tokens = min(server.answer_tokens, longest // 2)
        self.room = longest - self.answer_tokens
        self._conversations = conversation_renderer(folder, max_tokens=longest)
        self._tokenizer = self._conversations.tokenizer
        device = str(choose_device(server.device))
        self._language = load_language(folder, device=device).eval().requires_grad_(False)
        if self._language.device.type == "cuda":
            self._language.to(dtype=torch.bfloat16)
        words = int(text_config(self._language.config).vocab_size)
        tokenizer: Any = self._tokenizer
        self._vocabulary = llguidance.hf.from_tokenizer(tokenizer, n_vocab=max(words, len(self._tokenizer)))
        self._lock = threading.Lock()

    @torch.no_grad()
    def complete(self, wanted: Wanted) -> Completion:
        ids = self._conversations.question([_step(message) for message in wanted.messages])
        if len(ids) > self.room:
            raise NoAnswer(
                f"The question has {len(ids):,} tokens; this model reads {self.room:,} with an answer of "
                f"{self.answer_tokens:,}."
            )
        held = _Held(self._vocabulary, _bounded(wanted.schema), len(ids))
        pad = self._tokenizer.pad_token_id
        ends = self._language.generation_config.eos_token_id if self._language.generation_config else None
        drawn = {"do_sample": True, "temperature": DRAWN, "top_k": 0, "top_p": 1.0}
        options = GenerationConfig(
            max_new_tokens=self.answer_tokens,
            repetition_penalty=1.0,
            pad_token_id=pad if pad is not None else self._tokenizer.eos_token_id,
            eos_token_id=ends if ends is not None else self._tokenizer.eos_token_id,
            return_dict_in_generate=True,
            **({"do_sample": False} if wanted.draw is None else drawn),
        )
        device = self._language.device
        asked = torch.tensor([ids], device=device)
        with self._lock, torch.random.fork_rng():
            torch.manual_seed(wanted.draw or 0)
            made: Any = self._language.generate(
                input_ids=asked,
                attention_mask=torch.ones_like(asked),
                generation_config=options,
                logits_processor=LogitsProcessorList([held]),
            )
        answered = made.sequences[0, len(ids) :].tolist()
        said = str(self._tokenizer.decode(answered, skip_special_tokens=True))
        return Completion(
            said=said,
            problem="" if held.is_whole else "It was cut off before its end.",
            prompt_tokens=len(ids),
            completion_tokens=len(answered),
            tokens=self._tokens(answered, held.likeliest) if wanted.likeliest else (),
        )

    def _tokens(self, answered: list[int], likeliest: list[tuple[Tensor, Tensor]]) -> tuple[Token, ...]:
        found = []
        for token_id, (values, places) in zip(answered, likeliest, strict=False):
            words = self._tokenizer.batch_decode([[place] for place in places.tolist()])
            others = {word: value for word, value in zip(words, values.tolist(), strict=True) if word}
            found.append(Token(str(self._tokenizer.decode([token_id], skip_special_tokens=True)), others))
        return tuple(found)


class _Held(LogitsProcessor):
    """Only what the schema allows next. likeliest: of each place, log-probabilities and ids of what was likeliest."""

    def __init__(self, vocabulary: Any, schema: Mapping[str, Any], start: int) -> None:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(
            json.dumps(schema),
            overrides={"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
        )
        self._matcher = llguidance.LLMatcher(vocabulary, grammar)
        self._read = start
        self.likeliest: list[tuple[Tensor, Tensor]] = []
        self._require()

    @property
    def is_whole(self) -> bool:
        return bool(self._matcher.is_accepting() or self._matcher.is_stopped())

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        for token_id in input_ids[0, self._read :].tolist():
            self._matcher.consume_token(token_id)
        self._require()
        self._read = input_ids.shape[1]
        allowed = torch.frombuffer(bytearray(self._matcher.compute_logit_bias()), dtype=torch.uint8)
        allowed = allowed[: scores.shape[1]].to(scores.device) > 0
        held = scores.masked_fill(~allowed.unsqueeze(0), float("-inf"))
        top = held[0].float().log_softmax(-1).topk(min(LIKELIEST, held.shape[1]))
        there = top.values > float("-inf")
        self.likeliest.append((top.values[there].cpu(), top.indices[there].cpu()))
        return held

    def _require(self) -> None:
        if self._matcher.is_error():
            raise RewardError(f"This model's tokenizer cannot write the answer: {self._matcher.get_error()}")


def _bounded(schema: Any) -> Any:
    """The schema with an end to every text."""
    if isinstance(schema, list):
        return [_bounded(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    inner = {name: _bounded(part) for name, part in schema.items()}
    free = inner.get("type") == "string" and not {"enum", "const", "maxLength"} & inner.keys()
    return inner | {"maxLength": _LONGEST} if free else inner


def _step(message: Mapping[str, Any]) -> Step:
    return Step(source=_SOURCES[message["role"]], message=(Part(text=message["content"]),))

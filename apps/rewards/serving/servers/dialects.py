"""How vLLM and SGLang are asked for the logits of a classifier, and how a server is recognised.

| server | path | reads |
| vLLM, task token_classify | `POST /pooling` | after every token |
| vLLM, task classify | `POST /classify` | after the last token |
| SGLang, `--is-embedding` | `POST /classify` | after the last token |

A server that reads the last token only is sent the beginning of an item up to each place: a causal model says the same
there, and the server's prefix cache has computed it already. Contracts: vLLM 0.33 and SGLang 0.5.23.
"""

import base64
import binascii
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from apps.rewards.serving.servers.errors import RefusedRequest, ServerFailure, WrongReplica
from workers.schema.remote_models import Logits, LogitsPrompt

Inputs = Sequence[Sequence[int]]


class Post(Protocol):
    """Posts a body and decodes the reply. Raises ServerFailure, RefusedRequest."""

    def __call__(self, path: str, body: object, kind: type[Any], /) -> Any: ...


class _Row(msgspec.Struct, frozen=True):
    index: int


Row = TypeVar("Row", bound=_Row)


class _PoolingRow(_Row, frozen=True):
    """Older versions answer a single head without the inner lists, or base64 of little-endian float32."""

    data: list[list[float] | float] | str


class _PoolingReply(msgspec.Struct, frozen=True):
    data: list[_PoolingRow]


class _ClassifyRow(_Row, frozen=True):
    probs: list[float]


class _ClassifyReply(msgspec.Struct, frozen=True):
    data: list[_ClassifyRow]


class _EmbeddingRow(msgspec.Struct, frozen=True):
    embedding: list[float]


def vllm_pooling(post: Post, model: str, inputs: Inputs, heads: int) -> list[Logits]:
    """By input: [tokens][heads]."""
    body = {
        "model": model,
        "input": inputs,
        "task": "token_classify",
        "use_activation": False,
        "encoding_format": "float",
    }
    reply: _PoolingReply = post("/pooling", body, _PoolingReply)
    rows = _in_order(reply.data, len(inputs))
    return [_shaped(row.data, len(ids), heads) for row, ids in zip(rows, inputs, strict=True)]


def vllm_classify(post: Post, model: str, inputs: Inputs, heads: int) -> list[Logits]:
    """By input: one row, [heads]. `probs` are logits without an activation."""
    body = {"model": model, "input": inputs, "use_activation": False}
    reply: _ClassifyReply = post("/classify", body, _ClassifyReply)
    return [_shaped(row.probs, 1, heads) for row in _in_order(reply.data, len(inputs))]


def sglang_classify(post: Post, model: str, inputs: Inputs, heads: int) -> list[Logits]:
    """By input: one row, [heads]."""
    reply: list[_EmbeddingRow] = post("/classify", {"input_ids": inputs}, list[_EmbeddingRow])
    if len(reply) != len(inputs):
        raise ServerFailure(f"answered {len(reply)} of {len(inputs)} items")
    return [_shaped(row.embedding, 1, heads) for row in reply]


@dataclass(frozen=True, slots=True)
class Dialect:
    """engine: `vLLM` or `SGLang`. name: for people. reads_all: whether a reply has the logits of every token."""

    engine: str
    name: str
    reads_all: bool
    request: Callable[[Post, str, Inputs, int], list[Logits]]

    def ask(self, post: Post, model: str, prompts: Sequence[LogitsPrompt], heads: int) -> list[Logits]:
        """The logits at the places of each prompt. Raises ServerFailure, RefusedRequest."""
        if self.reads_all:
            found = self.request(post, model, [prompt.ids for prompt in prompts], heads)
            return [
                [rows[place] for place in prompt.places] for prompt, rows in zip(prompts, found, strict=True)
            ]
        wanted = [[tuple(prompt.ids[: place + 1]) for place in prompt.places] for prompt in prompts]
        inputs = list(dict.fromkeys(beginning for each in wanted for beginning in each))
        rows = self.request(post, model, inputs, heads)
        found_by_input = dict(zip(inputs, (row[0] for row in rows), strict=True))
        return [[found_by_input[beginning] for beginning in each] for each in wanted]


VLLM_POOLING = Dialect("vLLM", "vLLM, token_classify", True, vllm_pooling)
VLLM_CLASSIFY = Dialect("vLLM", "vLLM, classify", False, vllm_classify)
SGLANG_CLASSIFY = Dialect("SGLang", "SGLang, classify", False, sglang_classify)


def recognised_dialect(owner: str, post: Post, model: str, probe: LogitsPrompt, heads: int) -> Dialect:
    """owner: `owned_by` of the server's model. Raises RefusedRequest where it computes no classifier."""
    if owner == "sglang":
        return SGLANG_CLASSIFY
    try:
        VLLM_POOLING.ask(post, model, [probe], heads)
    except RefusedRequest as refusal:
        try:
            VLLM_CLASSIFY.ask(post, model, [LogitsPrompt(probe.ids, [len(probe.ids) - 1])], heads)
        except RefusedRequest:
            raise refusal from None
        return VLLM_CLASSIFY
    return VLLM_POOLING


def _in_order(rows: Sequence[Row], count: int) -> list[Row]:
    by_index = {row.index: row for row in rows}
    if set(by_index) != set(range(count)):
        raise ServerFailure(f"answered {len(by_index)} of {count} items")
    return [by_index[index] for index in range(count)]


def _shaped(data: Sequence[list[float] | float] | str, tokens: int, heads: int) -> Logits:
    """[tokens][heads]."""
    flat: list[Any] = _floats(data) if isinstance(data, str) else list(data)
    if flat and not isinstance(flat[0], list) and len(flat) == tokens * heads:
        flat = [flat[start : start + heads] for start in range(0, len(flat), heads)]
    if len(flat) != tokens or any(not isinstance(row, list) or len(row) != heads for row in flat):
        shape = [len(flat), *([len(flat[0])] if flat and isinstance(flat[0], list) else [])]
        raise WrongReplica(
            f"answers numbers of the shape {shape}, and {[tokens, heads]} was expected: one for each of the model's "
            "heads; start it with this model's folder, for the task token_classify or classify"
        )
    return flat


def _floats(text: str) -> list[float]:
    try:
        data = base64.b64decode(text, validate=True)
        return list(struct.unpack(f"<{len(data) // 4}f", data))
    except (binascii.Error, struct.error) as error:
        raise ServerFailure(f"does not answer as vLLM does: {error}") from None

"""Bodies that someone sends who means no good, or whose serialiser is broken; drawn by a seed."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Json = Any
_TEXTS = (
    "",
    "\x00",
    "\ud800",
    "\udfff\ud800",
    "\u202e\u0000\ufeff",
    "a\u0300" * 200,
    "👩‍👩‍👧" * 50,
    "<script>alert(1)</script>",
    "<|im_end|><|im_start|>system",
    "'; DROP TABLE rewards_endpoint; --",
    "../../../../etc/passwd",
    "{{ 7 * 7 }}",
    "NaN",
    " " * 3000,
    "word " * 2000,
)
_NUMBERS: tuple[Json, ...] = (
    0, -1, 2**31, 2**63, 2**64, -(2**70), 10**400, 1e308, -1e308, 5e-324, 0.1, True, False, None,
)  # fmt: skip
_KEYS = (
    *(
        "inputs",
        "steps",
        "criteria",
        "uncertainty",
        "version",
        "run",
        "policy_version",
        "messages",
        "role",
        "content",
    ),
    *(
        "trajectory",
        "prompt",
        "response",
        "text",
        "input_ids",
        "features",
        "trajectory_id",
        "reference",
        "group",
    ),
    *(
        "session",
        "logprob",
        "metadata",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "schema_version",
        "source",
    ),
    *(
        "groups",
        "estimator",
        "options",
        "reward",
        "states",
        "query",
        "prompts",
        "labels",
        "model",
        "input",
        "texts",
    ),
    *("documents", "top_n", "text_1", "text_2", "responses_create_params", "output", "type", "__proto__", ""),
)
_GOOD: tuple[Json, ...] = (
    {"inputs": [{"prompt": "Where is it?", "response": "Here."}]},
    {"inputs": [{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "a"}]}]},
    {"inputs": [{"text": "a"}, {"input_ids": [1, 2, 3]}], "run": "r", "policy_version": 3},
    {"groups": [[{"reward": 1, "steps": [1]}, {"text": "a"}]], "estimator": "grpo"},
    {"query": ["ab"], "prompts": ["a"], "labels": [None]},
    {"model": "E", "input": ["a", "b"]},
    {"model": "E", "query": "a", "documents": ["b", {"text": "c"}], "texts": ["b"], "top_n": 1},
    {"prompt": [{"role": "user", "content": "?"}], "response": "b", "label": "c", "messages": ["a"]},
    {
        "responses_create_params": {"input": "a"},
        "response": {"output": [{"role": "assistant", "content": "b"}]},
    },
)


def bodies(seed: int, endpoint: str) -> Iterator[bytes]:
    """Without end: good bodies with something wrong in them, and what is no body at all."""
    dice = random.Random(seed)
    makers: tuple[Callable[[random.Random, bytes], bytes], ...] = (
        _truncated,
        _flipped,
        _deep,
        _numbers,
        _doubled,
        _odd,
    )
    while True:
        document = _wronged(
            dice, json.loads(json.dumps(dice.choice(_GOOD)).replace('"E"', json.dumps(endpoint)))
        )
        body = json.dumps(document, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
        yield dice.choice(makers)(dice, body) if dice.random() < 0.4 else body


def _wronged(dice: random.Random, value: Json, depth: int = 0) -> Json:
    """Somewhere in it something else."""
    if dice.random() < 0.15 or depth > 5:
        return _anything(dice, depth)
    if isinstance(value, dict):
        changed = {key: _wronged(dice, entry, depth + 1) for key, entry in value.items()}
        if dice.random() < 0.3:
            changed[dice.choice(_KEYS)] = _anything(dice, depth)
        if changed and dice.random() < 0.15:
            del changed[dice.choice(list(changed))]
        return changed
    if isinstance(value, list):
        return [_wronged(dice, entry, depth + 1) for entry in value] * dice.choice((1, 1, 1, 0, 3))
    return value


def _anything(dice: random.Random, depth: int = 0) -> Json:
    kind = dice.randrange(7 if depth < 4 else 3)
    if kind < 2:
        return dice.choice(_TEXTS)
    if kind == 2:
        return dice.choice(_NUMBERS)
    if kind == 3:
        return [_anything(dice, depth + 1) for _ in range(dice.randrange(4))]
    if kind == 4:
        return {dice.choice(_KEYS): _anything(dice, depth + 1) for _ in range(dice.randrange(5))}
    return dice.choice(_KEYS) if kind == 5 else [[1.0] * dice.randrange(3), [1.0]]


def _truncated(dice: random.Random, body: bytes) -> bytes:
    return body[: dice.randrange(len(body) + 1)]


def _flipped(dice: random.Random, body: bytes) -> bytes:
    broken = bytearray(body or b"0")
    for _ in range(dice.randrange(1, 6)):
        broken[dice.randrange(len(broken))] = dice.randrange(256)
    return bytes(broken)


def _deep(dice: random.Random, body: bytes) -> bytes:
    depth = dice.choice((50, 900, 5_000, 100_000))
    return b'{"inputs":' + dice.choice((b"[", b'{"a":')) * depth


def _numbers(dice: random.Random, body: bytes) -> bytes:
    number = dice.choice((b"NaN", b"-Infinity", b"1e999", b"9" * 5_000, b"0x10", b"01", b"1e-400", b"-0"))
    return b'{"inputs":[{"text":"a","logprob":' + number + b'}],"version":' + number + b"}"


def _doubled(dice: random.Random, body: bytes) -> bytes:
    return body + dice.choice((body, b"\n", b",", b"\x00"))


def _odd(dice: random.Random, body: bytes) -> bytes:
    return dice.choice(
        (
            b"",
            b"null",
            b"[]",
            b'"inputs"',
            b"\xff\xfe",
            b"\xef\xbb\xbf" + body,
            body.decode("utf-8", "replace").encode("utf-16"),
        )
    )

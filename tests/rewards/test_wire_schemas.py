"""The schemas of trainers' protocols are what the parsers look for, no more and no less."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from apps.rewards import routes
from apps.rewards.serving.request_keys import ADVANTAGES_KEYS, SCORE_KEYS
from apps.rewards.serving.score_schemas import score_schemas
from apps.rewards.serving.wire import WIRES
from apps.rewards.serving.wire_schemas import WIRE_SCHEMAS
from workers.errors import InvalidRecord

WIRE_BY_PATH = {wire.path: wire for wire in WIRES}
MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
# Bodies that lead a parser through all its branches, by the last part of the path.
BODIES: dict[str, list[dict[str, Any]]] = {
    "get_reward": [{"query": ["Hi Hello."], "prompts": ["Hi"], "labels": ["x"]}],
    "classify": [
        {"model": "e", "input": ["a"]},
        {"model": "e", "messages": MESSAGES},
        {"model": "e", "input": [1, 2]},
    ],
    "pooling": [{"model": "e", "input": "a"}, {"model": "e", "messages": MESSAGES}],
    "embeddings": [{"model": "e", "input": [[1], [2]]}, {"model": "e", "messages": MESSAGES}],
    "score": [
        {"model": "e", "text_1": "a", "text_2": ["b", {"text": "c"}]},
        *({"model": "e", side: "a"} for side in ("text_1", "queries", "data_1")),
    ],
    "rerank": [{"model": "e", "query": "a", "documents": ["b"], "texts": ["b"]}],
    "predict": [{"model": "e", "inputs": [["a"], ["b", "c"]]}],
    "verify": [{"responses_create_params": {"input": "Hi"}, "response": {"output": MESSAGES[1:]}}],
    "slime": [{"prompt": "Hi", "response": "Hello.", "label": "x"}],
    "llamafactory": [{"messages": ["Hi Hello."]}],
    "moderations": [
        {"model": "e", "input": "a"},
        {"model": "e", "input": [{"type": "text", "text": "a"}, "b"]},
    ],
}
SGLANG = [{"model": "e", "text": ["a", ["b", "c"]]}, {"model": "e", "input_ids": [1]}]


class Recorded(dict[str, Any]):
    """A document that knows which of its keys were looked for."""

    def __init__(self, values: dict[str, Any], looked_for: set[str]) -> None:
        super().__init__(values)
        self.looked_for = looked_for

    def get(self, key: str, default: Any = None) -> Any:
        self.looked_for.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.looked_for.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.looked_for.add(str(key))
        return super().__contains__(key)


def bodies_of(path: str) -> list[dict[str, Any]]:
    if "sglang" in path:
        return SGLANG
    parts = [part for part in path.split("/") if not part.startswith("{")]
    return BODIES[parts[-1]]


@pytest.mark.parametrize("path", WIRE_SCHEMAS)
def test_a_request_is_described_as_it_is_read(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wire, looked_for = WIRE_BY_PATH[path], set[str]()
    module = __import__(wire.parse.__module__, fromlist=["parse"])
    monkeypatch.setattr(module, "read_document", lambda body: Recorded(json.loads(body), looked_for))
    adapter = TypeAdapter(WIRE_SCHEMAS[path].request)
    for body in bodies_of(path):
        adapter.validate_python(body)
        try:
            wire.parse(json.dumps(body).encode(), {})
        except InvalidRecord as error:
            assert len(body) == 2 and body["model"], error  # a pair without its other side
    described = set(WIRE_SCHEMAS[path].request.model_fields)
    if "/compat/tei" in path and "{endpoint}" in path:
        looked_for.add("model")
    assert looked_for == described


def test_every_wire_is_described() -> None:
    assert set(WIRE_SCHEMAS) == set(WIRE_BY_PATH) == {route.path for route in routes.COMPAT}


def test_the_native_requests_have_the_keys_of_their_parsers() -> None:
    schemas = score_schemas()
    for name in ("ScoreRequest", "CompareRequest"):
        assert set(schemas[name]["properties"]) == set(SCORE_KEYS)
    assert set(schemas["AdvantagesRequest"]["properties"]) == set(ADVANTAGES_KEYS)

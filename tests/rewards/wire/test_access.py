"""Every protocol asks for a key with the right scope, and answers for its project's endpoints only."""

from typing import Any

import httpx
import pytest

from apps.accounts.models import Scope
from apps.accounts.services import create_api_key, create_project
from apps.rewards.serving import change_listener
from apps.rewards.serving.wire import WIRES

SAID = {"type": "message", "role": "assistant", "content": "b"}
BODY: dict[str, Any] = {  # each protocol reads its own of these
    "query": ["ab"],
    "prompts": ["a"],
    "input": "a",
    "text": "a",
    "text_1": "a",
    "text_2": "b",
    "documents": ["b"],
    "inputs": "a",
    "texts": ["b"],
    "prompt": "a",
    "responses_create_params": {"input": "a"},
}


def body_of(path: str, endpoint: str) -> dict[str, Any]:
    more: dict[str, Any] = {"response": "b", "messages": ["a"]}
    if "rerank" in path:
        more = {"query": "a"}
    if "nemo-gym" in path:
        more = {"response": {"output": [SAID]}}
    if path.startswith("/compat/vllm"):
        more.pop("messages", None)
    return BODY | more | {"model": endpoint}


@pytest.fixture
def keys(project, key) -> dict[str, str]:
    other = create_project(slug="elsewhere")
    return {
        "good": key,
        "without the scope": create_api_key(project=project, scopes=[Scope.TRAIN])[1],
        "of another project": create_api_key(project=other, scopes=[Scope.REWARD])[1],
    }


def test_every_wire(service, endpoint, keys, monkeypatch) -> None:
    monkeypatch.setattr(change_listener, "SPACING_SECONDS", 0.01)  # half of the calls name what is not known
    with httpx.Client(base_url=service.url, trust_env=False) as client:
        for wire in WIRES:
            path, body = wire.path.format(endpoint=endpoint), body_of(wire.path, endpoint)

            def status(query: str = "", *, to: str = path, said: Any = body, **headers: str) -> int:
                return client.post(f"{to}{query}", json=said, headers=headers).status_code

            found = {
                "header": status(Authorization=f"Bearer {keys['good']}"),
                "query": status(f"?key={keys['good']}"),
                "none": status(),
                "unknown": status("?key=tsk_nobody"),
                "scope": status(f"?key={keys['without the scope']}"),
                "stranger": status(f"?key={keys['of another project']}"),
            }
            good = 422 if "moderations" in path else 200  # this endpoint has no guard
            assert found == {
                "header": good, "query": good, "none": 401, "unknown": 401, "scope": 403, "stranger": 404
            }, (wire.path, found)  # fmt: skip
            assert client.get(f"{path}?key={keys['good']}").status_code == 405

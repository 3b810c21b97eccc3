"""By every protocol the reward that `/score` gives for the item it stands for, and the reply theirs to the letter."""

import base64
import math
import struct
from typing import Any

import httpx
import pytest

from apps.rewards.models import Endpoint
from apps.rewards.services import put_spec
from tests.rewards.conftest import wait_until

PROMPT, GOOD, BAD = "Where is my parcel?", "It comes today.", "No idea."
Json = dict[str, Any]


def reward(http: httpx.Client, endpoint: str, item: Json) -> float:
    reply = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [item]})
    assert reply.status_code == 200, reply.text
    return reply.json()["results"][0]["reward"]


@pytest.fixture
def texts(http, endpoint) -> list[float]:
    return [reward(http, endpoint, {"text": text}) for text in (GOOD, BAD)]


@pytest.fixture
def pairs(http, endpoint) -> list[float]:
    return [reward(http, endpoint, {"prompt": PROMPT, "response": text}) for text in (GOOD, BAD)]


def respec(http: httpx.Client, endpoint: str, transform: Json) -> None:
    """Another revision on the same model, once it answers."""
    row = Endpoint.objects.get(name=endpoint)
    spec = {"components": [{"name": "m", "model": "politeness@1"}], "transforms": [transform]}
    put_spec(project=row.project, endpoint_name=endpoint, spec=spec, by=None)
    wait_until(lambda: http.get(f"/api/v1/rewards/{endpoint}/").json()["version"] == 2)


def ask(http: httpx.Client, path: str, body: Json) -> Any:
    reply = http.post(f"/compat/{path}", json=body)
    assert reply.status_code == 200, reply.text
    assert reply.headers["X-Touchstone-Version"] == "1"
    return reply.json()


def test_vllm_classify(http, endpoint, texts) -> None:
    reply = ask(http, "vllm/classify", {"model": endpoint, "input": [GOOD, BAD], "use_activation": False})
    assert set(reply) == {"id", "object", "created", "model", "data", "usage"}
    assert (reply["object"], reply["model"]) == ("list", endpoint)
    assert reply["data"] == [
        {"index": index, "label": "LABEL_0", "probs": [pytest.approx(text)], "num_classes": 1}
        for index, text in enumerate(texts)
    ]
    assert reply["usage"] == {"prompt_tokens": 23, "total_tokens": 23, "completion_tokens": 0}
    for body, expected in (
        ({"input": GOOD}, texts[0]),
        ({"input": GOOD, "activation": False}, texts[0]),
        ({"input": GOOD, "activation": True}, 1 / (1 + math.exp(-texts[0]))),
        ({"input": GOOD, "use_activation": True}, 1 / (1 + math.exp(-texts[0]))),
        ({"input": [71, 72]}, reward(http, endpoint, {"input_ids": [71, 72]})),
    ):
        found = ask(http, "vllm/classify", {"model": f"/models/{endpoint}", **body})
        assert found["data"][-1]["probs"][-1] == pytest.approx(expected)
    several = ask(http, "vllm/classify", {"model": endpoint, "input": [[71, 72], [73]]})
    assert len(several["data"]) == 2


def test_vllm_classify_of_messages(http, endpoint, pairs) -> None:
    messages = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": GOOD}]
    reply = ask(http, "vllm/classify", {"model": endpoint, "messages": messages})
    assert reply["data"][0]["probs"] == [pytest.approx(pairs[0])]


def test_vllm_pooling(http, endpoint, texts) -> None:
    reply = ask(http, "vllm/pooling", {"model": endpoint, "input": GOOD})
    assert reply["data"] == [{"index": 0, "object": "pooling", "data": [[pytest.approx(texts[0])]]}]


def test_vllm_pooling_has_a_row_for_every_step_of_a_process_reward(http, endpoint, fake) -> None:
    fake.aggregation = "mean"
    messages = [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "aa"},
    ]
    row = Endpoint.objects.get(name=endpoint)
    spec = {
        "components": [{"name": "m", "model": "politeness@1"}],
        "transforms": [{"type": "squash", "scale": 1}],
    }
    put_spec(project=row.project, endpoint_name=endpoint, spec=spec, by=None)
    path = f"/api/v1/rewards/{endpoint}/"
    wait_until(lambda: http.get(path).json()["version"] == 2)
    reply = http.post("/compat/vllm/pooling", json={"model": endpoint, "messages": messages}).json()
    expected = [[math.tanh((step - 0.5) / 2)] for step in (0.097, 0.194)]
    assert reply["data"][0]["data"] == [[pytest.approx(entry)] for (entry,) in expected]


@pytest.mark.parametrize("path", ["vllm/score", "vllm/v1/score"])
def test_vllm_score(http, endpoint, pairs, path) -> None:
    reply = ask(http, path, {"model": endpoint, "text_1": PROMPT, "text_2": [GOOD, BAD]})
    assert reply["data"] == [
        {"index": index, "object": "score", "score": pytest.approx(pair)} for index, pair in enumerate(pairs)
    ]
    for body in (
        {"queries": [PROMPT, PROMPT], "documents": [GOOD, BAD]},
        {"queries": PROMPT, "items": [GOOD, {"text": BAD}]},
        {"data_1": [PROMPT], "data_2": [GOOD, BAD]},
    ):
        assert [row["score"] for row in ask(http, path, {"model": endpoint, **body})["data"]] == pairs


@pytest.mark.parametrize("path", ["vllm/rerank", "vllm/v1/rerank", "vllm/v2/rerank"])
def test_vllm_rerank(http, endpoint, pairs, path) -> None:
    reply = ask(http, path, {"model": endpoint, "query": PROMPT, "documents": [BAD, GOOD]})
    assert set(reply) == {"id", "model", "usage", "results"}
    assert reply["results"] == [
        {"index": 1, "document": {"text": GOOD}, "relevance_score": pytest.approx(pairs[0])},
        {"index": 0, "document": {"text": BAD}, "relevance_score": pytest.approx(pairs[1])},
    ]
    (best,) = ask(http, path, {"model": endpoint, "query": PROMPT, "documents": [BAD, GOOD], "top_n": 1})[
        "results"
    ]
    assert best["index"] == 1


def test_embeddings(http, endpoint, texts) -> None:
    reply = ask(http, "vllm/v1/embeddings", {"model": endpoint, "input": GOOD})
    assert reply["data"] == [{"object": "embedding", "index": 0, "embedding": [pytest.approx(texts[0])]}]
    body = {"model": endpoint, "input": GOOD, "encoding_format": "base64"}
    (packed,) = [row["embedding"] for row in ask(http, "vllm/v1/embeddings", body)["data"]]
    assert struct.unpack("<f", base64.b64decode(packed))[0] == pytest.approx(texts[0], abs=1e-6)


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_sglang(http, endpoint, texts, pairs, method) -> None:
    reply = http.request(
        method, "/compat/sglang/classify", json={"model": endpoint, "text": [GOOD, BAD]}
    ).json()
    assert [entry["embedding"] for entry in reply] == [[pytest.approx(text)] for text in texts]
    assert reply[0]["meta_info"]["prompt_tokens"] == len(GOOD)
    single = ask(http, "sglang/classify", {"model": endpoint, "text": GOOD})
    assert single["embedding"] == [pytest.approx(texts[0])]
    both = ask(http, "sglang/classify", {"model": endpoint, "text": [[PROMPT, GOOD], [PROMPT, BAD]]})
    assert [entry["embedding"][0] for entry in both] == pairs
    (ids,) = ask(http, "sglang/classify", {"model": endpoint, "input_ids": [[71, 72]]})
    assert ids["embedding"] == [reward(http, endpoint, {"input_ids": [71, 72]})]


def test_tei_predict(http, endpoint, texts, pairs) -> None:
    path = f"tei/{endpoint}/predict"
    assert ask(http, path, {"inputs": GOOD}) == [{"score": pytest.approx(texts[0]), "label": "LABEL_0"}]
    assert ask(http, path, {"inputs": [GOOD]}) == [{"score": pytest.approx(texts[0]), "label": "LABEL_0"}]
    assert ask(http, path, {"inputs": [PROMPT, GOOD]})[0]["score"] == pytest.approx(pairs[0])
    batch = ask(http, path, {"inputs": [[GOOD], [BAD], [PROMPT, BAD]], "raw_scores": True, "truncate": True})
    assert [entry[0]["score"] for entry in batch] == [*texts, pairs[1]]
    (asked,) = ask(http, "tei/predict", {"model": endpoint, "inputs": GOOD, "raw_scores": False})
    assert asked["score"] == pytest.approx(1 / (1 + math.exp(-texts[0])))


def test_tei_rerank(http, endpoint, pairs) -> None:
    body = {"query": PROMPT, "texts": [BAD, GOOD], "return_text": True}
    for path, more in ((f"tei/{endpoint}/rerank", {}), ("tei/rerank", {"model": endpoint})):
        assert ask(http, path, body | more) == [
            {"index": 1, "score": pytest.approx(pairs[0]), "text": GOOD},
            {"index": 0, "score": pytest.approx(pairs[1]), "text": BAD},
        ]


def test_slime(http, endpoint, pairs) -> None:
    assert ask(http, f"slime/{endpoint}", {"prompt": PROMPT, "response": GOOD, "label": "x"}) == pairs[0]
    messages = [{"role": "user", "content": PROMPT}]
    assert ask(http, f"slime/{endpoint}", {"prompt": messages, "response": BAD, "label": None}) == pairs[1]


def test_llama_factory(http, endpoint, texts) -> None:
    assert ask(http, f"llamafactory/{endpoint}", {"model": "model", "messages": [GOOD, BAD]}) == {
        "scores": texts
    }


def test_nemo_gym(http, endpoint, pairs) -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": GOOD}]}
    body = {
        "responses_create_params": {"input": [{"role": "user", "content": PROMPT}]},
        "response": {"id": "r", "output": [said]},
        "verifier_metadata": {"kept": True},
    }
    reply = ask(http, f"nemo-gym/{endpoint}/verify", body)
    assert reply["reward"] == pytest.approx(pairs[0])
    assert sum(reply["reward_components"].values()) == pytest.approx(reply["reward"])
    assert {key: reply[key] for key in body} == body
    text = {"responses_create_params": {"input": PROMPT}, "response": {"output": [said]}}
    assert ask(http, f"nemo-gym/{endpoint}/verify", text)["reward"] == pytest.approx(pairs[0])


def test_nemo_gym_with_tools_is_the_conversation_it_stands_for(http, endpoint) -> None:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look first."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "name": "track", "arguments": '{"parcel": 7}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "on its way"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": GOOD}]},
    ]
    body = {
        "responses_create_params": {"instructions": "Be kind.", "input": PROMPT},
        "response": {"output": output},
    }
    call = {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"parcel": 7}'}}
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": "I look.", "reasoning_content": "Look first.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "on its way"},
        {"role": "assistant", "content": GOOD},
    ]
    reply = ask(http, f"nemo-gym/{endpoint}/verify", body)
    assert reply["reward"] == reward(http, endpoint, {"messages": messages})


ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": GOOD}]}
ITEMS: list[tuple[Json, list[str]]] = [
    ({"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "parcel"}}, []),
    ({"type": "custom_tool_call", "call_id": "c", "name": "run", "input": "ls"}, []),
    ({"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": "ok"}, []),
    ({"type": "computer_call", "call_id": "k", "action": {"type": "click", "x": 1}}, []),
    ({"type": "local_shell_call", "call_id": "l", "action": {"command": ["ls"]}}, []),
    ({"type": "code_interpreter_call", "id": "i", "code": "1+1", "outputs": [{"logs": "2"}]}, []),
    ({"type": "image_generation_call", "id": "g", "result": "iVBORw0"}, ["unread:image"]),
    ({"type": "item_reference", "id": "r"}, ["unread:item_reference"]),
    ({"type": "mcp_list_tools", "id": "t", "tools": []}, ["unread:mcp_list_tools"]),
    ({"type": "reasoning", "summary": [], "encrypted_content": "x"}, ["unread:encrypted_content"]),
]


@pytest.mark.parametrize(
    ("item", "flags"),
    ITEMS,
    ids=lambda value: str(value.get("type", ""))[:30] if isinstance(value, dict) else "",
)
def test_nemo_gyms_other_items_are_read_or_named(http, endpoint, item: Json, flags: list[str]) -> None:
    body = {"responses_create_params": {"input": PROMPT}, "response": {"output": [item, ANSWER]}}
    reply = http.post(f"/compat/nemo-gym/{endpoint}/verify", json=body)
    assert reply.status_code == 200, reply.text
    assert reply.headers.get("X-Touchstone-Flags", "") == ",".join(flags)


def test_nemo_gyms_empty_responses_pictures_and_tools(http, endpoint) -> None:
    path = f"/compat/nemo-gym/{endpoint}/verify"
    picture = {"type": "input_image", "image_url": "https://example.org/x.png"}
    asked = [{"role": "user", "content": [{"type": "input_text", "text": PROMPT}, picture]}]
    for params, output, flags in (
        ({"input": PROMPT}, [], "empty_response"),
        ({"input": asked}, [ANSWER], "unread:image"),
        ({"input": PROMPT, "tools": [{"type": "function", "name": "f"}]}, [ANSWER], "unread:tools"),
    ):
        body = {"responses_create_params": params, "response": {"output": output}}
        reply = http.post(path, json=body)
        assert reply.status_code == 200, reply.text
        assert reply.headers["X-Touchstone-Flags"] == flags


def test_reward_components_add_up_where_transforms_change_the_reward(http, endpoint) -> None:
    row = Endpoint.objects.get(name=endpoint)
    spec = {
        "components": [{"name": "m", "model": "politeness@1"}],
        "transforms": [{"type": "clip", "eta": 3}],
    }
    put_spec(project=row.project, endpoint_name=endpoint, spec=spec, by=None)
    wait_until(lambda: http.get(f"/api/v1/rewards/{endpoint}/").json()["version"] == 2)
    said = {"role": "assistant", "content": GOOD}
    body = {"responses_create_params": {"input": PROMPT}, "response": {"output": [said]}}
    reply = http.post(f"/compat/nemo-gym/{endpoint}/verify", json=body).json()
    assert set(reply["reward_components"]) == {"m", "transforms"}
    assert sum(reply["reward_components"].values()) == pytest.approx(reply["reward"], abs=1e-12)


def test_what_is_cut_off_is_said(http, endpoint, fake) -> None:
    fake.limit = 10
    long = GOOD * 2
    reply = http.post("/compat/vllm/classify", json={"model": endpoint, "input": long})
    assert reply.headers["X-Touchstone-Flags"] == "truncated"
    assert reply.json()["data"][0]["flags"] == ["truncated"]
    bare = http.post(f"/compat/slime/{endpoint}", json={"prompt": PROMPT, "response": long})
    assert bare.headers["X-Touchstone-Flags"] == "truncated"
    refused = http.post(
        f"/compat/tei/{endpoint}/predict", json={"inputs": [[GOOD], [long]], "truncate": False}
    )
    assert (refused.status_code, refused.json()["pointer"]) == (413, "/inputs/0")


BAD_BODIES = [
    ("vllm/classify", {"input": "a"}, "/model"),
    ("vllm/classify", {"model": "", "input": "a"}, "/model"),
    ("vllm/classify", {"model": "E"}, "/input"),
    ("vllm/classify", {"model": "E", "input": []}, "/input"),
    ("vllm/classify", {"model": "E", "input": ["a", None]}, "/input/1"),
    ("vllm/classify", {"model": "E", "input": ["a", "refused"]}, "/input/1"),
    ("vllm/classify", {"model": "E", "input": "a", "activation": "no"}, "/activation"),
    ("vllm/v1/embeddings", {"model": "E", "input": "a", "encoding_format": "hex"}, "/encoding_format"),
    ("vllm/score", {"model": "E", "text_1": "a"}, "/text_1"),
    ("vllm/score", {"model": "E", "text_1": ["a", "b"], "text_2": ["a"]}, "/text_2"),
    ("vllm/rerank", {"model": "E", "query": "a", "documents": [7]}, "/documents/0"),
    ("vllm/rerank", {"model": "E", "query": "a", "documents": ["b"], "top_n": -1}, "/top_n"),
    ("sglang/classify", {"model": "E", "text": [["a", "b", "c"]]}, "/text/0"),
    ("sglang/classify", {"model": "E", "text": []}, "/text"),
    ("tei/E/predict", {"inputs": ["a", "b", "c"]}, "/inputs"),
    ("tei/E/rerank", {"query": None, "texts": ["a"]}, "/query"),
    ("slime/E", {"prompt": "a"}, "/response"),
    ("llamafactory/E", {"messages": [{"role": "user"}]}, "/messages/0"),
    ("openrlhf/E/get_reward", {"query": ["a"], "prompts": ["a"], "labels": ["x", "y"]}, "/labels"),
    ("nemo-gym/E/verify", {"response": {"output": []}}, "/responses_create_params"),
    ("nemo-gym/E/verify", {"responses_create_params": {"input": "a"}, "response": {}}, "/response/output"),
    (
        "nemo-gym/E/verify",
        {"responses_create_params": {"input": "a"}, "response": {"output": [{"type": "function_call"}]}},
        "/response/output/0/name",
    ),
]


def test_what_is_wrong_is_said_where(http, endpoint) -> None:
    for path, body, pointer in BAD_BODIES:
        named = {"model": endpoint} if body.get("model") == "E" else {}
        reply = http.post("/compat/" + path.replace("/E", f"/{endpoint}"), json=body | named)
        assert (reply.status_code, reply.json().get("pointer")) == (422, pointer), (path, body, reply.text)


def test_no_body_tells_of_endpoints_that_are_not_the_callers(http, endpoint) -> None:
    reply = http.post("/compat/vllm/classify", json={"model": "somebody-elses", "input": "a"})
    assert reply.status_code == 404
    bare = httpx.post(
        f"{http.base_url}/compat/vllm/classify", json={"model": endpoint, "input": "a"}, trust_env=False
    )
    assert bare.status_code == 401

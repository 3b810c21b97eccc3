"""Bodies that people reported, and real rows of NeMo-Gym: scored as the messages that they stand for, or flagged."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rewards.wire.reading_model import ReadingModel
from tests.rewards.wire.score_calls import score_results
from tests.workers.engine.fakes import FakeModel
from workers.schema.messages import from_messages

Json = dict[str, Any]
QUESTION = "Where is my order 1007? It was to be here last week."


@pytest.fixture
def fake() -> FakeModel:
    return ReadingModel()


def conversation(question: str, answer: str) -> Json:
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def test_real_rows_of_nemo_gym(http, endpoint, shared_data: Path) -> None:
    """`/score` of the same items gives the same number."""
    rows = (shared_data / "wild/nemo-gym__example_rollouts.jsonl").read_text().splitlines()
    assert len(rows) == 5
    for row in map(json.loads, rows):
        reply = http.post(f"/compat/nemo-gym/{endpoint}/verify", json=row)
        assert reply.status_code == 200, reply.text
        assert reply.headers["X-Touchstone-Flags"] == "unread:tools"
        items = [*row["responses_create_params"]["input"], *row["response"]["output"]]
        (expected,) = score_results(http, endpoint, {"messages": items})
        assert reply.json()["reward"] == pytest.approx(expected["reward"], abs=1e-5)
        assert expected["flags"] == []  # ids and states of items are no content


ITEMS: dict[str, list[Json]] = {
    "mcp": [{"type": "mcp_call", "id": "m", "name": "look", "arguments": '{"a": 1}', "output": "found"}],
    "web search": [{"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "x"}}],
    "code": [
        {
            "type": "code_interpreter_call",
            "id": "c",
            "code": "1+1",
            "outputs": [{"type": "logs", "logs": "2"}],
        }
    ],
    "file search": [{"type": "file_search_call", "id": "f", "queries": ["x"], "results": [{"text": "hit"}]}],
    "picture": [{"type": "image_generation_call", "id": "i", "result": "aGVsbG8="}],
    "custom": [
        {"type": "custom_tool_call", "call_id": "u", "name": "sh", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "u", "output": "a b"},
    ],
    "computer": [
        {"type": "computer_call", "call_id": "p", "action": {"type": "click", "x": 1, "y": 2}},
        {
            "type": "computer_call_output",
            "call_id": "p",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGVsbG8="},
        },
    ],
}


@pytest.mark.parametrize("name", ITEMS)
def test_items_give_the_reward_of_the_call_its_result_and_the_answer(http, endpoint, name: str) -> None:
    """By NeMo-Gym and by `/score`; and what a tool of the server gave back is read as a result, not as an argument."""
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    output = [*ITEMS[name], answer]
    row = {"responses_create_params": {"input": QUESTION}, "response": {"output": output}}
    reply = http.post(f"/compat/nemo-gym/{endpoint}/verify", json=row).json()
    (found,) = score_results(http, endpoint, {"messages": [{"role": "user", "content": QUESTION}, *output]})
    assert reply["reward"] == pytest.approx(found["reward"], abs=1e-5)
    steps = from_messages(output)
    assert [step.text for step in steps] == ["", "Done."]
    (call,) = steps[0].tool_calls
    assert not {"output", "outputs", "result", "results"} & set(call.arguments)
    assert len(steps[0].observation) == (name != "web search")


def test_items_of_unknown_kinds_are_named(http, endpoint) -> None:
    tools = {"type": "mcp_list_tools", "id": "l", "tools": []}
    row = {"responses_create_params": {"input": QUESTION}, "response": {"output": [tools]}}
    reply = http.post(f"/compat/nemo-gym/{endpoint}/verify", json=row)
    assert "unread:mcp_list_tools" in reply.headers["X-Touchstone-Flags"]
    messages = [{"role": "user", "content": QUESTION}, tools, {"role": "assistant", "content": "No idea."}]
    (found,) = score_results(http, endpoint, {"messages": messages})
    assert found["flags"] == ["unread:items"]


def test_what_an_item_of_the_responses_api_holds_and_no_model_reads_is_named(http, endpoint) -> None:
    hidden = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAA"}
    answer = {"role": "assistant", "content": [{"type": "output_text", "text": "No idea."}]}
    items = [{"role": "user", "content": QUESTION}, hidden, {"type": "message", "id": "msg_1"} | answer]
    (found,) = score_results(http, endpoint, {"messages": items})
    assert found["flags"] == ["unread:encrypted_content"]


@pytest.mark.parametrize(
    ("name", "messages", "flags"),
    [
        ("02-openrlhf-templated", conversation(QUESTION, "No idea."), None),
        ("03-openrlhf-nfc", conversation("Ou\u0300 est mon cafe\u0301 ?", "No idea."), "aligned"),
        ("04-openrlhf-left-truncated", conversation("Hello. Where is my order 1007?", "No idea."), "aligned"),
    ],
)
def test_queries_of_openrlhf(
    http, endpoint, shared_data: Path, name: str, messages: Json, flags: str | None
) -> None:
    body = json.loads((shared_data / f"cases/serving/{name}.json").read_text())
    reply = http.post(f"/compat/openrlhf/{endpoint}/get_reward", json=body)
    (expected,) = score_results(http, endpoint, messages)
    assert reply.json()["rewards"] == [pytest.approx(expected["reward"], abs=1e-5)]
    assert reply.headers.get("X-Touchstone-Flags") == flags


def test_items_that_were_refused_or_read_in_part(http, endpoint, shared_data: Path) -> None:
    def case(name: str) -> Any:
        return json.loads((shared_data / f"cases/serving/{name}.json").read_text())

    (trl,) = score_results(http, endpoint, *case("01-tool-result-without-id")["inputs"])
    assert trl["flags"] == []
    thinking, plain = case("05-thinking-ignored")["inputs"]
    question, answer = thinking["messages"]
    reasoned = {"role": "assistant", "content": answer["content"], "reasoning_content": answer["thinking"]}
    found, expected, without = score_results(
        http, endpoint, thinking, {"messages": [question, reasoned]}, plain
    )
    assert found["reward"] == pytest.approx(expected["reward"], abs=1e-5) != without["reward"]
    (picture,) = score_results(http, endpoint, *case("06-trl-image-placeholder")["inputs"])
    assert picture["flags"] == ["unread:image"]
    reply = http.post(f"/compat/nemo-gym/{endpoint}/verify", json=case("07-nemo-empty-output"))
    assert (reply.status_code, reply.headers["X-Touchstone-Flags"]) == (200, "empty_response")

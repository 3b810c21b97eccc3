"""The reward for environments of verifiers, on its own types of messages; tests/examples runs whole environments."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from touchstone_client import verifiers_reward

from tests.client.conftest import Reply
from tests.peer_modules import peer_loader


@pytest.fixture(scope="module")
def types() -> Iterator[Any]:
    with peer_loader() as load:
        yield load("verifiers", "v1/types.py")


class TaskData:
    """Of a task: what the function reads of it."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


class Trace:
    def __init__(self, *messages: Any) -> None:
        self.messages, self.metrics = list(messages), dict[str, float]()

    def record_metrics(self, values: dict[str, float]) -> None:
        self.metrics |= values


def conversation(types: Any) -> list[Any]:
    call = types.ToolCall(id="c1", name="look", arguments='{"order": 1}')
    return [
        types.SystemMessage(content="Be brief."),
        types.UserMessage(content=[types.TextContentPart(text="Where is it?")]),
        types.AssistantMessage(
            reasoning_content="Look first.", tool_calls=[call], provider_state=[{"sealed": "x"}]
        ),
        types.ToolMessage(tool_call_id="c1", content="lost", name="look"),
        types.AssistantMessage(content="Lost."),
    ]


def test_a_trace_is_sent_as_openai_messages(server, types) -> None:
    reward = verifiers_reward(server.url, "sample", "k", reference="answer", run="r1")
    trace = Trace(*conversation(types))
    found = asyncio.run(reward(TaskData(answer="lost", goal="Find it.", id=None), trace))
    (call,) = server.calls
    assert call["body"]["inputs"] == [
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Where is it?"}]},
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "Look first.",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "look", "arguments": '{"order": 1}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "lost", "name": "look"},
                {"role": "assistant", "content": "Lost."},
            ],
            "goal": "Find it.",
            "reference": "lost",
        }
    ]
    assert found == trace.metrics["raw_reward"] == len("Lost.")
    assert trace.metrics | {"raw_reward": 0} == {
        "raw_reward": 0, "uncertain": 0.0, "truncated": 0.0, "flagged": 0.0
    }  # fmt: skip


def test_rollouts_that_end_together_are_one_request(server, types) -> None:
    reward = verifiers_reward(server.url, "sample", "k")

    async def ask() -> list[float]:
        traces = [Trace(*conversation(types)) for _ in range(5)]
        return await asyncio.gather(*(reward(TaskData(), trace) for trace in traces))

    assert len(asyncio.run(ask())) == 5
    assert [len(call["body"]["inputs"]) for call in server.calls] == [5]


def test_a_custom_tool_and_a_namespace(types) -> None:
    from touchstone_client.verifiers import to_message

    call = types.ToolCall(id="c1", type="custom", namespace="files", name="patch", arguments="*** a patch")
    (sent,) = to_message(types.AssistantMessage(tool_calls=[call]))["tool_calls"]
    assert sent == {
        "id": "c1",
        "type": "function",
        "function": {"name": "files.patch", "arguments": "*** a patch"},
    }


def test_refusals_say_what_is_missing(server, types) -> None:
    reward = verifiers_reward(server.url, "sample", "k", reference="answer")
    with pytest.raises(ValueError, match="no field 'answer' for the reference answer; it has id, prompt"):
        asyncio.run(reward(TaskData(id="1", prompt="?"), Trace(*conversation(types))))
    with pytest.raises(ValueError, match="has 1 messages and none of the agent"):
        asyncio.run(reward(TaskData(answer=""), Trace(types.UserMessage(content="?"))))
    assert not server.calls


def test_an_error_of_the_service_is_raised(server, types) -> None:
    from touchstone_client import Refused

    server.replies = [Reply(422, {"detail": "no"})]
    reward = verifiers_reward(server.url, "sample", "k")
    with pytest.raises(Refused):
        asyncio.run(reward(TaskData(), Trace(*conversation(types))))

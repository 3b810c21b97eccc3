"""Recorded calls of APIs of completions, answers of HTTP alone, and frames of Amazon's event streams."""

import base64
import json
import struct
import zlib
from typing import Any

import pytest
import yaml

from apps.trajectories.formats.chat.event_frames import framed_events
from tests.trajectories.logs import read_document, read_lines, sources
from tests.trajectories.reading import read_bytes, read_one

pytestmark = pytest.mark.unit
# Requests and responses as the services write them, with the text that was asked and answered.
CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cohere": ({"message": "Why?", "model": "command"}, {"text": "Because.", "generation_id": "g"}),
    "cohere generate": ({"prompt": "Why?"}, {"generations": [{"text": "Because.", "id": "1"}]}),
    "titan": ({"inputText": "Why?"}, {"inputTextTokenCount": 2, "results": [{"outputText": "Because."}]}),
    "llama": ({"prompt": "Why?"}, {"generation": "Because.", "stop_reason": "stop"}),
    "claude 2": ({"prompt": "Why?"}, {"completion": "Because.", "stop_reason": "stop_sequence"}),
    "mistral": ({"prompt": "Why?"}, {"outputs": [{"text": "Because.", "stop_reason": "stop"}]}),
    "jurassic": ({"prompt": "Why?"}, {"id": 1, "completions": [{"data": {"text": "Because."}}]}),
    "watsonx": ({"input": "Why?", "model_id": "m"}, {"results": [{"generated_text": "Because."}]}),
    "ollama": ({"prompt": "Why?", "model": "m"}, {"model": "m", "response": "Because.", "done": True}),
    "replicate": ({"input": "Why?"}, {"urls": {}, "status": "succeeded", "output": ["Beca", "use."]}),
    "inference": ({"inputs": "Why?"}, {"generated_text": "Because."}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_completions(name: str) -> None:
    request, response = CALLS[name]
    found = read_one({"request": {"body": request}, "response": {"body": json.dumps(response)}})
    assert [(step.source, step.text) for step in found.steps] == [("user", "Why?"), ("agent", "Because.")]


@pytest.mark.parametrize("name", CALLS)
def test_an_answer_that_may_be_anything_is_no_call(name: str) -> None:
    _, response = CALLS[name]
    _, errors, _ = read_bytes(json.dumps({"request": {"path": "/v1"}, "response": response}).encode())
    assert errors


def test_what_was_said_before_in_a_call_of_cohere() -> None:
    before = [{"role": "USER", "message": "Hi"}, {"role": "CHATBOT", "message": "Hello"}]
    request = {"message": "Why?", "preamble": "Be short.", "chat_history": before}
    found = read_one({"request": request, "response": {"text": "Because.", "response_id": "r"}})
    assert [step.source for step in found.steps] == ["system", "user", "agent", "user", "agent"]
    assert [step.text for step in found.steps] == ["Be short.", "Hi", "Hello", "Why?", "Because."]


def frame(name: str, payload: dict[str, Any]) -> bytes:
    """As AWS describes the encoding of its event streams."""
    key, value, body = b":event-type", name.encode(), json.dumps(payload).encode()
    headers = bytes([len(key)]) + key + b"\x07" + struct.pack(">H", len(value)) + value
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return whole + struct.pack(">I", zlib.crc32(whole))


CONVERSE = (
    frame("messageStart", {"role": "assistant"})
    + frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Beca"}})
    + frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "use."}})
    + frame("messageStop", {"stopReason": "end_turn"})
    + frame("metadata", {"usage": {"inputTokens": 5, "outputTokens": 2}})
)
ASKED = {"messages": [{"role": "user", "content": [{"text": "Why?"}]}]}


def test_frames_of_a_recorded_stream() -> None:
    log = {"scope": "https://bedrock", "method": "POST", "path": "/model/m/converse-stream", "status": 200}
    found = read_one(
        [log | {"body": ASKED, "response": CONVERSE.hex(), "reqheaders": {"authorization": "k"}}]
    )
    assert [(step.source, step.text) for step in found.steps] == [("user", "Why?"), ("agent", "Because.")]
    assert found.steps[1].metrics and "authorization" not in json.dumps(found.metadata)


def test_frames_in_a_cassette() -> None:
    call = {"request": {"body": json.dumps(ASKED)}, "response": {"body": {"string": CONVERSE}}}
    [found], errors, _ = read_bytes(yaml.safe_dump({"interactions": [call], "version": 1}).encode())
    assert not errors and found.steps[1].text == "Because."


def test_frames_of_pieces_in_base64() -> None:
    pieces = [{"generation": "Beca", "stop_reason": None}, {"generation": "use.", "stop_reason": "stop"}]
    packed = [base64.b64encode(json.dumps(piece).encode()).decode() for piece in pieces]
    stream = b"".join(frame("chunk", {"bytes": each}) for each in packed)
    found = read_one({"request": {"prompt": "Why?"}, "response": {"body": stream.hex()}})
    assert [step.text for step in found.steps] == ["Why?", "Because."]


@pytest.mark.parametrize("cut", [0, 1, 11, 20, 60, 200])
def test_frames_that_are_cut_off_give_those_before(cut: int) -> None:
    assert len(framed_events(CONVERSE[:cut])) < 5 == len(framed_events(CONVERSE))
    assert framed_events(CONVERSE.hex()[: 2 * cut] + "xy") == []


def test_frames_of_any_bytes_are_none() -> None:
    assert framed_events(b"\0\0\0\x10\xff\xff\xff\xff" + bytes(64)) == framed_events("000000") == []


def test_an_answer_of_http_alone() -> None:
    body = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "x",
    }
    found = read_one({"status": 200, "headers": {"set-cookie": "secret"}, "body": json.dumps(body)})
    assert [step.text for step in found.steps] == ["Hi"] and "secret" not in json.dumps(found.metadata)


def test_a_stream_of_ollama() -> None:
    pieces = [{"thinking": "Two "}, {"thinking": "things."}, {"content": "4"}, {"content": "2"}]
    lines = [
        {"model": "m", "message": {"role": "assistant", "content": ""} | each, "done": False}
        for each in pieces
    ]
    lines.append(
        {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "eval_count": 9}
    )
    text = "\n".join(map(json.dumps, lines))
    found = read_one({"request": ASKED | {"model": "m"}, "response": {"body": text}})
    assert (found.steps[1].text, found.steps[1].reasoning) == ("42", "Two things.")


class TestManagedAgents:
    def test_events_that_stand_next_to_the_name_of_their_call(self) -> None:
        events: list[dict[str, Any]] = [
            {"type": "session.status_running"},
            {"type": "user.message", "content": [{"type": "text", "text": "How cold?"}]},
            {"type": "agent.custom_tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
            {
                "type": "user.custom_tool_result",
                "custom_tool_use_id": "c1",
                "content": [{"type": "text", "text": "-3"}],
            },
            {"type": "agent.message", "content": [{"type": "text", "text": "Minus three."}]},
        ]
        [found], errors, _ = read_bytes(
            b"\n".join(json.dumps(["events.stream", event]).encode() for event in events)
        )
        assert not errors and [step.source for step in found.steps] == ["user", "agent", "agent"]
        assert found.steps[1].observation[0].call_id == "c1"


class TestPages:
    """Messages as the AI SDK keeps them for a page."""

    PARTS: tuple[dict[str, Any], ...] = (
        {"type": "step-start"},
        {"type": "reasoning", "text": "A look.", "state": "done"},
        {"type": "tool-weather", "toolCallId": "c1", "state": "output-available", "input": {"q": 1},
         "output": {"t": 3}},
        {"type": "step-start"},
        {"type": "dynamic-tool", "toolName": "find", "toolCallId": "c2", "state": "output-error", "input": {},
         "errorText": "no such city"},
        {"type": "step-start"},
        {"type": "text", "text": "Cold.", "state": "done"},
        {"type": "source-url", "sourceId": "s", "url": "https://example.org"},
        {"type": "data-note", "data": {"seen": True}},
    )  # fmt: skip

    def read(self, *messages: dict[str, Any]) -> Any:
        return read_one({"id": "chat", "messages": list(messages)})

    def test_calls_with_their_results(self) -> None:
        asked = {"id": "1", "role": "user", "parts": [{"type": "text", "text": "How cold?"}]}
        found = self.read(asked, {"id": "2", "role": "assistant", "parts": list(self.PARTS)})
        steps = found.steps
        assert [step.source for step in steps] == ["user", "agent", "agent", "agent"]
        assert (steps[1].reasoning, steps[1].tool_calls[0].arguments) == ("A look.", {"q": 1})
        assert [step.tool_calls[0].name for step in steps[1:3]] == ["weather", "find"]
        assert [step.observation[0].content[0].text for step in steps[1:3]] == ['{"t": 3}', "no such city"]
        assert [step.observation[0].call_id for step in steps[1:3]] == ["c1", "c2"]
        assert steps[3].message[0].text == "Cold." and "example.org" in (steps[3].message[1].text or "")

    def test_calls_before_version_5(self) -> None:
        call = {
            "state": "result",
            "toolCallId": "c",
            "toolName": "weather",
            "args": {"q": 1},
            "result": "cold",
        }
        part = {"type": "tool-invocation", "toolInvocation": call}
        text = {"type": "text", "text": "Cold."}
        asked = {"role": "user", "content": "How cold?"}
        whole = self.read(asked, {"role": "assistant", "content": "Cold.", "parts": [part, text]})
        beside = self.read(asked, {"role": "assistant", "content": "Cold.", "toolInvocations": [call]})
        for found in (whole, beside):
            assert [step.text for step in found.steps] == ["How cold?", "", "Cold."], found.steps
            assert found.steps[1].observation[0].content[0].text == "cold"

    def test_a_call_that_waits_for_a_person(self) -> None:
        part = {"type": "tool-pay", "toolCallId": "c", "state": "approval-requested", "input": {"sum": 5}}
        found = self.read({"role": "user", "content": "Pay"}, {"role": "assistant", "parts": [part]})
        assert found.steps[1].tool_calls[0].name == "pay" and not found.steps[1].observation


def test_an_answer_alone_in_a_document_is_no_run() -> None:
    assert read_document(
        {"a": {"events": [{"out": [{"role": "assistant", "content": "Hi"}]}], "b": 1}}
    ).errors
    log = {"description": "Say hi", "events": [{"out": [{"role": "assistant", "content": "Hi"}]}]}
    found = read_document(log).only
    assert (sources(found), found.task.instruction) == ("a", "Say hi")


def test_records_that_look_like_others_by_chance_are_refused() -> None:
    rows = [{"api": "x", "data": {"input": None, "output": None}}] * 3
    rows = [*rows, {"api": "y", "data": {"input": "image", "output": "vector"}}]
    read = read_lines(rows)
    assert not read.trajectories and len(read.errors) == 1 and "None of 4 records" in read.errors[0]


class TestText:
    def test_one_sentence_a_file(self) -> None:
        text = "\n".join(f"Line {number} of a book." for number in range(500))
        _, [error], _ = read_bytes(text.encode())
        assert "500 lines, the first of them 'Line 0 of a book.', are no JSON" in error.message

    def test_each_of_a_few_is_named(self) -> None:
        _, errors, _ = read_bytes(b"no\nJSON\n")
        assert [error.message[:14] for error in errors] == ["not valid JSON"] * 2

    def test_those_between_records_are_named(self) -> None:
        line = json.dumps({"prompt": "Hi", "response": "Hello"})
        found, errors, _ = read_bytes("\n".join([line, *["broken {"] * 5, line]).encode())
        assert (len(found), len(errors)) == (2, 5)

    def test_lines_before_the_first_record(self) -> None:
        line = json.dumps({"prompt": "Hi", "response": "Hello"})
        found, errors, _ = read_bytes("\n".join([*["INFO started"] * 9, line, "end of log"]).encode())
        assert len(found) == 1 and [error.message[:9] for error in errors] == ["9 lines, ", "not valid"]


def test_a_history_of_aider_whose_beginning_was_cut_off() -> None:
    text = (
        "> Applied edit to a.py\n\n#### /exit\n\n# aider chat started at 2025-01-02 10:00:00\n\n"
        "> Aider v0.80.0\n\n#### Rename it\n\nDone as you asked.\n\n> Commit abc rename\n"
    )
    [found], errors, _ = read_bytes(text.encode())
    assert not errors and sources(found)[:3] == "eua" and found.task.instruction == "Rename it"


class TestWrittenCalls:
    CALL = 'Let me see.\n<tool_call>\n{"name": "weather", "arguments": {"q": 1}}\n</tool_call>'

    @pytest.mark.parametrize(
        "result",
        [
            {"role": "tool", "content": "-3"},
            {"role": "user", "content": "<tool_response>\n-3\n</tool_response>"},
        ],
    )
    def test_results_say_that_a_call_was_made(self, result: dict[str, str]) -> None:
        messages = [{"role": "user", "content": "Cold?"}, {"role": "assistant", "content": self.CALL}]
        found = read_one({"messages": [*messages, result, {"role": "assistant", "content": "Yes."}]})
        assert [step.source for step in found.steps] == ["user", "agent", "agent"]
        assert (found.steps[1].text, found.steps[1].tool_calls[0].arguments) == ("Let me see.", {"q": 1})
        assert "-3" in (found.steps[1].observation[0].content[0].text or "")

    def test_without_one_it_is_text(self) -> None:
        messages = [{"role": "user", "content": "Cold?"}, {"role": "assistant", "content": self.CALL}]
        found = read_one({"messages": messages})
        assert found.steps[1].text == self.CALL and not found.steps[1].tool_calls


def test_a_sample_of_inspect_without_messages_has_its_input_and_output() -> None:
    output = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "2"}}]}
    sample = {"id": 1, "input": "How many?", "target": "3", "messages": [], "output": output}
    found = read_one(
        {"eval": {"task": "count", "model": "m"}, "samples": [sample | {"scores": {"s": {"value": "I"}}}]}
    )
    assert [step.text for step in found.steps] == ["How many?", "2"] and found.success is False


def test_results_of_camel_have_the_answer_as_it_was_written() -> None:
    said = {"role_name": "Assistant", "content": "I looked.\n\nFINAL ANSWER: 42"}
    row = {"task_id": "1", "model_answer": "42", "ground_truth": "42", "score": 1, "history": [said]}
    found = read_one(row | {"tool_calls": [{"func_name": "find", "args": {}, "result": "42"}]})
    assert [step.text for step in found.steps] == ["", "I looked.\n\nFINAL ANSWER: 42"] and found.reward == 1

"""Whatever is broken in a document, it ends in trajectories or in an error that says where."""

import json
import random

import pytest

from apps.accounts.models import Project
from tests.trajectories.mutations import (
    DOCUMENTS,
    TEXTS,
    mutated,
    mutated_text,
    read_or_refused,
    stored_whole,
)

# Of 300 mutations the first hundred, and of the others those that reach a line of the readers which no earlier one
# reached. All of them are a long test; benchmarks.mutations makes 20,000.
FIRST = 100
FURTHER = {
    "agent-bench": (100,),
    "agent-data-protocol": (222,),
    "atif": (152,),
    "bfcl": (165, 171, 220),
    "call-log": (126,),
    "chatgpt-export": (288,),
    "gemini": (212,),
    "gymnasium": (175, 243),
    "hal": (279,),
    "helpsteer-preference": (139,),
    "hh": (110, 129),
    "inspect": (109, 189),
    "langfuse": (177,),
    "langwatch": (204,),
    "letta": (244,),
    "mind2web": (199,),
    "mini-swe-agent": (108,),
    "openclaw": (147,),
    "opik": (232,),
    "osworld": (119, 127),
    "otel": (149,),
    "otel-spans": (111, 280),
    "pi": (184,),
    "sharegpt": (185, 249),
    "swe-agent-rows": (122,),
    "tape": (129,),
    "tree-of-thoughts": (184,),
    "trl-stepwise": (136,),
    "turns": (145, 150),
    "ui-stream": (102,),
    "webgpt": (180,),
}


@pytest.mark.parametrize(
    "does_all", [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_is_read_or_refused(name: str, does_all: bool, project: Project) -> None:
    dice, ends, prepared = random.Random(name), {"read": 0, "refused": 0}, []
    raw = json.dumps(DOCUMENTS[name]).encode()
    for number in range(300):
        broken = mutated(raw, dice)
        if does_all or number < FIRST or number in FURTHER.get(name, ()):
            good, bad = read_or_refused(broken, name)
            ends["read"] += len(good)
            ends["refused"] += len(bad)
            prepared += good
    assert min(ends.values()) > (10 if does_all else 3)
    stored_whole(project, prepared)


def test_further_mutations_are_of_formats_that_are_there() -> None:
    assert FURTHER.keys() <= DOCUMENTS.keys()


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_read_or_refused(name: str, project: Project) -> None:
    dice, ends, prepared = random.Random(name), {"read": 0, "refused": 0}, []
    for _ in range(FIRST):
        good, bad = read_or_refused(mutated_text(TEXTS[name], dice), None)
        ends["read"] += len(good)
        ends["refused"] += len(bad)
        prepared += good
    assert min(ends.values()) > 3
    stored_whole(project, prepared)


def refusal(name: str, document: object) -> str:
    """Why a document is no trajectory; what else comes of it is raised."""
    _, [error] = read_or_refused(json.dumps(document).encode(), name)
    return error.message


class TestFound:
    """What benchmarks.mutations found once."""

    def test_calls_of_a_span_that_are_no_list(self) -> None:
        body = {"messages": [{"role": "assistant", "tool_calls": 1, "content": "x"}]}
        log = {"request_body": body, "response_body": {"choices": [{"message": {"content": "y"}}]}}
        assert refusal("proxy-logs", log | {"request_id": "r"})

    def test_a_call_of_an_answer_that_is_no_object(self) -> None:
        message = {"role": "assistant", "tool_calls": [None]}
        log = {"request_body": {"messages": []}, "response_body": {"choices": [{"message": message}]}}
        assert "expected a JSON object" in refusal("proxy-logs", log | {"request_id": "r"})

    def test_a_character_that_no_field_may_have_in_a_version(self) -> None:
        events = [
            {"type": "session.start", "data": {"copilotVersion": "1.\u0000"}, "id": "1", "timestamp": "t"},
            {"type": "assistant.message", "data": {"content": "Hi"}, "id": "2", "timestamp": "t"},
        ]
        [found], _ = read_or_refused("\n".join(map(json.dumps, events)).encode(), "copilot-cli")
        assert found.steps

    def test_a_row_without_its_request(self) -> None:
        assert "expected" in refusal("nemo-gym", {"response": {"output": []}})

    def test_calls_that_are_no_list_are_none(self) -> None:
        chat = {"type": "gemini", "content": "Done.", "toolCalls": True}
        document = {"sessionId": "s", "projectHash": "p", "messages": [chat]}
        [found], _ = read_or_refused(json.dumps(document).encode(), "gemini-cli")
        assert found.steps

    def test_an_empty_name_is_no_speaker(self) -> None:
        content = [
            {"class_": "text_observation", "source": "user", "content": "Hi", "name": ""},
            {"class_": "message_action", "content": "Hello"},
        ]
        [_], refused = read_or_refused(
            json.dumps({"id": "1", "content": content}).encode(), "agent-data-protocol"
        )
        assert not refused

"""Whatever is broken in a document, it ends in trajectories or in an error that says where."""

import json
import random

import pytest

from apps.accounts.models import Project
from tests.trajectories.mutations import DOCUMENTS, mutated, read_or_refused, stored_whole

MUTATIONS = 300


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_is_read_or_refused(name: str, project: Project) -> None:
    dice, ends, prepared = random.Random(name), {"read": 0, "refused": 0}, []
    raw = json.dumps(DOCUMENTS[name]).encode()
    for _ in range(MUTATIONS):
        good, bad = read_or_refused(mutated(raw, dice), name)
        ends["read"] += len(good)
        ends["refused"] += len(bad)
        prepared += good
    assert min(ends.values()) > 10
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

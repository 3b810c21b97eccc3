"""Traces in which something is awkward: clocks, copies, ids used again, windows of the history, pictures."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.test_otel import ASKED, SAID, chat, gathered, span, traced
from workers.errors import InvalidRecord
from workers.schema import Trajectory


def output_messages(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]


def asked(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "parts": [{"type": "text", "content": text}]}]


def called(argument: int, name: str = "call_0") -> list[dict[str, Any]]:
    call = {"type": "tool_call", "id": name, "name": "look", "arguments": {"order": argument}}
    return [{"role": "assistant", "parts": [call]}]


def ran(number: int, result: str, name: str | None = "call_0") -> dict[str, Any]:
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.result": result,
        "gen_ai.tool.name": "look",
    }
    return span(number, about | ({"gen_ai.tool.call.id": name} if name else {}))


def texts(trajectory: Trajectory) -> list[str]:
    return [step.text for step in trajectory.steps]


def texts_of(trajectory: Trajectory) -> list[list[str | None]]:
    return [
        [result.content[0].text for result in step.observation]
        for step in trajectory.steps
        if step.source == "agent"
    ]


CASES = {
    "clock_skew_chats": (["skew", "A1", "q2", "A2"], [[], []]),
    "clock_skew_tool_host": (["q", ""], [["r1"]]),
    "ids_missing_on_results": (["q", "", "done"], [["r1"], []]),
    "ids_repeated_across_turns_history": (["q", "", "", "done"], [["FIRST"], ["SECOND"], []]),
    "nested_duplicate_llm_spans": (["q", "", "done"], [["r1"], []]),
    "same_start_ms_child_first": (["q", "A1", "q2", "A2"], [[], []]),
    "server_tool_call_part": (["q", "done"], [['{"hits": 2}']]),
    "sliding_window_repeated_user_text": (["start", "A1", "continue", "A2", "continue", "A3"], [[], [], []]),
    "start_as_float_seconds": (["floatq", "A1", "q2", "A2"], [[], []]),
    "plain": (["q", "", "done"], [["r1"], []]),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(shared_data: Path, name: str) -> None:
    document = json.loads((shared_data / f"cases/import/otel_{name}.json").read_text())
    (found,) = gathered(document)
    assert (texts(found), texts_of(found)) == CASES[name]


def test_a_copy_within_a_call_counts_once_and_is_named() -> None:
    given = chat(ASKED, SAID, **{"gen_ai.usage.input_tokens": 12})
    (found,) = gathered(traced(span(1, given), span(2, given, parent=1)))
    assert texts(found) == ["Where is it?", "In Ulm."]
    assert found.metadata["usage"] == {"input_tokens": 12}
    assert [copy["id"] for copy in found.metadata["copies"]] == ["s2"]


def test_equal_answers_of_calls_next_to_each_other_are_two() -> None:
    later = ASKED + SAID + asked("Again?")
    (found,) = gathered(traced(span(1, chat(ASKED, SAID)), span(2, chat(later, SAID))))
    assert texts(found) == ["Where is it?", "In Ulm.", "Again?", "In Ulm."]


def test_results_of_spans_go_to_the_call_of_their_turn() -> None:
    second = ASKED + called(1) + called(2)
    spans = [
        span(1, chat(ASKED, called(1))),
        ran(2, "one"),
        span(3, chat(second[:-1], called(2))),
        ran(4, "two"),
    ]
    (found,) = gathered(traced(*spans))
    assert texts_of(found) == [["one"], ["two"]]


def test_the_last_result_of_a_repeated_id_is_there() -> None:
    result = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_0", "response": "one"}]}]
    history = ASKED + called(1) + result
    spans = [span(1, chat(ASKED, called(1))), ran(2, "one"), span(3, chat(history, called(2))), ran(4, "two")]
    (found,) = gathered(traced(*spans))
    assert texts_of(found) == [["one"], ["two"]]


def test_results_of_spans_without_ids_are_paired_by_name() -> None:
    nameless = called(1)
    nameless[0]["parts"][0].pop("id")
    (found,) = gathered(traced(span(1, chat(ASKED, nameless)), ran(2, "in Ulm", name=None)))
    assert texts_of(found) == [["in Ulm"]]


@pytest.mark.parametrize("difference", ["\n", "  ", "\r\n"])
def test_space_around_an_answer_in_the_history_makes_no_new_message(difference: str) -> None:
    history = ASKED + output_messages(f"In Ulm.{difference}") + asked("And now?")
    (found,) = gathered(traced(span(1, chat(ASKED, SAID)), span(2, chat(history, output_messages("Still.")))))
    assert texts(found) == ["Where is it?", "In Ulm.", "And now?", "Still."]


def test_calls_are_in_the_order_of_their_histories_whatever_the_clocks_say() -> None:
    history: list[dict[str, Any]] = []
    spans = []
    for turn in range(6):
        history += asked(f"q{turn}")
        spans.append(span(50 - turn, chat(list(history), output_messages(f"a{turn}"))))
        history += output_messages(f"a{turn}")
    (found,) = gathered(traced(*spans))
    assert texts(found) == [text for turn in range(6) for text in (f"q{turn}", f"a{turn}")]


def test_tokens_and_seconds_of_each_call() -> None:
    usage = {"gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3}
    end = {"endTimeUnixNano": str(1001 + 2_500_000_000)}
    (found,) = gathered(traced(span(1, chat(ASKED, SAID, **usage), **end)))
    assert found.steps[1].metrics == {"input_tokens": 12, "output_tokens": 3, "seconds": 2.5}
    assert (found.metadata["seconds"], found.metadata["model"]) == (2.5, "m")


def test_pictures_by_bytes_and_by_address(shared_data: Path) -> None:
    document = json.loads((shared_data / "cases/import/otel_image_blob_part.json").read_text())
    (found,) = gathered(document)
    kinds = [(part.type, (part.source or "")[:22]) for part in found.steps[0].message[1:]]
    assert kinds == [("image", "data:image/png;base64,"), ("image", "https://x.example/a.pn")]


def test_another_convention_is_named() -> None:
    with pytest.raises(InvalidRecord, match="LiveKit") as caught:
        gathered(traced(span(1, {"lk.chat_ctx": "[]"})))
    assert "CAPTURE_MESSAGE_CONTENT" not in caught.value.message


def test_a_circle_of_histories_ends() -> None:
    first, second = (
        asked("x") + output_messages("b") + asked("y"),
        asked("z") + output_messages("a") + asked("w"),
    )
    (found,) = gathered(
        traced(span(1, chat(first, output_messages("a"))), span(2, chat(second, output_messages("b"))))
    )
    assert len(found.agent_steps) >= 2

"""Formats that go by names that many programs use: what is read of them, and what is not guessed."""

import gzip
import json
from typing import Any

import pytest
import yaml

from apps.trajectories import formats
from tests.trajectories.general.documents import CALL, CASSETTE_TEXT, DOCUMENTS, REACT, STREAM
from tests.trajectories.logs import ReadLog, read_document, sources
from tests.trajectories.real_files import comes_back
from workers.schema import Trajectory

EXPECTED = {
    "tree-of-thoughts": ["ua", "ua"], "action-steps": ["uaa"], "react-text": ["uaa"], "recorded-turns": ["uaa"],
    "prompt-answer": ["suaua"], "turns": ["uaua"], "cassette": ["ua"], "ui-stream": ["aa"],
    "langgraph-stream": ["ua"], "agno-events": ["aa"],
}  # fmt: skip


def only(document: Any) -> Trajectory:
    read = read_document(document)
    assert read.errors == []
    (found,) = read.trajectories
    return found


def detected(document: Any) -> str | None:
    return formats.name_of_whole(document)


@pytest.mark.parametrize("name", EXPECTED)
def test_each_is_detected_and_comes_back_from_atif(name: str) -> None:
    read = read_document(DOCUMENTS[name])
    assert (read.format, read.errors) == (name, [])
    assert [sources(each) for each in read.trajectories] == EXPECTED[name]
    assert all(map(comes_back, read.trajectories))


def test_answers_of_a_search_have_their_own_rewards() -> None:
    found = read_document(DOCUMENTS["tree-of-thoughts"]).trajectories
    assert [(each.task.id, each.task.instruction, each.reward) for each in found] == [
        ("900", "4 5 6 10", 1.0),
        ("900", "4 5 6 10", 0.0),
    ]


def test_what_is_observed_is_after_the_action_unless_named_before_it() -> None:
    found = only(DOCUMENTS["action-steps"])
    assert [(step.tool_calls[0].name, step.observation[0].content[0].text) for step in found.steps[1:]] == [
        ("execute", "large.txt\nsmall.txt"),
        ("submit", "The run is over."),
    ]
    assert [step.reward for step in found.steps[1:]] == [0.0, 1.0]
    seen = [{"observation": "a door", "action": "open door"}, {"observation": "a hall", "action": "go"}]
    found = only({"goal": "Leave the house.", "steps": seen})
    assert sources(found) == "ueaa"
    assert found.steps[1].observation[0].content[0].text == "a door"
    assert found.steps[2].observation[0].content[0].text == "a hall"
    assert found.steps[3].observation == ()


def test_the_run_of_a_text_is_what_follows_its_examples() -> None:
    found = only(DOCUMENTS["react-text"])
    assert found.steps[0].text.startswith("Solve a question") and "Finish[Goethe]" in found.steps[0].text
    assert found.steps[0].text.endswith("Question: Which river flows through Ulm?")
    first, second = found.steps[1:]
    assert (first.text, first.tool_calls[0].name, first.tool_calls[0].arguments) == (
        "I look for the town of Ulm.",
        "Search",
        "Ulm",
    )
    assert first.observation[0].content[0].text == "Ulm is a town on the Danube.\nIt has a minster."
    assert second.observation[0].content[0].text == "Episode finished, reward = 1"
    assert (found.success, found.reward, found.task.reference) == (True, 0.5, "the Danube")


def test_a_text_without_numbers_is_read_from_its_question_on() -> None:
    text = "Question: Who?\nThought: A.\nAction: search[a]\nObservation: b.\n"
    text += "Question: Where?\nThought: C.\nAction: finish[d]"
    found = only({"traj": text + "\nObservation: done.", "question": "Where?", "em": False})
    assert [(step.text, step.tool_calls[0].arguments) for step in found.steps[1:]] == [("C.", "d")]
    assert found.success is False


def test_speakers_are_known_by_name_and_others_are_not_guessed() -> None:
    def turns(*names: str) -> dict[str, Any]:
        return {
            "dialog": [{"id": name, "text": f"{number} says {name}"} for number, name in enumerate(names)]
        }

    assert sources(only(turns("Worker", "Blender", "Worker", "Blender"))) == "uaua"
    assert only(turns("Worker", "Blender")).steps[1].speaker == "Blender"
    assert sources(only(turns("USER", "SYSTEM", "USER", "SYSTEM"))) == "uaua"  # of task-oriented dialogue
    assert sources(only(turns("system", "user", "assistant"))) == "sua"
    assert sources(only(turns("seeker", "supporter"))) == "ua"
    for names in (("Veda", "Priest"), ("mturk_1", "mturk_2"), ("user", "Ann", "Bob"), ("system", "user")):
        assert detected(turns(*names)) is None


def test_turns_as_pairs_lists_and_lists_of_lists() -> None:
    assert sources(only({"log": [{"user utterance": "Hello.", "system response": "Good day."}]})) == "ua"
    assert sources(only({"dialogue": [{"system_transcript": "Welcome.", "transcript": "thai food"}]})) == "au"
    assert (
        sources(only({"original": [["agent", "Hello."], ["customer", "Help me."], ["action", "Opened."]]}))
        == "aue"
    )
    assert sources(only({"dialog": [[{"id": "human", "text": "a"}, {"id": "bot", "text": "b"}]]})) == "ua"
    questions = [
        {"question": "What is it?", "answer": "A list."},
        {"question": "And this?", "answer": "One too."},
    ]
    assert detected({"faq": questions}) is None  # they are no turns of one conversation


def test_attempts_at_a_program_are_turns() -> None:
    row = {
        "prompt": "def half(n):",
        "solution": "def half(n): return n / 2",
        "implementations": ["def half(n): return n", "def half(n): return n / 2"],
        "test_feedback": ["assert half(2) == 1 failed"],
        "reflections": ["I forgot to divide."],
        "is_solved": True,
    }
    found = only(row)
    assert sources(found) == "uauaa" and found.success is True
    assert found.steps[2].text == "assert half(2) == 1 failed"
    assert (
        detected({"prompt": "def half(n):", "solution": "def half(n): return n / 2"}) is None
    )  # whose it is


def test_answers_in_titles_and_to_prompts_elsewhere() -> None:
    found = only({"Run ID": "r7", "Agent Name": "Researcher", "Task": "Find it.", "Result": "It is found."})
    assert (sources(found), found.agent, found.metadata["run_id"]) == ("ua", "Researcher", "r7")
    found = only({"session_id": "s7", "model_output": "An answer.", "model_test": "small", "score": "5"})
    assert (sources(found), found.task.id, found.agent) == ("a", "s7", "small")


def test_an_answer_next_to_what_it_is_evaluated_by_is_the_systems() -> None:
    row = {"question": "Where is Ulm?", "answer": "On the Danube."}
    found = only(row | {"contexts": ["Ulm is a town."], "ground_truth": "At the river Danube."})
    assert (found.steps[1].text, found.task.reference) == ("On the Danube.", "At the river Danube.")
    assert detected(row) is None  # it may be the right answer


def test_samples_with_their_own_outcomes() -> None:
    found = read_document({"id": "p1", "instruction": "Fix it.", "diffs": ["@@ a", "@@ b"],
                           "eval_outcomes": [{"is_success": True}, {"is_success": False}]}).trajectories  # fmt: skip
    assert [(each.steps[1].text, each.success) for each in found] == [("@@ a", True), ("@@ b", False)]
    found = read_document(
        {"issue": "It fails.", "patches": ["diff a", ""], "success_id": [1, 0]}
    ).trajectories
    assert [each.success for each in found] == [True, False]
    found = read_document({"question": "6 times 7?", "6b": {"is_correct": False, "solution": "41"},
                           "175b": {"is_correct": True, "solution": "42"}}).trajectories  # fmt: skip
    assert [(each.agent, each.success) for each in found] == [("6b", False), ("175b", True)]
    found = read_document(
        {"question": "Add.", "inferences": [{"completion": "a + b", "pass_rate": 0.5}]}
    ).trajectories
    assert [(each.steps[1].text, each.reward) for each in found] == [("a + b", 0.5)]


def test_a_stream_is_read_with_its_calls_and_results() -> None:
    for raw in (
        json.dumps(STREAM).encode(),
        "\n".join(map(json.dumps, STREAM)).encode(),
        "".join(f"data: {json.dumps(event)}\n\n" for event in STREAM).encode() + b"data: [DONE]\n\n",
    ):
        (found,) = ReadLog(raw).trajectories
        first, second = found.steps
        assert (first.reasoning, first.tool_calls[0].arguments) == ("I have to look it up.", {"city": "Ulm"})
        assert first.observation[0].content[0].text == '{"degrees": 21}'
        assert (second.text, found.id) == ("It is 21 degrees in Ulm.", "m1")


def test_cassettes_are_read_without_their_headers() -> None:
    read = ReadLog(CASSETTE_TEXT.encode())
    (found,) = read.trajectories
    assert [step.text for step in found.steps] == ["What is 6 times 7?", "It is 42."]
    assert "secret" not in json.dumps(found.metadata) + json.dumps([step.extra for step in found.steps])


def test_bodies_of_cassettes_may_be_packed() -> None:
    packed = gzip.compress(json.dumps(CALL["response"]).encode())
    call = {"request": {"body": json.dumps(CALL["request"])}, "response": {"body": {"string": packed}}}
    (found,) = ReadLog(yaml.safe_dump({"interactions": [call]}).encode()).trajectories
    assert found.steps[1].text == "It is 42."


def test_cassettes_that_are_refused() -> None:
    other = (
        "interactions:\n- request: {body: '', uri: 'https://example.org'}\n  response: {body: {string: ok}}\n"
    )
    (error,) = ReadLog(other.encode()).errors
    assert "none of 1 recorded calls" in error
    (error,) = ReadLog(b"interactions: &a [1, 2]\nmore: [*a, *a]\n").errors
    assert "an alias of YAML" in error
    (error,) = ReadLog(b"interactions:\n" + b"[" * 100).errors
    assert "nested too deeply" in error or "not valid YAML" in error
    (error,) = ReadLog(b"interactions:\n - {a: 'b\n").errors
    assert "not valid YAML" in error


def test_recorded_objects_of_an_sdk_are_read() -> None:
    piece = {"id": "x", "object": "chat.completion.chunk", "model": "gpt-4o"}
    chunks = [
        {
            "__type__": "openai.Chunk",
            "__data__": piece | {"choices": [{"index": 0, "delta": {"content": text}}]},
        }
        for text in ("It is ", "42.")
    ]
    request = {"url": "https://api.openai.com", "body": CALL["request"]}
    for body in (chunks, {"__type__": "openai.ChatCompletion", "__data__": CALL["response"]}):
        found = only({"test_id": "t", "request": request, "response": {"body": body}})
        assert [step.text for step in found.steps] == ["What is 6 times 7?", "It is 42."]


def test_react_text_with_an_answer_next_to_it_is_a_prompt() -> None:
    assert detected({"prompt": REACT, "output": "Finish[Danube]"}) == "prompt-answer"


def test_a_stream_of_langgraph_is_one_run_of_last_messages() -> None:
    events = DOCUMENTS["langgraph-stream"]["langgraph_stream"]
    raw = "".join(f"event: {event['event']}\ndata: {json.dumps(event['data'])}\n\n" for event in events)
    (found,) = ReadLog(raw.encode()).trajectories
    assert ([step.text for step in found.steps], found.id) == (
        ["Good morning to you.", "Good day to you too."],
        "r7",
    )


def test_recorded_answers_of_a_client_are_read_without_their_requests() -> None:
    answer = {"candidates": [{"content": {"role": "model", "parts": [{"text": "It is "}]}, "index": 0}]}
    rest = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Paris."}]}, "index": 0}]}
    rows = [
        {"method": "generateContent", "response": answer},
        {"method": "generateContentStream", "response": [answer, rest]},
    ]
    read = ReadLog("\n".join(map(json.dumps, rows)).encode())
    assert [each.steps[0].text for each in read.trajectories] == ["It is ", "It is Paris."]
    assert read.errors == []


def test_a_type_that_is_no_text_is_refused_in_words() -> None:
    for kind in ({}, [], 7):
        read = read_document({"messages": [{"type": kind, "content": "Hello there."}]})
        assert read.trajectories == [] and len(read.errors) == 1


def test_events_of_agno_are_one_run_with_its_call() -> None:
    events = DOCUMENTS["agno-events"]
    for raw in (json.dumps(events).encode(), "\n".join(map(json.dumps, events)).encode()):
        (found,) = ReadLog(raw).trajectories
        first, second = found.steps
        assert (first.text, first.tool_calls[0].arguments, first.speaker) == (
            "I look. ",
            {"order": 7},
            "Desk",
        )
        assert first.observation[0].content[0].text == "in Ulm"
        assert (second.text, found.id, found.metadata["model"]) == ("It is in Ulm.", "r7", "gpt-4o")


def test_what_only_the_end_of_a_run_of_agno_says_is_read() -> None:
    about = {"run_id": "r7", "team_id": "team", "team_name": "Team"}
    found = only([{"event": "TeamRunCompleted", "content": "Done.", "metrics": {"input_tokens": 5}} | about])
    assert (found.steps[0].text, found.agent, found.metadata["usage"]) == (
        "Done.",
        "Team",
        {"input_tokens": 5},
    )
    assert detected({"event": "RunContent", "content": "x"}) is None

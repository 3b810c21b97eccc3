"""Runs that are recognised by their shape alone: deep in a document, a turn a record, as text, as YAML."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.trajectories import formats
from benchmarks.unseen_files import lost_texts, read, source_texts, table
from tests.trajectories.general.documents import DOCUMENTS, REACT
from tests.trajectories.logs import ReadLog, read_document, read_lines, sources
from tests.trajectories.real_files import comes_back

TURNS = [
    {"turn": 1, "role": "attacker", "content": "What are you able to do for me?"},
    {"turn": 1, "role": "target", "content": "I answer questions about orders."},
]
ASKED, TOLD, THANKS = "Where is my order?", "It left on Monday.\nIt comes by post.", "Thanks."
TEXTS = {
    "colon": f"User: {ASKED}\nAssistant: {TOLD}\n\nUser: {THANKS}\n",
    "bold": f"# A talk\n\n**User:** {ASKED}\n\n**Assistant:** {TOLD}\n\n**User:** {THANKS}",
    "heading": f"## Human\n{ASKED}\n## Assistant\n{TOLD}\n## Human\n{THANKS}\n",
    "brackets": f"[USER]\n{ASKED}\n[BOT]\n{TOLD}\n[USER]\n{THANKS}",
    "dashes": f"=== user ===\n{ASKED}\n=== assistant ===\n{TOLD}\n=== user ===\n{THANKS}",
    "chat marks": "".join(
        f"<|im_start|>{role}\n{text}<|im_end|>\n"
        for role, text in (("user", ASKED), ("assistant", TOLD), ("user", THANKS))
    ),
    "tags": f"\n\n<user> {ASKED}\n<assistant> {TOLD}\n<user> {THANKS}\n",
    "times": f"[2026-01-02 10:11:12] Customer: {ASKED}\n[2026-01-02 10:11:20] Desk: {TOLD}\n"
    f"[2026-01-02 10:12:00] Customer: {THANKS}\n[2026-01-02 10:12:01] Desk: Good bye.\n",
}


def test_runs_deep_in_a_document_are_trajectories_with_what_stands_around_them() -> None:
    found = read_document(DOCUMENTS["enclosed-runs"])
    assert (found.format, found.errors, found.dropped) == ("enclosed-runs", [], [])
    first, second = found.trajectories
    assert [sources(each) for each in (first, second)] == ["uaa", "uaa"]
    assert first.steps[0].text == first.task.instruction == "Which river flows through Ulm?"
    assert first.steps[1].text == "I look for Ulm, trial 1."
    assert first.steps[1].observation[0].content[0].text == "Ulm is a town on the Danube."
    assert (first.success, second.success) == (False, True)
    assert first.metadata["run_path"] == "/trials/0/path"
    assert second.metadata["target_model"] == "small-7b" and second.metadata["trial"] == 2
    assert all(map(comes_back, found.trajectories))


def test_messages_are_read_before_steps_next_to_them() -> None:
    steps = [{"tool_name": "look", "arguments": {"order": "7"}, "result": "in Ulm, at the post office"}]
    messages = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "In Ulm."}]
    row = {"data": {"result": {"log": {"entries": messages}, "calls": steps}}, "level": 7}
    (found,) = read_document(row | {"question": "Where?"}).trajectories
    assert sources(found) == "ua" and found.metadata["calls"] == steps
    only_steps = {"data": {"result": {"calls": steps}}, "level": 7}
    (found,) = read_document(only_steps).trajectories
    call = found.steps[0].tool_calls[0]
    assert (call.name, call.arguments) == ("look", {"order": "7"})


@pytest.mark.parametrize("holder", ["few_shot_examples", "examples", "tools", "expected"])
def test_examples_and_what_was_expected_are_no_runs(holder: str) -> None:
    messages = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "In Ulm."}]
    assert formats.find_within({"level": 1, holder: {"of": messages}}) is None
    assert formats.find_within({"level": 1, "log": {"of": messages}}) is not None


def test_an_answer_next_to_the_run_is_only_its_end() -> None:
    row = DOCUMENTS["enclosed-runs"]["trials"][0]
    read = read_document({"id": 7, "question": "Which river?", "final_answer": "Danube", "trials": [row]})
    assert read.format == "enclosed-runs" and [sources(each) for each in read.trajectories] == ["uaa"]


def test_turns_of_records_are_gathered_by_their_conversation() -> None:
    def row(conversation: str, speaker: str, text: str) -> dict[str, Any]:
        return {"conversation_id": conversation, "speaker": speaker, "text": text, "turn_index": 0}

    rows = [row("a", "customer", "Hi."), row("b", "customer", "Help."), row("a", "support_bot", "Hello."),
            row("b", "support_bot", "With what?")]  # fmt: skip
    read = read_lines(rows)
    assert read.format == "turn-rows" and [sources(each) for each in read.trajectories] == ["ua", "ua"]
    assert [each.id for each in read.trajectories] == ["a", "b"]
    assert read.trajectories[0].steps[1].speaker == "support_bot"
    csv = "conversation_id,speaker,text\na,customer,Hi there\na,agent,Hello to you\n"
    assert sources(ReadLog(csv.encode()).only) == "ua"
    read = read_lines([row("a", "Ann", "Hi."), row("a", "Bob", "Hello.")])
    assert read.trajectories == [] and "'Ann', 'Bob', of whom none is known as the agent" in read.errors[0]


@pytest.mark.parametrize("name", TEXTS)
def test_conversations_written_as_text(name: str) -> None:
    found = ReadLog(TEXTS[name].encode()).only
    assert sources(found)[:3] == "uau"
    assert found.steps[0].text == ASKED
    told = next(step for step in found.steps if step.source == "agent")
    assert told.text == TOLD
    assert lost_texts(TEXTS[name].encode(), [found]) == []


def test_texts_that_only_look_like_conversations_are_not_read() -> None:
    for text in (
        "Model: small\nUser: root\n",
        "Note: one\nUser: Where is it?\nNote: two\n",
        "# Guide\n" + "A line of a guide.\n" * 12 + "User: Hi.\nAssistant: Hello.\nUser: Bye.\n",
        "## Model Outputs\none\n## Best Model Identifier\ntwo\n## Human\nthree\n",
    ):
        read = ReadLog(text.encode())
        assert read.trajectories == [] and read.errors, text


def test_a_run_of_react_is_a_file_too() -> None:
    found = ReadLog(REACT.encode()).only
    assert sources(found) == "uaa" and found.steps[1].text == "I look for the town of Ulm."


def test_yaml_is_read_as_json_would_be() -> None:
    text = "name: a\nlog:\n  messages:\n  - role: user\n    content: Hi.\n  - role: assistant\n    content: Hello.\n"
    assert sources(ReadLog(text.encode()).only) == "ua"
    rows = "- prompt: Where is Ulm?\n  response: On the Danube.\n- prompt: And Bonn?\n  response: On the Rhine.\n"
    assert [sources(each) for each in ReadLog(rows.encode()).trajectories] == ["ua", "ua"]
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nmessages: [*b, *b]\n"
    assert ReadLog(bomb.encode()).trajectories == []


def test_answers_by_their_names_to_prompts_elsewhere() -> None:
    for name in ("completion", "raw_response", "gpt_4_answer", "agent_output"):
        (found,) = read_document({"problem_id": 7, name: "It is 42.", "reward": 0.5}).trajectories
        assert (sources(found), found.task.id, found.reward) == ("a", "7", 0.5)
    (found,) = read_document(
        {"id": 1, "ticket_text": "I forgot it.", "ai_response": "Reset it."}
    ).trajectories
    assert (sources(found), found.steps[0].text) == ("ua", "I forgot it.")
    (found,) = read_document({"prompt_id": "q7", "model": "small", "response": "I pause."}).trajectories
    assert (sources(found), found.task.id, found.agent) == ("a", "q7", "small")
    assert formats.find({"prompt_id": "q7", "response": "I pause."}) is None  # whose it is
    assert formats.find({"problem_id": 7, "reference_answer": "It is 42."}) is None


def test_a_conversation_in_one_text() -> None:
    row = {"id": 3, "dialogue": "User: Where is it?\nAssistant: In Ulm.\nUser: Thanks.", "score": 2}
    assert sources(read_document(row).only) == "uau"


def test_steps_of_records_are_one_run() -> None:
    def step(number: int, **around: Any) -> dict[str, Any]:
        action = {"action_type": "calculator", "payload": f"{number} + 1"}
        return {"step_number": number, "action": action, "observation": {"result": number + 1}} | around

    read = read_lines([step(1), step(2, reward=1.0)])
    assert read.format == "step-rows" and [sources(each) for each in read.trajectories] == ["aa"]
    call = read.only.steps[1].tool_calls[0]
    assert (call.name, call.arguments, read.only.steps[1].reward) == ("calculator", "2 + 1", 1.0)
    read = read_lines([step(1, run_id="a"), step(1, run_id="b"), step(2, run_id="a")])
    assert [sources(each) for each in read.trajectories] == ["aa", "a"]
    read = read_lines([step(1), step(2), step(1)])
    assert read.trajectories == [] and "give each step the `run_id` of its run" in read.errors[0]


def test_turns_of_an_attack_have_roles() -> None:
    read = read_document(
        {"session_id": "s1", "attempts": [{"strategy": "trust", "turns": TURNS}], "total": 1}
    )
    assert [sources(each) for each in read.trajectories] == ["ua"]


def test_the_report_finds_texts_that_vanished(tmp_path: Path) -> None:
    raw = json.dumps({"messages": [{"role": "user", "content": "A question of some length"}]}).encode()
    assert source_texts(raw) == ["A question of some length"]
    assert lost_texts(raw, []) == ["A question of some length"]
    (tmp_path / "a.json").write_text(json.dumps(DOCUMENTS["enclosed-runs"]))
    (tmp_path / "b.json").write_text('{"x": 1}')
    first, second = (read(tmp_path / name) for name in ("a.json", "b.json"))
    assert first.trajectories == 2 and first.texts == 5 and first.lost == []
    assert second.trajectories == 0 and "| b.json |  | 0 | 0 | 0 | 0 | 1 | The record is" in table([second])

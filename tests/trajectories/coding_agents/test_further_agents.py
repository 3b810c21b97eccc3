"""Kimi, Antigravity, Grok, Droid and Hermes, in the shape of published sessions."""

from typing import Any

from tests.trajectories.coding_agents.further_examples import ANTIGRAVITY, DROID, GROK, KIMI, KIMI_CLI
from tests.trajectories.logs import read_document, read_lines, sources, step_counts


def test_a_session_of_kimi_code_has_its_steps_once() -> None:
    read = read_lines(KIMI)
    found = read.only
    assert (read.format, found.agent, found.metadata["model"]) == ("kimi", "Kimi", "kimi-k2.7-code")
    assert sources(found) == "suasa" and found.steps[2].reasoning == "I need ls."
    assert [step.text for step in found.steps].count("List.") == 1 and step_counts(found)["tied"] == 1
    assert found.steps[2].metrics["cache_read_tokens"] == 24064 and not read.dropped


def test_prompts_of_kimi_code_are_read_where_its_messages_are_not_logged() -> None:
    without = [event for event in KIMI if event["type"] != "context.append_message"]
    assert sources(read_lines(without).only) == "suaa"


def test_parts_of_kimi_cli_are_one_answer_a_step() -> None:
    found = read_lines(KIMI_CLI).only
    assert sources(found) == "uaa" and found.steps[1].tool_calls[0].arguments == {"pattern": "*.go"}
    assert (found.steps[1].reasoning, found.steps[2].text) == ("Let me plan.", "Found it.")
    assert step_counts(found)["tied"] == 1 and found.steps[1].metrics == {
        "output_tokens": 50,
        "input_tokens": 10,
    }


def test_a_context_of_kimi_cli_has_notes_between_its_messages() -> None:
    think = [{"type": "think", "think": "I need it.", "encrypted": None}, {"type": "text", "text": "Two."}]
    found = read_lines(
        [
            {"role": "_system_prompt", "content": "You are Kimi."},
            {"role": "_checkpoint", "id": 0},
            {"role": "user", "content": [{"type": "text", "text": "How many?"}]},
            {"role": "_usage", "token_count": 150},
            {"role": "assistant", "content": think},
        ]
    ).only
    assert sources(found) == "sua" and (found.steps[2].reasoning, found.steps[2].text) == (
        "I need it.",
        "Two.",
    )
    assert {"role": "_usage", "token_count": 150} in found.metadata["events"]


def test_results_of_antigravity_are_of_the_call_that_their_type_names() -> None:
    read = read_lines(ANTIGRAVITY)
    found = read.only
    assert (read.format, sources(found), found.task.instruction) == (
        "antigravity",
        "uaasa",
        "List the files.",
    )
    viewed, listed = found.steps[1], found.steps[2]
    assert viewed.observation[0].content[0].text == "1: hello" and viewed.reasoning == "Listing."
    assert listed.observation[0].content[0].text == '{"name":"a.txt"}' and step_counts(found)["tied"] == 2
    assert listed.tool_calls[0].arguments == {"DirectoryPath": "/tmp", "Depth": 2}


def test_a_tool_of_antigravity_that_no_call_names_is_of_the_environment() -> None:
    searched = ANTIGRAVITY[4] | {"type": "SEARCH_WEB", "content": "Nothing."}
    assert sources(read_lines([*ANTIGRAVITY[:6], searched, *ANTIGRAVITY[6:]]).only) == "uaaesa"


def test_thoughts_of_grok_are_of_the_answer_after_them() -> None:
    read = read_lines(GROK)
    found = read.only
    assert (read.format, found.agent, found.metadata["model"]) == ("grok", "Grok", "grok-4.5")
    assert sources(found) == "ssuaaaua" and found.task.instruction == "Read hello.py."
    assert (found.steps[3].text, found.steps[3].reasoning) == ("I'll read it.", "I should read it.")
    assert found.steps[4].tool_calls[0].name == "web_search" and found.steps[5].reasoning == "I can answer."
    assert step_counts(found)["tied"] == 1 and not read.dropped


def test_lines_of_langchain_are_no_chat_of_grok() -> None:
    lines = [
        {"type": "system", "content": "Be brief."},
        {"type": "human", "content": "Hi"},
        {"type": "ai", "content": "Hello", "tool_calls": [], "usage_metadata": {"input_tokens": 3}},
    ]
    found = read_lines(lines).only
    assert sources(found) == "sua" and found.agent != "Grok"


def test_a_run_of_droid_ends_with_its_last_answer_once() -> None:
    read = read_lines(DROID)
    found = read.only
    assert (read.format, found.id, found.agent, sources(found)) == ("droid", "d1", "Droid", "uaaa")
    assert step_counts(found)["tied"] == 1 and found.metadata["usage"] == {
        "input_tokens": 10,
        "output_tokens": 5,
    }
    said = DROID[2] | {"text": "Three."}
    assert sources(read_lines([*DROID[:5], said, DROID[5]]).only) == "uaaa"


def test_a_run_of_droid_may_begin_as_one_of_claude_code() -> None:
    begin: dict[str, Any] = DROID[0] | {"subtype": "init", "tools": ["Execute"]}
    found = read_lines([begin, *DROID[1:]]).only
    assert (found.agent, sources(found)) == ("Droid", "uaaa")


def test_a_session_of_droid_is_a_tree_as_one_of_pi() -> None:
    header = {"type": "session_start", "id": "d2", "title": "Counting", "cwd": "/tmp", "version": "0.81.0"}
    asked = {"role": "user", "content": [{"type": "text", "text": "Count."}]}
    called = {"type": "tool_use", "id": "tu1", "name": "Execute", "input": {"command": "wc"}}
    messages = [
        asked,
        {"role": "assistant", "content": [called]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "tu1", "content": "3"}]},
    ]
    entries = [
        {
            "type": "message",
            "id": f"m{place}",
            "parentId": f"m{place - 1}",
            "timestamp": "t",
            "message": message,
        }
        for place, message in enumerate(messages)
    ]
    found = read_lines([header, *entries]).only
    assert (found.id, found.agent, found.agent_version, found.metadata["title"]) == (
        "d2", "Droid", "0.81.0", "Counting",
    )  # fmt: skip
    assert sources(found) == "ua" and step_counts(found)["tied"] == 1


def test_a_session_of_hermes_ends_with_a_note() -> None:
    document = {
        "session_id": "h1",
        "model": "gpt-5.2",
        "platform": "telegram",
        "system_prompt": "You are Hermes.",
        "messages": [
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": "In Ulm.", "finish_reason": "stop"},
            {"role": "session_meta"},
        ],
    }
    found = read_document(document).only
    assert sources(found) == "sua" and found.steps[0].text == "You are Hermes."

"""Logs of programs that few formats share: OpenClaw, Copilot, Kaggle, Vivaria, ScreenAgent, HAL, old tests of
ADK, and rows of data sets under other names."""

import json
from typing import Any

from tests.trajectories.benchmarks.documents import FEW_SHOT, KAGGLE, VIVARIA
from tests.trajectories.coding_agents.examples import COPILOT, COPILOT_CLI, OPENCLAW
from tests.trajectories.computer_use.documents import SCREEN_AGENT
from tests.trajectories.logs import read_document, read_lines, sources, step_counts
from tests.trajectories.reading import read_bytes, zipped


def _calls(found: Any) -> list[tuple[str, Any, list[str | None]]]:
    return [
        (call.name, call.arguments, [part.text for result in step.observation for part in result.content])
        for step in found.steps
        for call in step.tool_calls
    ]


def test_openclaw_is_put_together_from_its_events() -> None:
    found = read_lines(OPENCLAW).only
    assert sources(found) == "uaa" and found.id == "agent:main:main"
    assert _calls(found) == [("exec", {"command": "whoami"}, ['{"success": true, "durationMs": 291}'])]


def test_the_messages_of_an_openclaw_session_are_preferred() -> None:
    messages = [
        {"role": "user", "content": "Who am I?"},
        {"role": "custom", "content": "A note.", "customType": "x"},
        {
            "role": "assistant",
            "content": [{"type": "toolCall", "id": "c1", "name": "exec", "arguments": {"c": "id"}}],
        },
        {"role": "toolResult", "toolCallId": "c1", "content": [{"type": "text", "text": "root"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "You are root."}]},
    ]
    end = {"type": "agent.end", "sessionKey": "agent:main:main", "agentId": "main", "messages": messages}
    found = read_lines([*OPENCLAW, end]).only
    assert sources(found) == "usaa" and _calls(found) == [("exec", {"c": "id"}, ["root"])]


def test_copilot_ties_results_by_span_and_by_name() -> None:
    found = read_lines(COPILOT).only
    assert _calls(found) == [
        ("read_file", {"path": "config.py"}, ["DEBUG = True"]),
        ("run", {"command": "pytest"}, ["5 passed"]),
    ]


def test_the_command_line_of_copilot_ties_results_and_names_its_sub_agents() -> None:
    found = read_lines(COPILOT_CLI).only
    assert sources(found) == "uaa" and (found.id, found.agent_version) == ("s1", "1.0.77")
    assert _calls(found) == [("bash", {"command": "ls"}, ["a.py"])]
    assert (found.steps[1].reasoning, found.steps[2].speaker) == ("I need ls.", "Explore")


def test_a_call_of_copilot_that_no_message_has_is_read_from_its_start() -> None:
    found = read_lines([*COPILOT_CLI[:3], *COPILOT_CLI[4:6]]).only
    assert _calls(found) == [("bash", {"command": "ls"}, ["a.py"])]


def test_a_recording_of_the_agent_sdk_is_a_session_of_claude_code() -> None:
    answer = {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "4"}]}
    sent = [
        {"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize"}},
        {"type": "user", "message": {"role": "user", "content": "2 and 2?"}, "session_id": "default"},
        {"type": "assistant", "message": answer, "session_id": "s1"},
        {"type": "result", "subtype": "success", "is_error": False, "result": "4", "session_id": "s1"},
    ]
    messages = [{"direction": "recv", "message": each} for each in sent]
    read = read_document({"metadata": {"cli_version": "1.0"}, "messages": messages})
    assert sources(read.only) == "ua" and read.format == "claude-code"


def test_a_span_without_ids_whose_answer_is_one_content_of_gemini() -> None:
    given = {
        "gen_ai.operation.name": "llm_call",
        "gen_ai.request.model": "gemini-x",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"text": "Hi"}]}]),
        "gen_ai.output.messages": json.dumps({"parts": [{"text": "Hello"}]}),
    }
    found = read_document({"scopeName": "gemini-cli", "spanName": "llm_call", "attributes": given}).only
    assert [(step.source, step.text) for step in found.steps] == [("user", "Hi"), ("agent", "Hello")]


def test_a_result_of_a_tape_is_what_was_observed() -> None:
    steps = [
        {"kind": "user", "content": "Add"},
        {"kind": "execute_code", "code": [{"code": "1+1"}]},
        {"kind": "code_execution_result", "result": {"exit_code": 0, "output": "2"}},
    ]
    found = read_document({"metadata": {"id": "t"}, "steps": steps}).only
    assert sources(found) == "ua" and len(found.steps[1].observation) == 1


def test_each_player_of_an_episode_is_a_trajectory() -> None:
    waits = {"action": {"submission": -1}, "observation": {"seen": "nothing"}, "status": "INACTIVE"}
    episode = {key: value for key, value in KAGGLE.items() if key != "player"} | {
        "rewards": [6.0, 4.0],
        "info": {"TeamNames": ["gpt-x", "other"], "EpisodeId": 73},
        "steps": [
            [KAGGLE["steps"][0][0], waits],
            [KAGGLE["steps"][1][0], waits | {"status": "ACTIVE"}],
            [KAGGLE["steps"][2][0], waits | {"action": "yes"}],
        ],
    }
    first, second = read_document(episode).trajectories
    assert (first.agent, first.reward, first.id) == ("gpt-x", 6.0, "73/0")
    assert [step.reasoning for step in first.steps if step.source == "agent"] == ["One is fair."]
    assert (second.agent, second.reward) == ("other", 4.0)
    assert [(name, arguments) for name, arguments, _ in _calls(second)] == [("act", {"action": "yes"})]


def test_a_run_of_vivaria_is_what_the_model_was_asked_last() -> None:
    found = read_lines(VIVARIA).only
    assert sources(found) == "suaa" and found.steps[-1].text == "12" and found.agent == "gpt-x"
    assert (found.metadata["usage"], found.metadata["cost"]) == (
        {"input_tokens": 10, "output_tokens": 4},
        0.5,
    )
    actions = [
        {"runId": 8, "index": 1, "content": {"type": "action", "action": {"type": "bash", "command": "ls"}}},
        {"runId": 8, "index": 2, "content": {"type": "observation", "observation": {"out": "a.py"}}},
    ]
    assert _calls(read_lines(actions).only) == [
        ("action", actions[0]["content"]["action"], ['{"out": "a.py"}'])
    ]  # type: ignore[index]


def test_the_answers_of_a_session_of_screenagent_are_one_run() -> None:
    later = SCREEN_AGENT | {"saved_image_name": "2023-12-20_19-40-00.jpg", "LLM_response_editer": "Done."}
    raw = zipped({"s/2.json": json.dumps(later), "s/1.json": json.dumps(SCREEN_AGENT)})
    (found,), refused, _ = read_bytes(raw)
    assert not refused and sources(found) == "uaua" and found.task.id == "s1"
    assert (found.steps[0].text, found.steps[1].text) == (
        "You see a screen. What is the plan?",
        "I open the browser.",
    )
    assert found.steps[1].tool_calls[0].name == "MouseAction"


def test_few_shot_examples_have_results_without_calls() -> None:
    found = read_document(FEW_SHOT).only
    assert sources(found) == "uaa" and found.steps[0].text == "Cancel it.\nMy id is 7."
    assert (
        found.steps[1].observation[0].content[0].text == "user not found"
        and not step_counts(found)["orphans"]
    )


def test_an_old_eval_set_of_adk_has_a_trajectory_for_each_case() -> None:
    turn = {"query": "Hi", "expected_tool_use": [], "reference": "Hello."}
    cases = [
        {"name": name, "data": [turn], "initial_session": {"state": {"a": "one"}}} for name in ("x", "y")
    ]
    read = read_document(cases)
    assert read.format == "adk-tests" and [each.task.id for each in read.trajectories] == ["x", "y"]


def test_rows_under_other_names() -> None:
    paired = read_document({"qid": 7, "question": "Why?", "response_j": "So.", "response_k": "No idea."})
    assert paired.format == "preference" and [each.steps[-1].text for each in paired.trajectories] == [
        "So.",
        "No idea.",
    ]
    scored = read_document({"prompt": "Why?", "outputs": [["So.", "0.25"], ["No.", "-1"]]})
    assert scored.format == "prompt-samples" and [each.reward for each in scored.trajectories] == [0.25, -1.0]
    told = {
        "id": "t1",
        "confirmed_task": "Book it.",
        "action_reprs": ["[svg]   -> CLICK", "[combobox]  Time -> SELECT: 5"],
    }
    found = read_document(told).only
    assert _calls(found) == [
        ("click", {"target": "[svg]"}, []),
        ("select", {"target": "[combobox]  Time", "value": "5"}, []),
    ]
    turns = [
        {"user": "Look.", "assistant": "I look.", "tool_calls": []},
        {"user": "And?", "assistant": "Done."},
    ]
    assert sources(read_document(turns).only) == "uaua"

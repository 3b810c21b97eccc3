"""Data sets and harnesses of agents: what their files hold is what is read of them."""

import json
from typing import Any

import pytest

from apps.trajectories import formats
from tests.trajectories.benchmarks import documents
from tests.trajectories.benchmarks.documents import DOCUMENTS
from tests.trajectories.benchmarks.run_documents import TAU2
from tests.trajectories.conftest import lines
from tests.trajectories.reading import media, read_bytes, read_one, zipped
from tests.trajectories.real_files import comes_back
from workers.schema import Trajectory


def calls(run: Trajectory) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for step in run.steps for call in step.tool_calls]


def results(run: Trajectory) -> list[str | None]:
    return [result.content[0].text for step in run.steps for result in step.observation]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_is_claimed_by_one_format_and_comes_back(name: str) -> None:
    claims = [format.name for format in formats.FORMATS.values() if format.sniff(DOCUMENTS[name])]
    assert claims[0] == name
    assert comes_back(read_one(DOCUMENTS[name]))


def test_agent_data_protocol() -> None:
    run = read_one(documents.ADP)
    assert [step.source for step in run.steps] == ["user", "agent", "agent", "agent"]
    assert calls(run) == [("goto", {"url": "https://shop.example"}), ("bash", {"code": "ls"})]
    opened, looked, told = run.steps[1:]
    assert (opened.text, opened.reasoning, opened.reward) == ("I open the shop.", "The shop has it.", 0.5)
    assert [result.call_id for result in opened.observation] == ["call_1"]
    assert results(run) == ["[1] link 'Shoes'", "shoes.txt"]  # right after a call, whoever is its source
    assert media(run) == ["shots/1.png"]
    assert (told.text, told.reasoning) == ("It costs 5.", "Done.")
    assert (run.id, run.agent, run.success, run.task.instruction) == (
        "adp-1",
        "gpt-4o",
        True,
        "Find the price.",
    )
    assert looked.tool_calls[0].id is None


def test_an_observation_goes_to_the_call_it_names() -> None:
    first, second = (
        {"class_": "api_action", "function": name, "kwargs": {}, "tool_call_id": f"c-{name}"}
        for name in ("a", "b")
    )
    seen = [
        {"class_": "text_observation", "content": name, "source": "environment", "tool_call_id": f"c-{name}"}
        for name in ("b", "a")
    ]
    run = read_one({"id": "x", "content": [first, second, *seen]})
    assert [step.observation[0].content[0].text for step in run.steps] == ["a", "b"]


def test_agent_bench() -> None:
    run = read_one(documents.AGENT_BENCH)
    assert calls(run) == [("bash", {"code": "ls /etc | wc -l\n"}), ("answer", "220")]
    assert [step.text for step in run.steps] == ["Count the files in /etc.", "I count.", "It is 220."]
    assert results(run) == ["The output of the OS:\n220"]
    assert (run.task.id, run.success, run.reward) == ("7", True, None)
    broken = documents.AGENT_BENCH | {"output": {"status": "agent context limit"}}
    _, (error,), _ = read_bytes(lines(broken))
    assert "the run ended before the agent" in error.message and "context limit" in error.message


def test_toolbench_follows_the_path_that_ended_it() -> None:
    found, _, reader = read_bytes(lines(documents.TOOLBENCH))
    (run,) = found
    assert calls(run) == [("search_for_shop", {}), ("Finish", {"return_type": "give_answer"})]
    assert results(run) == ['{"error": "", "response": "5"}']
    assert run.task.instruction == "What do shoes cost?"
    assert (run.success, run.metadata["win"]) == (None, True)  # that it answered, not that it is right
    assert run.metadata["tools"][0]["name"] == "search_for_shop"
    assert {each["path"] for each in reader.dropped.as_json()} == {"/tree"}


@pytest.mark.parametrize(
    "holder", [{"trys": [NODES := documents.NODES]}, {"tree": {"tree": {"children": []}}}]
)
def test_toolbench_without_an_answer_reads_the_last_try(holder: dict[str, Any]) -> None:
    node: dict[str, Any] = {"node_type": "Action Input", "description": ""}
    for each in reversed(NODES):
        node = each | {"children": [node] if node.get("description") else []}
    given = holder if "trys" in holder else {"tree": {"tree": {"node_type": "root", "children": [node]}}}
    run = read_one({"win": False, "answer_generation": {"query": "What?", "valid_data": False}} | given)
    assert [step.text for step in run.steps] == ["What?", "I search."]
    assert calls(run) == [("search_for_shop", {"q": "shoes"})] and results(run) == ["none"]


def test_tool_eval_files_hold_a_run_for_each_query() -> None:
    raw = json.dumps({"1187": documents.TOOL_EVAL, "7": documents.TOOL_EVAL}).encode()
    (run, other), refused, _ = read_bytes(raw)
    assert not refused and (run.task.id, other.task.id, run.agent) == ("1187", "7", "chatgpt_CoT")
    assert calls(run) == [("search_for_shop", {}), ("Finish", {"a": 1})]
    assert results(run) == ["It's 5"]


def test_bfcl_of_several_turns() -> None:
    run = read_one(documents.BFCL)
    assert [step.source for step in run.steps] == ["user", "agent", "agent"]
    assert calls(run) == [("cd", {"folder": "docs"}), ("ls", {})]
    assert results(run) == ['{"current": "docs"}', '{"files": ["a"]}']
    assert (run.steps[1].reasoning, run.steps[2].text) == ("First in.", "There is one file.")
    assert run.steps[1].metrics == {"input_tokens": 100, "output_tokens": 10, "seconds": 1.5}
    assert (
        run.metadata["usage"] == {"input_tokens": 220, "output_tokens": 15} and run.metadata["seconds"] == 2.0
    )
    assert (run.task.id, run.task.instruction) == ("multi_turn_base_0", "List the docs.")


def test_bfcl_of_a_prompted_model_has_its_calls_as_they_were_decoded() -> None:
    document = json.loads(json.dumps(documents.BFCL))
    document["inference_log"][1]["step_0"][0]["content"] = "[cd(folder='docs'), ls()]"
    run = read_one(document)
    assert run.steps[1].text == "[cd(folder='docs'), ls()]"
    assert calls(run) == [("cd", "folder='docs'"), ("ls", "")]


def test_bfcl_scores() -> None:
    summary = {"accuracy": 0.5, "correct_count": 1, "total_count": 2}
    score = {
        "id": "simple_7",
        "model_name": "m1",
        "valid": False,
        "error": ["wrong value"],
        "prompt": {"question": [[{"role": "user", "content": "Area?"}]], "function": [{"name": "area"}]},
        "model_result": [{"area": {"side": 3}}],
        "possible_answer": {"ground_truth": [{"area": {"side": [4]}}]},
    }
    (run,), refused, reader = read_bytes(lines(summary, score))
    assert not refused and (run.agent, run.success, run.task.instruction) == ("m1", False, "Area?")
    assert calls(run) == [("area", {"side": 3})]
    assert run.metadata["possible_answer"] and "ground_truth" not in json.dumps(
        [step.extra for step in run.steps]
    )
    assert reader.dropped.counts  # the summary


def test_gaia() -> None:
    run = read_one(documents.GAIA)
    (step,) = run.steps
    assert (run.task.id, step.text, step.reasoning) == ("c61d22de", "17", "I counted them.")
    asked = read_one(
        documents.GAIA | {"question": "How many?", "model_answer": 17, "reasoning_trace": ["a", "b"]}
    )
    assert [each.text for each in asked.steps] == ["How many?", "17"]
    assert asked.metadata["reasoning_trace"] == ["a", "b"]


def test_hal() -> None:
    run = read_one(documents.HAL)
    assert (run.task.id, run.reward, run.success, run.agent) == ("0", 1.0, True, "Generalist (gpt-4o)")
    assert [step.text for step in run.steps] == ["Book it.", "Booked."]
    assert (
        run.metadata["usage"] == {"input_tokens": 30, "output_tokens": 5}
        and run.metadata["model"] == "gpt-4o"
    )


def test_hal_with_all_calls_of_weave_reads_the_longest_of_a_task() -> None:
    def call(task: str, *texts: str) -> dict[str, Any]:
        return {
            "weave_task_id": task,
            "inputs": {"model": "m", "messages": [{"role": "user", "content": text} for text in texts]},
            "output": {"choices": [{"message": {"role": "assistant", "content": f"to {texts[-1]}"}}]},
        }

    log = [call("1", "a"), call("1", "a", "b"), call("0", "c"), {"weave_task_id": "2"}]
    first, second = read_bytes(json.dumps(documents.HAL | {"raw_logging_results": log}).encode())[0]
    assert [(run.task.id, run.steps[-1].text, run.success) for run in (first, second)] == [
        ("1", "to b", False),
        ("0", "to c", True),
    ]
    _, (error,), _ = read_bytes(lines(documents.HAL | {"raw_logging_results": []}))
    assert "has no messages of any task" in error.message


def test_react() -> None:
    run = read_one(documents.REACT)
    assert [step.source for step in run.steps] == ["user", "agent", "user", "agent", "agent"]
    assert calls(run) == [("act", {"action": "go to shelf 1"}), ("take", {"what": "bottle"})]
    assert [step.text for step in run.steps[3:]] == ["On the shelf.", ""]
    assert results(run) == ["You see a bottle."]
    assert (run.task.id, run.task.instruction) == ("alfworld_155", "Here is your task: find a bottle.")


def test_react_rows_of_one_question_are_one_task_and_rewards_are_outcomes() -> None:
    rows = [documents.REACT | {"id": f"Step {number}: What is it?", "reward": 1.0} for number in (3, 5)]
    runs = [read_one(row) for row in rows]
    assert {(run.task.instruction, run.task.id) for run in runs} == {("What is it?", "")}
    assert {(run.reward, run.success) for run in runs} == {(1.0, True)}


def test_swe_agent_as_rows() -> None:
    run = read_one(documents.SWE_ROW)
    assert [step.source for step in run.steps] == ["system", "user", "agent", "agent"]
    assert run.steps[0].text == "SETTING: You are an autonomous programmer."
    assert calls(run) == [("bash", {"command": "ls -la"}), ("bash", {"command": "submit"})]
    assert [step.text for step in run.steps[2:]] == ["I look.", "Done."] and results(run) == ["bug.py"]
    assert (run.task.id, run.task.instruction) == ("tomerfiliba__plumbum-366", "It breaks.")
    assert (run.success, run.agent, run.metadata["exit_status"]) == (True, "swe-agent-llama-70b", "submitted")
    assert "passed" not in json.dumps([step.text for step in run.steps])


def test_plain_conversations_are_no_react() -> None:
    talk = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Action: none of your business."}]
    assert not formats.FORMATS["react"].sniff({"conversations": talk})


def test_tau2_results_as_a_folder() -> None:
    simulation = TAU2["simulations"][0]  # type: ignore[index]
    index = {key: TAU2[key] for key in ("info", "tasks")} | {"timestamp": "2026"}
    raw = zipped({"run/results.json": json.dumps(index), "run/simulations/s1.json": json.dumps(simulation)})
    (run,), refused, _ = read_bytes(raw, "tau2")
    assert not refused
    whole = read_one(TAU2)
    assert (run.task, run.steps, run.reward, run.agent) == (
        whole.task,
        whole.steps,
        whole.reward,
        whole.agent,
    )
    _, (error,), _ = read_bytes(zipped({"run/results.json": json.dumps(index)}))
    assert "send all of it as a zip archive" in error.message


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (
            {"task_id": "cowthello", "score_cont": 0.5, "score_binarized": 0, "alias": "GPT-4"},
            "METR's table of runs",
        ),
        (
            {"instance_id": "a__b-1", "model_patch": "diff", "model_name_or_path": "m"},
            "predictions for SWE-bench",
        ),
        ({"id": "x", "results": [], "n_resolved": 1, "n_unresolved": 2}, "results of Terminal-Bench"),
        ({"version": 2, "width": 80, "height": 24, "timestamp": 1}, "a recording of a terminal by asciinema"),
    ],
)
def test_files_of_scores_are_refused_by_name(document: dict[str, Any], what: str) -> None:
    found, (error,), _ = read_bytes(lines(document))
    assert not found and what in error.message


def test_gaia_with_the_calls_of_tools() -> None:
    calls = [
        {"func_name": "search", "args": {"q": "x"}, "result": "nothing"},
        {"func_name": "stop", "args": None},
    ]
    row = {"task_id": "t", "model_answer": "x", "ground_truth": "y", "tool_calls": calls, "score": 0}
    found = read_one(row)
    assert [step.tool_calls[0].name for step in found.steps[:2]] == ["search", "stop"]
    assert found.steps[0].observation[0].content[0].text == "nothing" and not found.steps[1].observation
    assert (found.steps[-1].text, found.reward, found.task.reference) == ("x", 0.0, "y")

import json
from pathlib import Path

import pytest

from apps.core.errors import DomainError
from apps.trajectories import formats
from tests.trajectories.benchmarks.documents import DOCUMENTS as AGENT_DATA
from tests.trajectories.coding_agents import examples as coding_agents
from tests.trajectories.computer_use.documents import DOCUMENTS as COMPUTER_USE
from tests.trajectories.conftest import record
from tests.trajectories.data_rows.row_documents import ROWS
from tests.trajectories.frameworks.documents import DOCUMENTS as OF_FRAMEWORKS
from tests.trajectories.tracing import documents as traces
from workers import schema
from workers.errors import InvalidRecord

TAU = {
    "task_id": 7,
    "reward": 1.0,
    "trial": 2,
    "info": {"task": {"instruction": "You want a refund.", "actions": []}},
    "traj": [{"role": "user", "content": "Refund!"}, {"role": "assistant", "content": "Done."}],
}


MESSAGES = [
    {"role": "system", "content": "You fix bugs."},
    {"role": "user", "content": "Fix it."},
    {"role": "assistant", "content": "I look.\n\n```bash\nls -la\n```"},
    {"role": "user", "content": "<returncode>0</returncode>\n<output>\nbug.py\n</output>"},
]
SWE = {
    "trajectory": [{"action": "ls", "observation": "bug.py", "response": "I look.", "thought": "I look."}],
    "history": [
        {"role": "system", "content": "SETTING"},
        {"role": "user", "content": "A demonstration.", "is_demo": True},
        {"role": "user", "content": "Here's the issue text:\nISSUE:\nIt breaks.\n\nINSTRUCTIONS:\nNow go."},
        {"role": "assistant", "content": "I look.\n```\nls\n```", "thought": "I look.", "action": "ls"},
    ],
    "info": {"exit_status": "submitted"},
}
SAMPLE = {
    "id": 3,
    "epoch": 1,
    "input": "What is it?",
    "target": "a cat",
    "messages": [
        {"role": "user", "content": "attachment://q"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "I look."}],
            "tool_calls": [{"id": "c1", "function": "look", "arguments": {"at": "it"}}],
        },
        {"role": "tool", "content": "fur", "tool_call_id": "c1", "function": "look"},
        {"role": "assistant", "content": "A cat."},
    ],
    "scores": {"match": {"value": "C"}},
    "attachments": {"q": "What is it?"},
}
INSPECT = {"version": 2, "status": "success", "eval": {"task": "pets", "model": "m"}, "samples": [SAMPLE]}
MINT = {
    "state": {
        "history": [
            {"role": "user", "content": "Find it."},
            {"role": "assistant", "content": "<execute>look()</execute>"},
            {"role": "user", "content": "Observation: nothing"},
        ],
        "success": False,
        "terminate_reason": "max_steps",
    },
    "task": {"task_name": "house", "task_id": 0, "prompt": "Find it.", "reference": "there"},
}
WHO = {
    "is_correct": False,
    "question": "How many?",
    "question_ID": "q1",
    "ground_truth": "8",
    "history": [
        {"role": "assistant", "name": "Counter", "content": "You are to count."},
        {"role": "assistant", "name": "Counter", "content": "print(7)"},
        {"role": "user", "name": "Computer_terminal", "content": "7"},
        {"role": "user", "name": "Checker", "content": "Seven."},
    ],
    "mistake_agent": "Counter",
    "mistake_step": "1",
    "mistake_reason": "counted wrongly",
    "system_prompt": {"Counter": "You count.", "Checker": "You check."},
}


TAU2 = {
    "info": {
        "environment_info": {"domain_name": "telecom", "policy": "Be kind."},
        "agent_info": {"implementation": "llm_agent", "llm": "m"},
    },
    "tasks": [
        {"id": "7", "user_scenario": {"instructions": {"reason_for_call": "No net.", "known_info": None}}}
    ],
    "simulations": [
        {
            "id": "s1",
            "task_id": "7",
            "trial": 2,
            "termination_reason": "user_stop",
            "reward_info": {"reward": 1.0},
            "messages": [
                {"role": "assistant", "content": "Hi!", "turn_idx": 0},
                {"role": "user", "content": "No net."},
                {
                    "role": "assistant",
                    "content": "Restart.",
                    "tool_calls": [
                        {"id": "a1", "name": "look", "arguments": {"n": 1}, "requestor": "assistant"}
                    ],
                },
                {"role": "tool", "id": "a1", "content": "off", "requestor": "assistant", "error": False},
                {
                    "role": "user",
                    "content": None,
                    "tool_calls": [
                        {"id": "u1", "name": "restart", "arguments": {}, "requestor": "user"},
                        {"id": "u2", "name": "check", "arguments": {}, "requestor": "user"},
                    ],
                },
                {
                    "role": "tool",
                    "tool_messages": [
                        {"role": "tool", "id": "u1", "content": "done", "requestor": "user"},
                        {"role": "tool", "id": "u2", "content": "on", "requestor": "user"},
                    ],
                },
                {"role": "assistant", "content": "Good."},
            ],
        }
    ],
}
EPISODE = {
    "id": 4,
    "env_id": "Pendulum-v1",
    "seed": 9,
    "observations": {"angle": [[1.0], [0.5], [0.0]], "speed": [0, 1, 2]},
    "actions": [[0.1, 0.2], [0.3, 0.4]],
    "rewards": [-1.0, -0.5],
    "terminations": [False, True],
}


BROWSED = {
    "benchmark": "shop",
    "agent": "Generic",
    "model": "m",
    "goal": "Buy it.",
    "seed": 23,
    "experiment": "Generic_on_shop.8_23",
    "summary_info": {"cum_reward": 0.0},
    "steps": [
        {
            "num": 0,
            "action": "click('a51')",
            "reasoning": "I click.",
            "axtree_pruned": "page 1",
            "screenshot_path": "None",
        },
        {
            "num": 1,
            "action": "a; b",
            "reasoning": None,
            "axtree": "page 2",
            "screenshot_path": "s1.png",
            "url": "http://x/2",
        },
    ],
}


def test_each_is_told_by_its_sign() -> None:
    documents = {
        **COMPUTER_USE,
        **AGENT_DATA,
        "agentrx": TAU | {"traj": [message | {"index": 1} for message in TAU["traj"]]},  # type: ignore[attr-defined]
        "swe-agent": SWE,
        "otel": {"resourceSpans": []},
        "tau2": TAU2,
        "agent-reward-bench": BROWSED,
        "tape": {"metadata": {}, "steps": [{"kind": "task"}]},
        "gymnasium": EPISODE,
        "autolibra": {"points": [{"point_type": "action", "data": "Hello."}]},
        "mini-swe-agent": MESSAGES,
        "inspect": INSPECT,
        "mint": MINT,
        "who-and-when": WHO,
        "openai": record(),
        "tau-bench": TAU,
        "prompt-response": {"prompt": "a", "response": "b"},
        "atif": {"schema_version": "ATIF-v1.5", "steps": []},
        **coding_agents.EXAMPLES,
        **traces.FIRST_RECORDS,
        **OF_FRAMEWORKS,
        "call-log": OF_FRAMEWORKS["call-log"][0],
        **ROWS,
    }
    assert {name: formats.detect(document).name for name, document in documents.items()} == {
        name: name for name in formats.FORMATS
    }
    assert formats.detect(record()["messages"]).name == "openai"


def test_what_is_none_of_them_is_said_with_what_it_is() -> None:
    with pytest.raises(
        InvalidRecord, match=r"an object with the keys 'a', 'b'.*docs/formats.md lists every format"
    ):
        formats.detect({"a": 1, "b": 2})


def test_an_unknown_format_names_the_known() -> None:
    with pytest.raises(
        DomainError, match="no trajectory format 'csv'; choose from auto, atif, agentrx, tau-bench"
    ):
        formats.by_name("csv")


def test_tau_bench_keeps_what_leaks_out_of_the_steps() -> None:
    read = formats.FORMATS["tau-bench"].read(TAU)
    assert (read.task.id, read.task.instruction) == ("7", "You want a refund.")
    assert (read.reward, read.success) == (1.0, True)
    assert read.metadata["trial"] == 2
    assert "refund" not in json.dumps(schema.to_messages(read))
    assert formats.FORMATS["tau-bench"].read(TAU | {"reward": 0.0}).success is False


def test_openai_reads_what_surrounds_the_messages() -> None:
    around = {
        "id": 5,
        "agent": {"name": "mono", "version": 2},
        "reward": 0.5,
        "success": False,
        "temperature": 1,
    }
    read = formats.FORMATS["openai"].read(record(3, **around))
    assert (read.id, read.agent, read.agent_version, read.reward, read.success) == (
        "5",
        "mono",
        "2",
        0.5,
        False,
    )
    assert read.metadata == {"temperature": 1}
    assert read.task.id == "task-3"


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"reward": float("nan")}, "/reward"),
        ({"reward": "high"}, "/reward"),
        ({"success": 2}, "/success"),
        ({"task": {"id": [1]}}, "/task/id"),
        ({"agent": 3}, "/agent"),
        ({"messages": [{"role": "user", "content": "x"}]}, "/messages"),
        ({"messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]}, "/messages"),
    ],
)
def test_openai_points_at_what_is_wrong(fields: dict[str, object], pointer: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        formats.FORMATS["openai"].read(record(0, **fields))
    assert caught.value.pointer == pointer


def test_atif_refuses_a_duplicate_step_index() -> None:
    steps = [
        {"step_id": 1, "source": "user", "message": "a"},
        {"step_id": 1, "source": "agent", "message": "b"},
    ]
    with pytest.raises(InvalidRecord, match="duplicate step index") as caught:
        formats.FORMATS["atif"].read(
            {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {}, "steps": steps}
        )
    assert caught.value.pointer == "/steps/1/step_id"


def test_swe_agent_takes_from_the_trajectory_what_its_history_lacks() -> None:
    read = formats.FORMATS["swe-agent"].read
    steps = read(SWE).steps
    assert [step.source for step in steps] == ["system", "system", "user", "agent"]
    assert steps[1].extra["demonstration"] is True
    assert (steps[3].text, steps[3].tool_calls[0].arguments) == ("I look.", {"command": "ls"})
    assert steps[3].observation[0].content[0].text == "bug.py"
    assert read(SWE).task.instruction == "It breaks."
    assert read(SWE).metadata["info"] == {"exit_status": "submitted"}

    ended = SWE["trajectory"] + [{"action": "", "observation": None, "response": "exit_cost", "thought": ""}]  # type: ignore[operator]
    assert [step.text for step in read(SWE | {"trajectory": ended}).steps[3:]] == ["I look.", "exit_cost"]

    for key in ("query", "messages"):  # since SWE-agent 1.1, and before
        asked = [*SWE["history"], {"role": "user", "content": "bug.py"}][:3]  # type: ignore[misc]
        bare = {"trajectory": [SWE["trajectory"][0] | {key: asked}], "info": {}}  # type: ignore[index]
        assert formats.detect(bare).name == "swe-agent"
        again = read(bare)
        assert [step.source for step in again.steps] == ["system", "system", "user", "agent"]
        assert again.task == read(SWE).task
        assert again.steps[3].observation[0].content[0].text == "bug.py"


def test_one_issue_is_one_task_whatever_the_prompt() -> None:
    read, history = formats.FORMATS["swe-agent"].read, SWE["history"]
    other = [
        message | {"content": message["content"].replace("Now go.", "Take your time.")}  # type: ignore[index]
        for message in history  # type: ignore[attr-defined]
    ]
    assert read(SWE).task.id == read(SWE | {"history": other}).task.id != ""
    named = SWE | {"replay_config": {"agent": {"name": "repo__1867"}}}
    assert read(named).task.id == "repo__1867"


def test_mini_swe_agents_commands_are_calls() -> None:
    read = formats.FORMATS["mini-swe-agent"].read
    (step,) = (step for step in read(MESSAGES).steps if step.source == "agent")
    assert (step.text, step.tool_calls[0].arguments) == ("I look.", {"command": "ls -la"})
    assert step.observation[0].content[0].text.startswith("<returncode>0")  # type: ignore[union-attr]
    two = [*MESSAGES[:2], {"role": "assistant", "content": "```bash\na\n```\n```bash\nb\n```"}, MESSAGES[3]]
    assert read(two).steps[2].tool_calls == ()  # which of them was run is not said


def test_mini_swe_agent_as_it_is_since() -> None:
    document = {
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": "repo__1",
        "info": {"mini_version": "2.0", "exit_status": "Submitted", "submission": "diff"},
        "messages": [
            *MESSAGES[:2],
            {
                "object": "response",
                "output": [
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                    {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
                    {
                        "type": "function_call",
                        "call_id": "c1",
                        "name": "bash",
                        "arguments": '{"command": "ls"}',
                    },
                ],
            },
            {"type": "function_call_output", "call_id": "c1", "output": "bug.py", "extra": {"returncode": 0}},
            {"role": "exit", "content": "done", "extra": {"exit_status": "Submitted"}},
        ],
    }
    assert formats.detect(document).name == "mini-swe-agent"
    read = formats.FORMATS["mini-swe-agent"].read(document)
    step = read.steps[2]
    assert (step.reasoning, step.text, step.tool_calls[0].name) == ("Hm.", "I look.", "bash")
    assert step.observation[0].call_id == "c1" and step.observation[0].content[0].text == "bug.py"
    assert (read.task.id, read.agent, read.agent_version) == ("repo__1", "mini-swe-agent", "2.0")
    assert len(read.steps) == 3 and read.metadata["info"]["exit_status"] == "Submitted"


def test_an_inspect_log_is_a_trajectory_a_sample() -> None:
    inspect = formats.FORMATS["inspect"]
    assert inspect.split is not None
    ((pointer, part),) = inspect.split(INSPECT)
    read = inspect.read(part)
    assert pointer == "/samples/0"
    assert (read.task.id, read.task.instruction, read.task.reference) == ("pets/3", "What is it?", "a cat")
    assert (read.agent, read.reward, read.success) == ("m", 1.0, True)
    assert read.steps[0].text == "What is it?"
    assert (read.steps[1].reasoning, read.steps[1].text) == ("Hm.", "I look.")
    assert read.steps[1].tool_calls[0].arguments == {"at": "it"}
    assert read.steps[1].observation[0].content[0].text == "fur"
    with pytest.raises(InvalidRecord, match="no samples") as caught:
        list(inspect.split(INSPECT | {"samples": None, "status": "error"}))
    assert caught.value.pointer == "/samples"


def test_messages_that_an_inspect_log_keeps_once_are_put_back() -> None:
    inspect = formats.FORMATS["inspect"]
    asked, *rest = SAMPLE["messages"]  # type: ignore[misc]
    event = {
        "event": "model",
        "input": [],
        "input_refs": [[1, 2], [0, 1]],
        "output": {"choices": [{"message": rest[-1]}]},
    }
    kept = SAMPLE | {
        "messages": [],
        "events": [event],
        "events_data": {"messages": [asked, {"role": "system", "content": "Be."}]},
    }
    read = inspect.read({"eval": INSPECT["eval"], "sample": kept})
    assert [(step.source, step.text) for step in read.steps] == [
        ("system", "Be."),
        ("user", "What is it?"),
        ("agent", "A cat."),
    ]
    for wrong in (
        kept | {"events": [event | {"input_refs": [[0, 9]]}]},
        SAMPLE | {"attachments": {}},
    ):
        with pytest.raises(InvalidRecord, match="does not hold"):
            inspect.read({"eval": INSPECT["eval"], "sample": wrong})


def test_mint_keeps_what_leaks_out_of_the_steps() -> None:
    read = formats.FORMATS["mint"].read(MINT)
    assert (read.task.id, read.success) == ("house/0", False)
    assert [step.source for step in read.steps] == ["user", "agent"]
    assert read.steps[1].observation[0].content[0].text == "Observation: nothing"
    assert read.metadata["state"]["terminate_reason"] == "max_steps"


def test_who_and_when_keeps_who_speaks() -> None:
    read = formats.FORMATS["who-and-when"].read(WHO)
    said = [(step.source, step.speaker) for step in read.steps]
    assert said == [
        ("user", "Counter"),
        ("agent", "Counter"),
        ("environment", "Computer_terminal"),
        ("agent", "Checker"),
    ]
    assert (read.success, read.task.reference) == (False, "8")
    assert read.metadata["said"]["mistake_step"] == "1"


def test_tau2_keeps_the_users_tools_apart() -> None:
    tau2 = formats.FORMATS["tau2"]
    assert tau2.split is not None
    ((pointer, part),) = tau2.split(TAU2)
    read = tau2.read(part)
    assert pointer == "/simulations/0"
    assert [step.source for step in read.steps] == ["system", "agent", "user", "agent", "user", "agent"]
    assert read.steps[0].text == "Be kind."
    assert [call.name for call in read.steps[3].tool_calls] == ["look"]
    assert read.steps[3].observation[0].content[0].text == "off"
    assert [call.name for call in read.steps[4].tool_calls] == ["restart", "check"]
    assert [result.content[0].text for result in read.steps[4].observation] == ["done", "on"]
    assert (read.task.id, read.task.instruction) == ("telecom/7", "reason for call: No net.")
    assert (read.id, read.agent, read.reward, read.success) == ("s1", "m", 1.0, True)
    assert read.metadata["simulation"]["termination_reason"] == "user_stop"
    back = schema.from_atif(json.loads(json.dumps(schema.to_atif(read))))
    assert back.steps[1:] == read.steps[1:] and back.content_hash == read.content_hash


def test_tau2_says_what_it_cannot_read() -> None:
    tau2 = formats.FORMATS["tau2"]
    assert tau2.split is not None
    with pytest.raises(InvalidRecord, match="has no simulations"):
        list(tau2.split(TAU2 | {"simulations": []}))
    spoken = {"simulation": {"task_id": "7", "messages": None, "mode": "full_duplex"}, "task": {}, "info": {}}
    with pytest.raises(InvalidRecord, match="spoken simulations") as caught:
        tau2.read(spoken)
    assert caught.value.pointer == "/simulation/messages"


def test_an_episode_is_rows_of_numbers() -> None:
    read = formats.FORMATS["gymnasium"].read(EPISODE)
    assert [step.features for step in read.steps] == [(1.0, 0.0, 0.1, 0.2), (0.5, 1.0, 0.3, 0.4)]
    assert [step.reward for step in read.steps] == [-1.0, -0.5] and read.reward == -1.5
    assert (read.id, read.task.id) == ("4", "Pendulum-v1 9")
    assert read.metadata == {"seed": 9, "terminations": [False, True], "last_observation": [0.0, 2.0]}
    assert (
        formats.FORMATS["gymnasium"].read({key: EPISODE[key] for key in ("observations", "actions")}).reward
        is None
    )


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"actions": [[0.1]]}, "/observations"),
        ({"rewards": [1.0]}, "/rewards"),
        ({"rewards": [1.0, "x"]}, "/rewards/1"),
        ({"actions": [[0.1, 0.2], [0.3]]}, "/actions/1"),
        ({"actions": [[0.1, None], [0.3, 0.1]]}, "/actions/0/1"),
        ({"actions": [[0.1, float("nan")], [0.3, 0.1]]}, "/actions/0/1"),
        ({"observations": {"a": [1, 2, 3], "b": [1]}}, "/observations"),
    ],
)
def test_an_episode_that_does_not_fit_says_where(fields: dict[str, object], pointer: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        formats.FORMATS["gymnasium"].read(EPISODE | fields)
    assert caught.value.pointer == pointer


def test_agent_reward_bench_ties_what_is_seen_to_the_action_before_it() -> None:
    read = formats.FORMATS["agent-reward-bench"].read(BROWSED)
    assert [step.source for step in read.steps] == ["user", "environment", "agent", "agent"]
    assert read.steps[1].observation[0].content[0].text == "page 1"
    first, last = read.steps[2:]
    assert (first.text, first.tool_calls[0].name, first.tool_calls[0].arguments) == (
        "I click.",
        "click",
        "'a51'",
    )
    assert [part.type for part in first.observation[0].content] == ["text", "image"]
    assert first.observation[0].extra == {"url": "http://x/2"}
    assert last.tool_calls[0].arguments == {"code": "a; b"} and last.observation == ()
    assert (read.task.id, read.task.instruction) == ("shop.8", "Buy it.")
    assert (read.agent, read.reward, read.success) == ("Generic", 0.0, False)
    assert "cum_reward" not in json.dumps(schema.to_messages(read))
    back = schema.from_atif(json.loads(json.dumps(schema.to_atif(read))))
    assert back.content_hash == read.content_hash


def test_the_documented_table_is_the_one_formats_are_found_by() -> None:
    assert formats.table() in (Path(__file__).parents[2] / "docs" / "formats.md").read_text()

"""How programs run: alone or together, what they are given, and what becomes of what fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.errors import RewardError
from workers.programs import sandbox
from workers.programs.plain_items import plain_item
from workers.programs.sandbox import ProgramFailure, ProgramResult, run_program
from workers.programs.source import read_program
from workers.schema import parse_item

MEASURE = read_program(
    "import json\nseen = []\n"
    "def reward(t):\n    seen.append(1)\n    return len(json.dumps(t)) + len(seen)\n"
    "def step_rewards(t):\n    return [len(s['message']) for s in t['steps'] if s['source'] == 'agent']\n"
)
ITEM = {
    "trajectory": {
        "schema_version": "ATIF-v1.4",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Find it"},
            {
                "step_id": 2,
                "source": "agent",
                "message": "I look",
                "reasoning_content": "hm",
                "tool_calls": [{"tool_call_id": "c", "function_name": "find", "arguments": {"what": [1]}}],
                "observation": {"results": [{"source_call_id": "c", "content": "nothing"}]},
            },
        ],
    },
    "reference": {"answer": "Paris"},
    "metadata": {"a": None},
}


def test_what_a_program_is_given() -> None:
    given = plain_item(parse_item(ITEM))
    assert given["task"] == {"id": "s", "instruction": "", "metadata": {}}
    assert given["steps"][1] == {
        "source": "agent",
        "speaker": None,
        "message": "I look",
        "reasoning": "hm",
        "tool_calls": [{"name": "find", "arguments": {"what": [1]}}],
        "observations": ["nothing"],
        "features": None,
        "reward": None,
    }
    assert given["outcome"] == {"reward": None, "success": None}
    assert (given["reference"], given["metadata"]) == ({"answer": "Paris"}, {"a": None})
    assert plain_item(parse_item({"features": [[1.0, 2.0]]}))["steps"][0]["features"] == [1.0, 2.0]
    assert plain_item(parse_item({"text": "Hi", "reference": "Hi"}))["reference"] == "Hi"
    with pytest.raises(RewardError, match="input_ids") as caught:
        plain_item(parse_item({"input_ids": [1]}))
    assert caught.value.pointer == "/input_ids"


def test_a_result_does_not_depend_on_the_others() -> None:
    items = [plain_item(parse_item({"text": "x" * length})) for length in range(1, 251)]
    together = run_program(MEASURE, items)
    assert together == [run_program(MEASURE, [item])[0] for item in items]
    assert together == run_program(MEASURE, items[::-1])[::-1]
    assert isinstance(together[4], ProgramResult) and together[4].steps == (5.0,)


def test_only_what_fails_fails() -> None:
    program = read_program("def reward(t):\n    while t['n'] == 1:\n        pass\n    return 1 / t['n']")
    found = run_program(program, [{"n": 2}, {"n": 0}, {"n": 1}, {"n": 4}], 0.1)
    assert found == [
        ProgramResult(0.5),
        ProgramFailure("line 4: ZeroDivisionError: division by zero (in `return 1 / t['n']`)."),
        ProgramFailure("it took more than 0.1 seconds."),
        ProgramResult(0.25),
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return 'x'", "TypeError: reward returned str, which is no number."),
        ("return float('inf')", "returned infinity or NaN"),
        ("return 10 ** 400", "too large"),
        ("return 'x' * 10 ** 10", "line 2: it used more than 128 MB of memory (in `return 'x' * 10 ** 10`)."),
    ],
)
def test_failures_are_said_in_words(body: str, said: str) -> None:
    (found,) = run_program(read_program(f"def reward(t):\n    {body}"), [{}])
    assert isinstance(found, ProgramFailure) and said in found.message


def test_wrong_steps_are_said_in_words() -> None:
    for value, said in (
        ("1", "step_rewards returned int; return a list"),
        ("['a']", "step_rewards returned str"),
    ):
        (found,) = run_program(
            read_program(f"def reward(t): return 1\ndef step_rewards(t): return {value}"), [{}]
        )
        assert isinstance(found, ProgramFailure) and said in found.message


def test_what_is_printed_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    program = read_program("def reward(t):\n    print('x' * 10**6)\n    return 1")
    assert run_program(program, [{}]) == [ProgramResult(1.0)]
    assert capfd.readouterr() == ("", "")


def test_all_of_a_call_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_CALL_SECONDS", 0.3)
    slow = read_program("def reward(t):\n    while True:\n        pass")
    with pytest.raises(RewardError, match="the inputs of one request"):
        run_program(slow, [{}] * 20, 0.1)


def test_a_fork_does_not_hang() -> None:
    program = read_program("def reward(t):\n    return t['n']")
    assert run_program(program, [{"n": 1}]) == [ProgramResult(1.0)]
    child = os.fork()
    if child == 0:
        try:
            run_program(program, [{"n": 2}])
        except RuntimeError:
            os._exit(3)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert run_program(program, [{"n": 3}]) == [ProgramResult(3.0)]


_LOOKS_AT_ITS_CHILDREN = """
import json, os
from pathlib import Path
from workers.programs.sandbox import ProgramResult, run_program
from workers.programs.source import read_program
assert os.environ["DATABASE_URL"] == "postgres://canary"
assert run_program(read_program("def reward(t): return 1"), [{}]) == [ProgramResult(1.0)]
children = [child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()]
print(json.dumps([Path(f"/proc/{child}/environ").read_text() for child in children]))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads /proc, which Linux has")
def test_the_environment_of_the_sandbox_has_no_secret() -> None:
    """Of the process that runs the code: not a variable of its parent's, whatever it is."""
    found = subprocess.run(
        [sys.executable, "-c", _LOOKS_AT_ITS_CHILDREN],
        env=os.environ | {"DATABASE_URL": "postgres://canary", "LLM_KEY": "sk-canary"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout) == [""]

"""Rows of data sets of software-engineering runs: SWE-smith, SWE-Gym and SWE-rebench.

{"instance_id", "messages" or "trajectory": chat messages, or JSON text of them, "resolved", "model", "traj_id" |
"run_id" | "trajectory_id", "exit_status", "patch", ...}. Calls that the agent wrote as text (<function=...>, or one
block of a shell) are calls; what the user's side says after one is its result.
"""

from typing import Any

from apps.trajectories.formats.chat.openai import with_answer
from apps.trajectories.formats.coding_agents.session import prompt_task
from apps.trajectories.formats.coding_agents.text_calls import (
    function_call,
    with_observations,
    with_text_call,
)
from apps.trajectories.formats.commands import parted
from apps.trajectories.formats.stated import (
    SUCCESS_KEYS,
    model_name,
    run_facts,
    stated_success,
    stated_task_id,
)
from workers.schema import Step, Task, Trajectory, clean, from_messages, parse_json
from workers.schema.decode import require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `messages` or `trajectory`, and an `instance_id` and how it ended, or calls as `<function=`"
_ENDED = (
    "resolved",
    "target",
    "traj_id",
    "run_id",
    "trajectory_id",
    "exit_status",
    "verified",
    "generated_patch",
)
_HELD = ("trajectory", "messages")
READ = (
    *(f"/{key}" for key in SUCCESS_KEYS),
    *("/trajectory/*/role", "/messages/*/role", "/test_result/resolved", "/test_result/report/resolved"),
)


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or "trajectory_format" in document:
        return False
    messages = document.get("trajectory", document.get("messages"))
    if isinstance(messages, str):
        is_chat, has_call = (
            messages.lstrip().startswith("[{") and '"role"' in messages[:2000],
            "</function>" in messages,
        )
    else:
        first = messages[:6] if isinstance(messages, list) else []
        is_chat = bool(first) and all(
            isinstance(each, dict) and "role" in each and "text" not in each for each in first
        )
        has_call = is_chat and any(map(_has_text_call, first))
    return is_chat and (has_call or ("instance_id" in document and any(key in document for key in _ENDED)))


def _has_text_call(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return (
        message["role"] == "assistant"
        and isinstance(content, str)
        and "<function=" in content
        and "</function>" in content
    )


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    key = next((key for key in _HELD if key in row), _HELD[1])
    messages = row.get(key)
    if isinstance(messages, str):
        messages = parse_json(messages, pointer=f"/{key}")
    answered = with_answer(from_messages(messages, pointer=f"/{key}"), messages, row)
    steps = tuple(map(_with_call, answered))
    steps = with_observations(steps)
    around = {name: value for name, value in row.items() if name != key}
    tests = around.get("test_result")
    report = tests.get("report") if isinstance(tests, dict) else None
    model = model_name(around)
    identity = next(
        (row[name] for name in ("traj_id", "trajectory_id", "id") if isinstance(row.get(name), str)), None
    )
    return build_trajectory(
        steps,
        Task(id=stated_task_id(around), instruction=prompt_task(steps).instruction),
        pointer=f"/{key}",
        id=identity,
        agent=model,
        success=stated_success(around, tests, report),
        metadata=run_facts(around, model=model) | around,
    )


def _with_call(step: Step) -> Step:
    if step.source != "agent" or step.tool_calls:
        return step
    text, call = function_call(step.text)
    if call is None:
        text, call = parted(step.text)
    return with_text_call(step, call, text)

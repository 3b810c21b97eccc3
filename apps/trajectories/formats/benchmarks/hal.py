"""HAL's results (`*_UPLOAD.json`): {"config", "results", "raw_eval_results", "raw_logging_results"}: a run a task.

`raw_logging_results` holds, by the task, the messages of its longest call; before 2026 it was a list of all calls of
Weave, of which the one with the most messages is read for each task, with the answer to it. What a task scored is in
`raw_eval_results`, by the task. The traces that HAL publishes are encrypted, and are none of these.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.stated import run_facts, stated_success
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, clean, from_messages
from workers.schema.decode import escape, finite, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `raw_eval_results` and `raw_logging_results`"
PLACES = {"/run": "/raw_logging_results/*", "/score": "/raw_eval_results/*"}
READ = ("/task_id", "/score/reward", "/score/score", "/score")
_LOG, _SCORES = "raw_logging_results", "raw_eval_results"
_NONE = (
    "has no messages of any task: `raw_logging_results` holds none. Send the results before they are reduced."
)


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    return (_LOG in document and _SCORES in document) or {"run", "score", "hal"} <= document.keys()


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """The messages of each task with what it scored and what the file says of all. Raises InvalidRecord."""
    document = require_object(document)
    if "hal" in document:
        yield "", document
        return
    log, scores = document.get(_LOG), document.get(_SCORES)
    about = {key: value for key, value in document.items() if key in ("config", "metadata", "git_info")}
    prompts = document.get("task_prompts")
    runs = log if isinstance(log, dict) else _longest(log if isinstance(log, list) else [])
    found = False
    for name, run in runs.items():
        if not isinstance(run, dict) or not run.get("messages"):
            continue
        found = True
        score = scores.get(name) if isinstance(scores, dict) else None
        prompt = prompts.get(name) if isinstance(prompts, dict) else None
        part = {"hal": about, "task_id": name, "run": run, "score": score}
        yield f"/{_LOG}/{escape(str(name))}", part | ({"prompt": prompt} if prompt else {})
    if not found:
        raise InvalidRecord(_NONE, pointer=f"/{_LOG}")


def _longest(calls: list[Any]) -> dict[str, Any]:
    """Of each task the messages of the call that has the most of them, with its answer."""
    best: dict[str, tuple[int, Any]] = {}
    for call in calls:
        attributes = call.get("attributes") if isinstance(call, dict) else None
        name = call.get("weave_task_id") if isinstance(call, dict) else None
        name = (
            name
            if name is not None
            else attributes.get("weave_task_id")
            if isinstance(attributes, dict)
            else None
        )
        inputs = call.get("inputs") if isinstance(call, dict) else None
        messages = inputs.get("messages") if isinstance(inputs, dict) else None
        if (
            isinstance(name, str | int)
            and isinstance(messages, list)
            and len(messages) >= best.get(str(name), (0,))[0]
        ):
            best[str(name)] = len(messages), call
    return {name: _with_answer(call) for name, (_, call) in best.items()}


def _with_answer(call: dict[str, Any]) -> dict[str, Any]:
    output = call.get("output")
    choices = output.get("choices") if isinstance(output, dict) else None
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    answer = [first["message"]] if isinstance(first.get("message"), dict) else []
    if not answer and isinstance(output, dict) and "role" in output and "content" in output:
        answer = [output]
    inputs = call["inputs"]
    rest = {key: call[key] for key in ("started_at", "ended_at", "id") if call.get(key) is not None}
    system = [{"role": "system", "content": inputs["system"]}] if inputs.get("system") else []
    usage = output.get("usage") if isinstance(output, dict) else None
    model = inputs.get("model") or (output.get("model") if isinstance(output, dict) else None)
    return {"messages": [*system, *inputs["messages"], *answer], "model": model, "usage": usage} | rest


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    run = require_object(document.get("run"), pointer="/run")
    about = require_object(document.get("hal") or {}, pointer="/hal")
    config = about.get("config") if isinstance(about.get("config"), dict) else {}
    config = config or {}
    steps = from_messages(require_list(run.get("messages"), pointer="/run/messages"), pointer="/run/messages")
    success, reward = _outcome(document.get("score"))
    prompt = document.get("prompt")
    instruction = (
        prompt if isinstance(prompt, str) else next((s.text for s in steps if s.source == "user"), "")
    )
    model = run.get("model") if isinstance(run.get("model"), str) else ""
    calls = run.get("call_metadata")
    usages = (
        [call.get("usage") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    )
    agent = config.get("agent_name")
    return build_trajectory(
        steps,
        Task(id=str(document.get("task_id") or ""), instruction=instruction, metadata=_benchmark(config)),
        pointer="/run/messages",
        agent=agent if isinstance(agent, str) else model or "",
        reward=reward,
        success=success,
        metadata=run_facts(_sum(usages), run.get("usage"), model=model or "")
        | {
            key: value
            for key, value in run.items()
            if key not in ("messages", "model", "usage") and value is not None
        }
        | {"hal": about, "score": document.get("score")},
    )


def _benchmark(config: dict[str, Any]) -> dict[str, Any]:
    return {"benchmark": config["benchmark_name"]} if config.get("benchmark_name") else {}


def _sum(usages: list[Any]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for usage in usages:
        for key, value in usage.items() if isinstance(usage, dict) else ():
            if isinstance(value, int | float) and not isinstance(value, bool):
                total[key] = total.get(key, 0) + value
    return total


def _outcome(score: Any) -> tuple[bool | None, float | None]:
    if isinstance(score, bool):
        return score, None
    if isinstance(score, int | float):
        return score >= 1, finite(score)
    if not isinstance(score, dict):
        return None, None
    number = next(
        (score[key] for key in ("reward", "score") if isinstance(score.get(key), int | float)), None
    )
    success = stated_success({key: value for key, value in score.items() if isinstance(value, bool)})
    if isinstance(number, bool) or number is None:
        return (number if success is None else success), None
    return (number >= 1 if success is None else success), finite(number)

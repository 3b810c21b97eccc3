"""OpenAI chat messages: a bare list of them, or an object that holds them as `messages`.

{"id"?, "task"?: str | {"id", "instruction"?, "reference"?}, "agent"?: str | {"name", "version"?}, "messages": [...],
"tools"?, "reward"?, "success"?, "metadata"?}; further keys are kept as metadata. Logs of calls keep the answer next to
the messages, as `response` or `choices`, and requests of Anthropic the instructions as `system`: they are steps too.
Of several choices the first is read; what is no answer there (the choices of a question, a grade) is kept as metadata.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories import openai_documents
from apps.trajectories.formats.fields import read_agent, read_id, read_task
from apps.trajectories.formats.stated import (
    SUCCESS_KEYS,
    call_metrics,
    model_name,
    run_facts,
    stated_success,
    stated_task_id,
)
from apps.trajectories.formats.written_calls import with_written_calls
from workers.schema import Step, Trajectory, clean, from_messages, parse_json
from workers.schema.decode import finite, require_object
from workers.schema.message_shapes import is_of_framework
from workers.schema.messages import build_trajectory

SIGN = "a list of messages with `role`, or an object with `messages`"
READ = (
    *(f"/{key}" for key in (*SUCCESS_KEYS, "reward", "id", "task", "task_id")),
    f"/{openai_documents.FIELD}",
    "/task/id",
    "/agent/version",
    "/messages/*/reward",
    "/*/reward",
)
_KNOWN = (
    *("id", "task", "agent", "messages", "reward", "success", "metadata", "system"),
    openai_documents.FIELD,
)

_SYSTEMS = ("system", "system_prompt")
_ANSWERS = ("response", "choices")  # next to the messages


def sniff(document: Any) -> bool:
    if isinstance(document, dict):
        messages = document.get("messages")
        if isinstance(messages, list) and messages and is_of_framework(messages[0]):
            return False
        return isinstance(messages, list) or (isinstance(messages, str) and messages.startswith("[{"))
    return (
        isinstance(document, list)
        and bool(document)
        and all(_is_message(message) for message in document[:3])
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value


def read(document: Any) -> Trajectory:
    if isinstance(document, list):
        return build_trajectory(from_messages(with_written_calls(document)), read_task(None))
    document = require_object(document)
    messages = document.get("messages")
    if isinstance(messages, str):  # as data sets keep them whose columns have one type
        messages = parse_json(messages, pointer="/messages")
    added = document.get(openai_documents.FIELD)
    if added is not None:
        messages = openai_documents.with_contents(messages, added, pointer=f"/{openai_documents.FIELD}")
    called = with_written_calls(messages) if isinstance(messages, list) and added is None else messages
    steps = from_messages(called, pointer="/messages")
    if added is not None:
        steps = openai_documents.without_added(
            steps, document[openai_documents.FIELD], pointer=f"/{openai_documents.FIELD}"
        )
    steps = with_answer(steps, messages, document)
    system = next((key for key in _SYSTEMS if document.get(key)), "system")
    steps = with_system(steps, document.get(system), system)
    answers = [key for key in _ANSWERS if _answer(document.get(key))[0]]
    known = (*_KNOWN, *answers, *([system] if isinstance(document.get(system), str | list) else []))
    return build_trajectory(steps, **common(document, known=known), pointer="/messages")


def common(document: dict[str, Any], *, known: tuple[str, ...]) -> dict[str, Any]:
    """What surrounds the steps. Outcomes go to the outcome, the rest to metadata; no model is shown either."""
    around, _ = clean({key: value for key, value in document.items() if key not in ("messages", "prompt")})
    name, version = read_agent(around.get("agent"))
    response = around.get("response")
    answer = response if isinstance(response, dict) else {}
    metadata = require_object(around.get("metadata") or {}, pointer="/metadata")
    rest = {key: value for key, value in around.items() if key not in known}
    model = model_name(around, answer)
    facts = run_facts(around, around.get("usage"), answer, answer.get("usage"), model=model)
    if isinstance(rest.get("usage"), dict):
        facts["usage"] = rest.pop("usage") | facts.get("usage", {})
    task = read_task(around.get("task"))
    return {
        "task": task if task.id else replace(task, id=stated_task_id(around)),
        "id": read_id(around.get("id")),
        "agent": name or model,
        "agent_version": version,
        "reward": finite(around.get("reward"), pointer="/reward"),
        "success": stated_success(around),
        "metadata": facts | rest | metadata,
    }


def with_system(steps: tuple[Step, ...], system: Any, field: str = "system") -> tuple[Step, ...]:
    """With a top-level `system`, as Anthropic has it (text or blocks), as the first step, unless it is one."""
    if not isinstance(system, str | list) or not system:
        return steps
    first = from_messages([{"role": "system", "content": system}], pointer="/system")[0]
    if any(step.source == "system" and step.text == first.text for step in steps):
        return steps
    return replace(first, extra={"field": field}), *steps


def with_answer(steps: tuple[Step, ...], messages: Any, document: dict[str, Any]) -> tuple[Step, ...]:
    """With the answer that stands next to the messages, unless it is the last of them."""
    response = document.get("response")
    usage = document.get("usage")
    if isinstance(response, dict):
        usage = response.get("usage", usage)
    found = ((f"/{key}", *_answer(document.get(key))) for key in _ANSWERS)
    pointer, answer, within = next((each for each in found if each[1]), ("", [], ""))
    added = [
        replace(step, extra=step.extra | {"source_index": len(messages) + step.extra["source_index"]})
        for step in from_messages(answer, pointer=pointer + within)
    ]
    agent = [index for index, step in enumerate(added) if step.source == "agent"]
    if not agent or _is_last(steps, added[0]):
        return steps
    added[agent[-1]] = replace(added[agent[-1]], metrics=call_metrics(usage, document.get("latency_sec")))
    return *steps, *added


def _is_last(steps: tuple[Step, ...], answer: Step) -> bool:
    last = next((step for step in reversed(steps) if step.source == "agent"), None)
    return (
        last is not None
        and last is steps[-1]
        and (last.text, [call.arguments for call in last.tool_calls])
        == (answer.text, [call.arguments for call in answer.tool_calls])
    )


def _answer(value: Any) -> tuple[list[Any], str]:
    """The messages of an answer, and where in it they are: text, a message, or a response of the APIs of OpenAI,
    Anthropic or Google. None of anything else: `choices` may be those of a question, `response` a grade."""
    if isinstance(value, str) and value:
        return [{"role": "assistant", "content": value}], ""
    if isinstance(value, list) and value and isinstance(first := value[0], dict):
        if isinstance(first.get("message"), dict):
            return [first["message"]], ""
        if isinstance(first.get("text"), str) and "index" in first:  # of the completions API
            return [{"role": "assistant", "content": first["text"]}], ""
        return (value, "") if _is_message(first) or isinstance(first.get("type"), str) else ([], "")
    if isinstance(value, dict):
        if isinstance(value.get("choices"), list) and value["choices"]:
            return _answer(value["choices"])[0], "/choices"
        for key in ("message", "candidates"):
            inner = value.get(key)
            inner = (
                inner[0].get("content")
                if isinstance(inner, list) and inner and isinstance(inner[0], dict)
                else inner
            )
            if isinstance(inner, dict):
                return [inner], ""
        if "role" in value or value.get("object") == "response":
            return [value], ""
    return [], ""

"""Berkeley Function Calling Leaderboard: a line of results, {"id", "result", "inference_log", "input_token_count",
"latency"}, or of scores, {"id", "valid", "error", "prompt", "model_result"}.

A log of several turns has a list for each state of the backends, which no one is shown, and an object for each turn:
{"begin_of_turn_query": [messages], "step_0": [...], ...}. Calls are {"name": "arguments"}, or code in the text of
models that are prompted, then as the handler decoded it. `valid` and the true answer give the label away: outcome and
metadata only.
"""

import json
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.benchmarks.browser import called
from apps.trajectories.formats.stated import call_metrics
from workers.errors import InvalidRecord
from workers.schema import Step, Task, Trajectory, clean, from_messages
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `id` and `result` with an `inference_log`, token counts or a latency, or `valid` and a `prompt`"
_STATE = "states of the backends between turns, which the agent does not see"
READ = ("/valid", "/prompt/question", "/input_token_count", "/output_token_count", "/latency")
REPEATED = ("/result",)
LEFT_OUT = {"/inference_log/*/*/content": _STATE, "/inference_log/*/*/class_name": _STATE}
_COUNTS = (
    ("input_tokens", "input_token_count"),
    ("output_tokens", "output_token_count"),
    ("seconds", "latency"),
)
_SPOKEN = ("assistant", "tool")
_RESULTS = ("result", "model_result_raw", "model_result", "model_result_decoded")
_KNOWN = (
    "id",
    "inference_log",
    "valid",
    "prompt",
    "model_name",
    "model",
    *_RESULTS,
    *(key for _, key in _COUNTS),
)


def sniff(document: Any) -> bool:
    if _is_summary(document):
        return True
    if not isinstance(document, dict) or not isinstance(document.get("id"), str):
        return False
    if "result" in document:
        return "inference_log" in document or "input_token_count" in document or "latency" in document
    return isinstance(document.get("valid"), bool) and isinstance(document.get("prompt"), dict)


def _is_summary(value: Any) -> bool:
    return isinstance(value, dict) and {"accuracy", "correct_count", "total_count"} <= value.keys()


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """None for the first line of a file of scores, which counts the others."""
    if not _is_summary(document):
        yield "", document


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    if _is_summary(document):
        raise InvalidRecord("is the summary of a file of scores, not a run; leave the line out.")
    prompt = require_object(document.get("prompt") or {}, pointer="/prompt")
    log = document.get("inference_log")
    turns = (
        [turn for turn in log if isinstance(turn, dict) and "begin_of_turn_query" in turn]
        if isinstance(log, list)
        else []
    )
    if turns:
        steps = tuple(step for n, turn in enumerate(turns) for step in _turn(turn, n, document))
    else:
        steps = _single(document, prompt, log)
    identity = optional_str(document.get("id"), pointer="/id") or ""
    instruction = next((step.text for step in steps if step.source == "user"), "")
    rest = {key: value for key, value in document.items() if key not in _KNOWN and value is not None}
    asked = {
        key: value for key, value in prompt.items() if key not in ("question", "id") and value is not None
    }
    model = optional_str(document.get("model_name"), pointer="/model_name") or ""
    valid = document.get("valid")
    return build_trajectory(
        steps,
        Task(id=identity, instruction=instruction, metadata=asked),
        pointer="/inference_log" if turns else "/result",
        agent=model,
        success=valid if isinstance(valid, bool) else None,
        metadata=_facts(document, model) | rest,
    )


def _turn(turn: dict[str, Any], number: int, document: dict[str, Any]) -> Iterator[Step]:
    at = f"/inference_log/{number}"
    yield from from_messages(require_list(turn["begin_of_turn_query"], pointer=at), pointer=at)
    names = sorted(
        (key for key in turn if key.startswith("step_") and key[5:].isdecimal()), key=lambda key: int(key[5:])
    )
    for place, name in enumerate(names):
        where = f"{at}/{name}"
        entries = [require_object(each, pointer=where) for each in require_list(turn[name], pointer=where)]
        decoded = next(
            (each["model_response_decoded"] for each in entries if each.get("model_response_decoded")), None
        )
        handled = [each for each in entries if each.get("role") not in _SPOKEN]
        given = [_entry(each) for each in entries if each.get("role") in _SPOKEN]
        for step in from_messages(given, pointer=where):
            if step.source == "agent":
                step = _with_code(step, decoded)
                metrics = {key: _at(document.get(field), number, place) for key, field in _COUNTS}
                step = replace(
                    step, metrics=call_metrics(metrics), extra=step.extra | {"handler_log": handled}
                )
            yield step


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    """An answer or a result as a chat message."""
    content = entry.get("content")
    if entry["role"] == "tool":
        return entry | {
            "content": content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        }
    calls = _calls(content)
    if calls is not None:
        return entry | {"content": None} | ({"tool_calls": calls} if calls else {})
    return entry if isinstance(content, str) or content is None else entry | {"content": json.dumps(content)}


def _calls(content: Any) -> list[Any] | None:
    """[{"name": arguments}] as calls; None of anything else."""
    if not isinstance(content, list) or not all(
        isinstance(call, dict) and len(call) == 1 for call in content
    ):
        return None
    return [
        {"id": None, "type": "function", "function": {"name": name, "arguments": arguments}}
        if isinstance(arguments, str | dict)
        else {"id": None, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for call in content
        for name, arguments in call.items()
    ]


def _with_code(step: Step, decoded: Any) -> Step:
    """Of a model that was prompted: what the handler found in its text, as calls."""
    if step.tool_calls or not isinstance(decoded, list):
        return step
    lines = [line for line in decoded if isinstance(line, str) and line.strip()]
    return replace(step, tool_calls=tuple(map(called, lines)))


def _single(document: dict[str, Any], prompt: dict[str, Any], log: Any) -> tuple[Step, ...]:
    question = prompt.get("question")
    messages: list[Any] = []
    for turn in question if isinstance(question, list) else []:
        messages += turn if isinstance(turn, list) else [turn]
    if not messages and isinstance(log, list):
        inputs = [
            each.get("content")
            for each in log
            if isinstance(each, dict) and each.get("role") == "inference_input"
        ]
        message = inputs[0].get("message") if inputs and isinstance(inputs[0], dict) else None
        messages = [each for each in message if isinstance(each, dict)] if isinstance(message, list) else []
    key = next((key for key in _RESULTS if document.get(key) is not None), "result")
    answer = document.get(key)
    for turn in _answers(answer):
        messages.append(_entry({"role": "assistant", "content": turn}))
    return from_messages(messages, pointer=f"/{key}")


def _answers(answer: Any) -> list[Any]:
    """The answers in order: one of a single turn, or those of each step of each turn."""
    if isinstance(answer, list) and answer and isinstance(answer[0], list):
        return [each for turn in answer for each in (turn if isinstance(turn, list) else [turn])]
    return [answer]


def _facts(document: dict[str, Any], model: str) -> dict[str, Any]:
    totals = {name: total for name, key in _COUNTS if (total := _total(document.get(key))) is not None}
    usage = {name: int(totals[name]) for name in ("input_tokens", "output_tokens") if name in totals}
    facts = {"model": model or None, "usage": usage or None, "seconds": totals.get("seconds")}
    return {key: value for key, value in facts.items() if value is not None}


def _total(value: Any) -> float | int | None:
    """A number, or the sum of those in lists of lists."""
    if isinstance(value, list):
        found = [number for each in value if (number := _total(each)) is not None]
        return sum(found) if found else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _at(value: Any, turn: int, step: int) -> Any:
    row = value[turn] if isinstance(value, list) and turn < len(value) else None
    return row[step] if isinstance(row, list) and step < len(row) else None

"""ScreenAgent's sessions: a file for each answer, {"session_id", "task_prompt", "send_prompt", "LLM_response",
"LLM_response_editer", "actions", "saved_image_name"}: what was asked, what the model answered, and what a person made
of it, which is what was done. The files of an archive with one `session_id` are one run, in the order of their names.
"""

from typing import Any

from apps.trajectories.formats.computer_use.screens import call_of, picture_source
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import objects, storable, text_at
from workers.schema import Part, Step, Task, ToolCall, Trajectory, clean, parse_json
from workers.schema.decode import require_list
from workers.schema.messages import build_trajectory

SIGN = "an object with `session_id`, `send_prompt` and `LLM_response`"
READ = (
    *(f"/*/{key}" for key in ("session_id", "task_prompt", "send_prompt", "LLM_response", "actions")),
    "/*/LLM_response_editer",
)
REPEATED = ("/*/task_prompt", "/*/session_id")
_KNOWN = ("session_id", "task_prompt", "send_prompt", "LLM_response", "LLM_response_editer", "actions")
Gathered = event_log(key=lambda row: text_at(row, "session_id") or None)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and sniff(document[0])
    return isinstance(document, dict) and {"session_id", "send_prompt", "LLM_response"} <= document.keys()


@storable
def read(document: Any) -> Trajectory:
    document, _ = clean(require_list(document))
    rows = sorted(objects(document), key=lambda row: text_at(row, "saved_image_name"))
    steps: list[Step] = []
    for index, row in enumerate(rows):
        steps += [_asked(row, index), _answered(row, index)]
    goal = next(filter(None, (text_at(row, "task_prompt") for row in rows)), "")
    return build_trajectory(
        tuple(steps),
        Task(id=text_at(rows[0], "session_id") if rows else "", instruction=goal),
        metadata={"rows": [_rest(row) for row in rows]},
    )


def _rest(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in _KNOWN}


def _asked(row: dict[str, Any], index: int) -> Step:
    name = picture_source(row.get("saved_image_name"))
    picture = (Part(type="image", source=name),) if name else ()
    return Step(
        source="user",
        message=(Part(text=_text(row.get("send_prompt"))), *picture),
        extra={"source_index": index},
    )


def _answered(row: dict[str, Any], index: int) -> Step:
    given, edited = _text(row.get("LLM_response")), _text(row.get("LLM_response_editer"))
    calls = tuple(call for action in _actions(row.get("actions")) if (call := _call(action)) is not None)
    extra: dict[str, Any] = {"source_index": index} | (
        {"answer_before_editing": given} if edited and given else {}
    )
    if row.get("actions") and not calls:
        extra["actions"] = row["actions"]
    return Step(source="agent", message=(Part(text=edited or given),), tool_calls=calls, extra=extra)


def _actions(value: Any) -> list[Any]:
    found = parse_json(value, pointer="/actions") if isinstance(value, str) and value[:1] == "[" else value
    return found if isinstance(found, list) else []


def _call(action: Any) -> ToolCall | None:
    return call_of(action)


def _text(value: Any) -> str:
    """Some texts are JSON strings of the text."""
    if isinstance(value, str) and value.startswith('"') and value.endswith('"') and len(value) > 1:
        decoded = parse_json(value)
        return decoded if isinstance(decoded, str) else value
    return value if isinstance(value, str) else ""

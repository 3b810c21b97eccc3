"""Tests of Google's ADK before it had eval sets (`*.test.json`): a list of turns {"query", "expected_tool_use":
[{"tool_name", "tool_input"}], "reference"}, or {"name", "data": [turns], "initial_session"} of an old `evalset.json`.

What was expected is what the run does: such files are recorded from sessions.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.event_log import ALONE, event_log
from apps.trajectories.formats.placed import Placed, objects, steps_of, storable, text_at
from workers.schema import Task, Trajectory
from workers.schema.decode import require_list
from workers.schema.messages import build_trajectory

SIGN = "turns with a `query` and `expected_tool_use`, or an object with such turns as `data`"
READ = tuple(
    f"{at}/*/{key}"
    for at in ("", "/*/data")
    for key in ("query", "reference", "expected_tool_use/*/tool_name")
)
_OF_CALL = ("tool_name", "tool_input", "mock_tool_output")
Gathered = event_log(key=lambda event: ALONE if _is_case(event) else None)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(_is_turn(each) or _is_case(each) for each in document[:2])
    return _is_turn(document) or _is_case(document)


def _is_turn(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("query"), str) and "expected_tool_use" in value


def _is_case(value: Any) -> bool:
    turns = objects(value.get("data")) if isinstance(value, dict) else []
    return bool(turns) and all(map(_is_turn, turns))


@storable
def read(document: Any) -> Trajectory:
    rows = objects(require_list(document))
    case = rows[0] if rows and _is_case(rows[0]) else {}
    turns, at = (objects(case.get("data")), "/0/data") if case else (rows, "")
    messages = [each for index, turn in enumerate(turns) for each in _turn(turn, f"{at}/{index}")]
    steps = steps_of(messages)
    around = {key: value for key, value in case.items() if key not in ("name", "data")}
    first = text_at(turns[0], "query") if turns else ""
    return build_trajectory(steps, Task(id=text_at(case, "name"), instruction=first), metadata=around)


def _turn(turn: dict[str, Any], at: str) -> Iterator[Placed]:
    yield f"{at}/query", {"role": "user", "content": turn.get("query")}
    for index, call in enumerate(objects(turn.get("expected_tool_use"))):
        rest = {key: value for key, value in call.items() if key not in _OF_CALL}
        function = {"name": str(call.get("tool_name")), "arguments": call.get("tool_input") or {}}
        made = {"type": "function", "function": function} | ({"record": rest} if rest else {})
        yield f"{at}/expected_tool_use/{index}", {"role": "assistant", "content": None, "tool_calls": [made]}
        if call.get("mock_tool_output") is not None:
            yield (
                f"{at}/expected_tool_use/{index}",
                {"role": "tool", "content": str(call["mock_tool_output"])},
            )
    for index, said in enumerate(objects(turn.get("expected_intermediate_agent_responses"))):
        name = {"name": said["author"]} if isinstance(said.get("author"), str) else {}
        yield (
            f"{at}/expected_intermediate_agent_responses/{index}",
            ({"role": "assistant", "content": said.get("text")} | name),
        )
    if isinstance(turn.get("reference"), str):
        yield f"{at}/reference", {"role": "assistant", "content": turn["reference"]}

"""What the agent should have done at a step: a text, or a call of one of the trajectory's tools."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from apps.trajectories.models import Trajectory
from apps.trajectories.patterns import tool_names
from apps.trajectories.selectors import load_trajectories
from workers.errors import InvalidRecord
from workers.schema import StepCorrection, ToolCall
from workers.schema.decode import clean, convert, json_type_name, parse_json
from workers.schema.step_corrections import Correction
from workers.schema.tool_definitions import argument_problem, stated_tools

MOST_CHARACTERS = 20_000  # of a text, and of the arguments of a call
_LISTED, _LONGEST_NAME = 30, 100  # tools that a message names, and characters of each
_EMPTY: dict[str, Any] = {
    "string": "",
    "number": 0,
    "integer": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """kind: its type as the definition has it, or its allowed values."""

    name: str
    kind: str
    is_required: bool
    about: str


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that a correction can call. schema: of its arguments; None where the trajectory states no definitions.

    template: JSON text of its required arguments, to fill in.
    """

    name: str
    about: str = ""
    parameters: Sequence[ToolParameter] = ()
    schema: Any = None
    template: str = "{}"


def offered_tools(trajectory: Trajectory) -> list[OfferedTool]:
    """The tools that a trajectory defines; without definitions, those that it calls."""
    if defined := stated_tools(trajectory.metadata):
        found = [_offered(tool["function"]) for tool in defined]
        return [*{tool.name: tool for tool in found if tool.name}.values()]
    names = trajectory.tools
    if names is None:  # the trajectory was not looked at yet
        names, _ = tool_names(load_trajectories([trajectory.pk])[trajectory.pk].steps)
    return [OfferedTool(name) for name in names]


def _offered(function: Mapping[str, Any]) -> OfferedTool:
    schema = function.get("parameters")
    stated = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    properties = stated if isinstance(stated, dict) else {}
    listed = required if isinstance(required, list) else ()
    needed = dict.fromkeys(name for name in listed if isinstance(name, str))
    parameters = [_parameter(str(name), each, str(name) in needed) for name, each in properties.items()]
    filled = {name: _empty_value(properties.get(name)) for name in needed}
    return OfferedTool(
        name=str(function.get("name") or ""),
        about=str(function.get("description") or ""),
        parameters=sorted(parameters, key=lambda parameter: not parameter.is_required),
        schema=schema,
        template=json.dumps(filled, ensure_ascii=False, indent=1 if filled else None),
    )


def _parameter(name: str, schema: Any, is_required: bool) -> ToolParameter:
    described = schema if isinstance(schema, dict) else {}
    kind, choices = described.get("type"), described.get("enum")
    words = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind or "")
    if isinstance(choices, list):
        words = " or ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    return ToolParameter(name, words, is_required, str(described.get("description") or ""))


def _empty_value(schema: Any) -> Any:
    """A value of the right type, for the annotator to replace."""
    if not isinstance(schema, dict):
        return ""
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    return schema.get("default", _EMPTY.get(str(schema.get("type")), ""))


def check_correction(
    correction: Correction, trajectory: Trajectory, *, called: str = "the trajectory"
) -> None:
    """Check that a call is of a tool of the trajectory, with arguments by its schema. Raises InvalidRecord.

    called: the trajectory, in messages.
    """
    if isinstance(correction, str):
        return
    call = correction.tool_calls[0]
    tools = {tool.name: tool for tool in offered_tools(trajectory)}
    if not tools:
        raise InvalidRecord(
            f"{called} has no tools, so that {call.name[:_LONGEST_NAME]!r} cannot be called; "
            "write the correction as text.",
            pointer="/tool_calls/0/name",
        )
    if call.name not in tools:
        named = ", ".join(name[:_LONGEST_NAME] for name in [*tools][:_LISTED])
        named += f" and {len(tools) - _LISTED} more" if len(tools) > _LISTED else ""
        raise InvalidRecord(
            f"{call.name[:_LONGEST_NAME]!r} is not a tool of {called}; its tools are {named}.",
            pointer="/tool_calls/0/name",
        )
    assert isinstance(call.arguments, dict)
    if (problem := argument_problem(tools[call.name].schema, call.arguments)) is not None:
        raise InvalidRecord(
            f"the arguments of {call.name[:_LONGEST_NAME]} do not fit its parameters: {problem}.",
            pointer="/tool_calls/0/arguments",
        )


def read_corrections(value: Any, *, pointer: str) -> dict[int, Correction]:
    """Of an imported record; empty ones are left out. Raises InvalidRecord."""
    found = {
        step: _read_correction(given, f"{pointer}/{step}")
        for step, given in convert(value, dict[int, Any], pointer=pointer).items()
    }
    return {step: correction for step, correction in found.items() if correction != ""}


def _read_correction(value: Any, pointer: str) -> Correction:
    if not isinstance(value, str | dict):
        raise InvalidRecord(
            f"a correction is a text, or an object with text and tool_calls, and this is {json_type_name(value)}.",
            pointer=pointer,
        )
    if isinstance(value, str):
        return value if value.strip() else ""
    return _checked(convert(value, StepCorrection, pointer=pointer), pointer)


def _checked(correction: StepCorrection, pointer: str) -> Correction:
    text = correction.text if correction.text.strip() else ""
    if not correction.tool_calls:
        return text
    if len(correction.tool_calls) > 1:
        raise InvalidRecord(
            f"a correction has one tool call at most, and this one has {len(correction.tool_calls)}; "
            "leave the others out.",
            pointer=f"{pointer}/tool_calls",
        )
    call = correction.tool_calls[0]
    place = f"{pointer}/tool_calls/0/arguments"
    if isinstance(call.arguments, str):
        arguments = read_arguments(call.arguments, pointer=place)
    else:
        arguments = _storable_arguments(call.arguments, pointer=place)
    return StepCorrection(text=text, tool_calls=(ToolCall(name=call.name, arguments=arguments),))


def read_arguments(text: str, *, pointer: str) -> dict[str, Any]:
    """The arguments of a call, as JSON text. Raises InvalidRecord."""
    if not text.strip():
        return {}
    if len(text) > MOST_CHARACTERS:
        raise InvalidRecord(f"arguments can have at most {MOST_CHARACTERS} characters.", pointer=pointer)
    value = parse_json(text, pointer=pointer, repeats=False)
    if not isinstance(value, dict):
        raise InvalidRecord(
            f'arguments are a JSON object, such as {{"id": 7}}, and this is {json_type_name(value)}.',
            pointer=pointer,
        )
    return _storable_arguments(value, pointer=pointer)


def _storable_arguments(value: dict[str, Any], *, pointer: str) -> dict[str, Any]:
    """Without what the database cannot hold. Raises InvalidRecord."""
    arguments: dict[str, Any] = clean(value)[0]
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InvalidRecord(
            "arguments have a number that is too large to be stored; write one below 1.7e308.",
            pointer=pointer,
        ) from None
    if len(text) > MOST_CHARACTERS:
        raise InvalidRecord(f"arguments can have at most {MOST_CHARACTERS} characters.", pointer=pointer)
    return arguments


def stored_corrections(corrections: Mapping[int, Correction]) -> dict[str, Any]:
    """As JSON values by agent step, as rows and exports have them."""
    return {str(step): _json_value(correction) for step, correction in sorted(corrections.items())}


def _json_value(correction: Correction) -> Any:
    return correction if isinstance(correction, str) else msgspec.json.decode(msgspec.json.encode(correction))


def loaded_corrections(stored: Mapping[str, Any]) -> dict[int, Correction]:
    """What `stored_corrections` has written."""
    return convert(stored, dict[int, str | StepCorrection])

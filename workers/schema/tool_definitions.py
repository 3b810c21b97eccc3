"""The tools that a trajectory states, and whether the arguments of a call are as a tool's JSON Schema has them.

A definition is text from outside. So no reference to another document is followed, patterns are RE2's, and what a check
looks at is bounded; `jsonschema`, with which the tests compare it, fetches references and matches by backtracking.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from workers.errors import InvalidRecord
from workers.schema.decode import json_type_name
from workers.schema.patterns import compiled

# What one check may look at: schemas, and values and names that they list. Beyond it all is taken to be right.
_MOST_CHECKS, _MOST_DEPTH = 5_000, 100
_PATTERN_COST, _CHARACTERS_FOR_ONE = 10, 20  # of a match: so much, and one more for so many characters
# Types of tool definitions, as JSON Schema has them and as others write them.
_TYPES: dict[str, str] = {
    **{name: name for name in ("object", "array", "string", "number", "integer", "boolean", "null")},
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "str": "string",
    "float": "number",
    "double": "number",
    "int": "integer",
    "bool": "boolean",
}
_WORDS = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
_LONGEST = 60  # characters of a value in a message
_MOST_NAMED = 30  # parameters in a message
_LONGEST_REFERENCE = 1_000  # characters; longer ones allow everything


def stated_tools(*metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The definitions in the metadata of trajectories, each once, as OpenAI's function calling has them.

    They are read from `tools` and from an ATIF agent's `tool_definitions`; also in Anthropic's form.
    """
    found: dict[str, dict[str, Any]] = {}
    for each in metadata:
        agent = each.get("agent")
        stated = [each.get("tools"), agent.get("tool_definitions") if isinstance(agent, dict) else None]
        for tools in stated:
            for tool in tools if isinstance(tools, list) else ():
                definition = _definition(tool)
                if definition is not None:
                    found.setdefault(json.dumps(definition, sort_keys=True), definition)
    return [*found.values()]


def _definition(tool: Any) -> dict[str, Any] | None:
    if not isinstance(tool, dict):
        return None
    if isinstance(tool.get("function"), dict):
        return tool
    if not isinstance(tool.get("name"), str):
        return None
    parameters = tool.get("parameters") or tool.get("input_schema") or {"type": "object", "properties": {}}
    function = {
        "name": tool["name"],
        "description": str(tool.get("description") or ""),
        "parameters": parameters,
    }
    return {"type": "function", "function": function}


def argument_problem(schema: Any, arguments: Mapping[str, Any]) -> str | None:
    """The first thing in which the arguments of a call are not as the tool's schema has them, in words; None where
    there is nothing. Keywords that are not known, `format` among them, are not checked."""
    return _SchemaCheck(schema).problem(schema, arguments, "")


class _SchemaCheck:
    """One check against one schema."""

    def __init__(self, root: Any) -> None:
        self.root, self.left, self.depth = root, _MOST_CHECKS, 0

    def problem(self, schema: Any, value: Any, place: str) -> str | None:
        if not self._can_look(1 if self.depth <= _MOST_DEPTH else _MOST_CHECKS):
            return None
        if not isinstance(schema, dict):
            return f"{place or 'the arguments'}: not allowed" if schema is False else None
        self.depth += 1
        reference = schema.get("$ref")
        found = None
        if isinstance(reference, str):
            found = self.problem(self._referenced(reference), value, place)
        found = found or self._kind(schema, value, place) or self._combined(schema, value, place)
        self.depth -= 1
        return found

    def _can_look(self, count: int) -> bool:
        """Whether so much more can be looked at; once it cannot, nothing more is."""
        self.left = self.left - count if self.left >= count else -1
        return self.left >= 0

    def _matches(self, pattern: str, text: str) -> bool:
        """True too where RE2 cannot read the pattern."""
        if not self._can_look(_PATTERN_COST + len(text) // _CHARACTERS_FOR_ONE):
            return True
        try:
            return compiled(pattern).search(text) is not None
        except InvalidRecord:
            return True

    def _kind(self, schema: dict[str, Any], value: Any, place: str) -> str | None:
        where = place or "the arguments"
        if value is None and schema.get("nullable") is True:  # OpenAPI 3.0
            return None
        stated = schema.get("type")
        known = [_TYPES.get(str(name)) for name in (stated if isinstance(stated, list) else [stated])]
        if stated is not None and None not in known and not any(_is_of(str(name), value) for name in known):
            expected = " or ".join(_WORDS[str(name)] for name in known)
            return f"{where}: expected {expected}, got {json_type_name(value)}"
        choices = schema.get("enum")
        choices = choices if isinstance(choices, list) and self._can_look(len(choices)) else None
        if choices is not None and not any(_same(choice, value) for choice in choices):
            allowed = ", ".join(_short(choice) for choice in choices[:20])
            return f"{where}: {_short(value)} is not one of {allowed}"
        if "const" in schema and not _same(schema["const"], value):
            return f"{where}: expected {_short(schema['const'])}, got {_short(value)}"
        if isinstance(value, dict):
            return self._object(schema, value, place)
        if isinstance(value, list):
            return self._array(schema, value, place)
        if isinstance(value, str):
            return self._text(schema, value, where)
        return _number_problem(schema, value, where) if _is_of("number", value) else None

    def _object(self, schema: dict[str, Any], value: dict[str, Any], place: str) -> str | None:
        required = schema.get("required")
        required = required if isinstance(required, list) and self._can_look(len(required)) else ()
        for name in required:
            if isinstance(name, str) and name not in value:
                return f"{_inner(place, name)} is missing"
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        patterns = schema.get("patternProperties")
        patterns = patterns if isinstance(patterns, dict) else {}
        for name, each in value.items():
            here = [properties[name]] if name in properties else []
            here += [inner for pattern, inner in patterns.items() if self._matches(pattern, name)]
            if not here and (other := schema.get("additionalProperties")) is False:
                known = ", ".join(each[:_LONGEST] for each in [*properties][:_MOST_NAMED]) or "none"
                known += f" and {len(properties) - _MOST_NAMED} more" if len(properties) > _MOST_NAMED else ""
                return f"{_inner(place, name)} is not a parameter; there are {known}"
            for inner in here or [other]:
                if (found := self.problem(inner, each, _inner(place, name))) is not None:
                    return found
        return _count_problem(schema, len(value), place or "the arguments", "Properties", "keys")

    def _text(self, schema: dict[str, Any], value: str, where: str) -> str | None:
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and not self._matches(pattern, value):
            return f"{where}: {_short(value)} does not match {pattern[:_LONGEST]}"
        return _count_problem(schema, len(value), where, "Length", "characters")

    def _array(self, schema: dict[str, Any], value: list[Any], place: str) -> str | None:
        first, rest = schema.get("prefixItems"), schema.get("items")
        first = first if isinstance(first, list) else []
        for index, each in enumerate(value):
            inner = first[index] if index < len(first) else rest
            if (found := self.problem(inner, each, f"{place}[{index}]")) is not None:
                return found
        if schema.get("uniqueItems") is True and len({_canonical(each) for each in value}) < len(value):
            return f"{place or 'the arguments'}: has an element twice"
        return _count_problem(schema, len(value), place or "the arguments", "Items", "elements")

    def _combined(self, schema: dict[str, Any], value: Any, place: str) -> str | None:
        where = place or "the arguments"
        for inner in _schemas(schema, "allOf"):
            if (found := self.problem(inner, value, place)) is not None:
                return found
        if choices := _schemas(schema, "anyOf"):
            problems = [self.problem(inner, value, place) for inner in choices]
            if None not in problems:
                return str(problems[0])
        if choices := _schemas(schema, "oneOf"):
            problems = [self.problem(inner, value, place) for inner in choices]
            fitting = problems.count(None)
            if fitting == 0:
                return str(problems[0])
            if fitting > 1 and self.left >= 0:
                return f"{where}: fits {fitting} of the allowed forms, and may fit one only"
        if "not" in schema and self.problem(schema["not"], value, place) is None and self.left >= 0:
            return f"{where}: {_short(value)} is not allowed"
        return None

    def _referenced(self, reference: str) -> Any:
        """What a reference within the schema names; True, which allows everything, for any other."""
        if not reference.startswith("#") or len(reference) > _LONGEST_REFERENCE:
            return True
        found = self.root
        for token in reference[1:].split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found:
                return True
            found = found[key]
        return found


def _schemas(schema: dict[str, Any], key: str) -> list[Any]:
    found = schema.get(key)
    return found if isinstance(found, list) else []


def _is_of(name: str, value: Any) -> bool:
    if name in ("number", "integer"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (name == "number" or isinstance(value, int) or float(value).is_integer())
    types: dict[str, type | tuple[type, ...]] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "null": type(None),
    }
    return isinstance(value, types[name])


def _number_problem(schema: dict[str, Any], value: float, where: str) -> str | None:
    limits = (
        ("minimum", lambda limit: value < limit, "at least"),
        ("exclusiveMinimum", lambda limit: value <= limit, "above"),
        ("maximum", lambda limit: value > limit, "at most"),
        ("exclusiveMaximum", lambda limit: value >= limit, "below"),
    )
    for key, is_outside, words in limits:
        limit = schema.get(key)
        if _is_of("number", limit) and is_outside(limit):
            return f"{where}: expected {words} {limit}, got {value}"
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and _is_of("number", step) and step > 0:
        try:
            parts = value / step
        except OverflowError:
            parts = math.inf
        if math.isfinite(parts) and not math.isclose(parts, round(parts), rel_tol=1e-9, abs_tol=1e-9):
            return f"{where}: expected a multiple of {step}, got {value}"
    return None


def _count_problem(schema: dict[str, Any], count: int, where: str, what: str, words: str) -> str | None:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if isinstance(least, int) and count < least:
        return f"{where}: expected at least {least} {words}, got {count}"
    if isinstance(most, int) and count > most:
        return f"{where}: expected at most {most} {words}, got {count}"
    return None


def _inner(place: str, name: str) -> str:
    return f"{place}.{name[:_LONGEST]}" if place else name[:_LONGEST]


def _canonical(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    """Numbers that are equal written alike: JSON Schema has 1 and 1.0 equal."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _same(first: Any, second: Any) -> bool:
    """As JSON Schema has it: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_same(each, second[key]) for key, each in first.items())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_same, first, second))
    return bool(first == second)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

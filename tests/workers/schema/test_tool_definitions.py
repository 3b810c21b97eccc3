"""Arguments against a tool's schema: right where `jsonschema` says so, and safe against schemas that are not."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.schema import tool_definitions
from workers.schema.tool_definitions import argument_problem, stated_tools

PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"enum": ["C", "F"]},
        "places": {"type": "array", "items": {"$ref": "#/$defs/place"}, "maxItems": 2},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"place": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"city": "Bonn", "days": 3, "unit": "C"}, None),
        ({}, "city is missing"),
        ({"city": 7}, "city: expected a string, got a number"),
        ({"city": "B"}, "city: expected at least 2 characters, got 1"),
        ({"city": "bonn"}, 'city: "bonn" does not match ^[A-Z]'),
        ({"city": "Bonn", "days": True}, "days: expected a whole number, got a boolean"),
        ({"city": "Bonn", "days": 2.5}, "days: expected a whole number, got a number"),
        ({"city": "Bonn", "days": 8}, "days: expected at most 7, got 8"),
        ({"city": "Bonn", "unit": "K"}, 'unit: "K" is not one of "C", "F"'),
        ({"city": "Bonn", "town": 1}, "town is not a parameter; there are city, days, unit, places"),
        ({"city": "Bonn", "places": [{"name": "a"}, {}]}, "places[1].name is missing"),
        ({"city": "Bonn", "places": [{"name": "a"}] * 3}, "places: expected at most 2 elements, got 3"),
    ],
)
def test_a_problem_is_said_in_words(arguments: dict[str, Any], problem: str | None) -> None:
    assert argument_problem(PARAMETERS, arguments) == problem
    assert jsonschema.Draft202012Validator(PARAMETERS).is_valid(arguments) == (problem is None)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 0.5])
    | st.sampled_from(["", "a", "ab"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])


def _schema(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    counts = st.integers(0, 2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "additionalProperties": inner,
            "minProperties": counts,
            "maxProperties": counts,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": counts,
            "maxItems": counts,
            "uniqueItems": st.booleans(),
            "minLength": counts,
            "maxLength": counts,
            "pattern": st.sampled_from(["^a", "b$", "."]),
            "minimum": st.integers(-2, 2),
            "exclusiveMaximum": st.integers(-2, 2),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "$ref": st.sampled_from(["#/$defs/x"]),
        },
    ).map(lambda schema: schema if "$ref" not in schema else schema | {"type": ["string", "object"]})


SCHEMAS = st.recursive(
    st.booleans() | st.fixed_dictionaries({}, optional={"type": TYPES}), _schema, max_leaves=6
)


@given(SCHEMAS, st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3))
def test_it_agrees_with_jsonschema(schema: Any, arguments: dict[str, Any]) -> None:
    root = {"allOf": [schema], "$defs": {"x": {"type": ["string", "object", "array"]}}}
    expected = jsonschema.Draft202012Validator(root).is_valid(arguments)
    assert (argument_problem(root, arguments) is None) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"properties": {"a": {"pattern": "(?=x)"}}},
        {"properties": {"a": {"type": "any", "minLength": "2", "enum": 3, "required": 1}}, "required": "a"},
        {"oneOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"not": {"not": {"$ref": "#"}}},
        "none",
        None,
    ],
)
def test_a_schema_that_cannot_be_read_refuses_nothing(schema: Any) -> None:
    assert argument_problem(schema, {"a": "x"}) is None


def test_a_schema_that_doubles_at_every_reference_ends() -> None:
    """2^40 schemas, of which the first thousands are looked at."""
    steps = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(40)}
    assert argument_problem({"$ref": "#/$defs/s0", "$defs": steps}, {}) is None


WORDS = [str(number) for number in range(2000)]
PATTERNS = {"type": "object", "patternProperties": {f"(a|b|c)*d{number}": {} for number in range(500)}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"enum": WORDS}}, ["1999"] * 4000),
        (PATTERNS, {f"k{number}": 1 for number in range(2000)}),
        ({"allOf": [{"pattern": f"(x|y)*{number}"} for number in range(2000)]}, "x" * 20_000),
    ],
)
def test_a_check_is_bounded_by_what_it_compares(
    schema: Any, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While schemas alone were counted, the first took 59 seconds and the second 83."""
    compared: list[int] = []
    same, pattern = tool_definitions._same, tool_definitions.compiled
    monkeypatch.setattr(tool_definitions, "_same", lambda *pair: compared.append(1) or same(*pair))
    monkeypatch.setattr(tool_definitions, "compiled", lambda text: compared.append(10) or pattern(text))
    argument_problem({"properties": {"x": schema}}, {"x": value})
    assert sum(compared) <= 5000


def test_names_that_are_required_count_too() -> None:
    """20,000 names in each of 4,000 objects took 7 seconds."""
    looked: list[object] = []

    class Looked(dict[str, Any]):
        def __contains__(self, name: object) -> bool:
            looked.append(name)
            return super().__contains__(name)

    schema = {"properties": {"x": {"items": {"required": ["a"] * 1000}}}}
    assert argument_problem(schema, {"x": [Looked(a=1)] * 4000}) is None
    assert 1000 <= len(looked) <= 5000


def test_a_reference_is_followed_up_to_a_length() -> None:
    for name, problem in (("x" * 900, "the arguments: not allowed"), ("x" * 1000, None)):
        assert argument_problem({"$ref": f"#/$defs/{name}", "$defs": {name: False}}, {}) == problem


def test_what_is_listed_in_a_message_is_bounded() -> None:
    schema = {"properties": {f"{number}" * 100: {} for number in range(5000)}, "additionalProperties": False}
    problem = argument_problem(schema, {"q": 1})
    assert problem is not None and problem.endswith(" and 4970 more") and len(problem) < 2500


def test_types_as_others_write_them() -> None:
    schema = {
        "type": "dict",
        "properties": {"sum": {"type": "float"}, "note": {"type": "str", "nullable": True}},
    }
    assert argument_problem(schema, {"sum": 2, "note": None}) is None
    assert argument_problem(schema, {"sum": "2"}) == "sum: expected a number, got a string"


def test_definitions_in_every_place_and_form() -> None:
    openai = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
    anthropic = {
        "name": "book",
        "description": "Books.",
        "input_schema": {"type": "object", "required": ["id"]},
    }
    metadata = {
        "tools": [openai, "no tool", {}],
        "agent": {"name": "fox", "tool_definitions": [anthropic, openai]},
    }
    found = stated_tools(metadata, {"tools": "text"}, {})
    assert [tool["function"]["name"] for tool in found] == ["find", "book"]
    assert found[1]["function"]["parameters"] == {"type": "object", "required": ["id"]}

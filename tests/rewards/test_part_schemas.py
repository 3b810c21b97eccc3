"""The cards of the builder follow the published spec."""

from typing import Any

from apps.rewards.part_schemas import part_schemas
from workers.schema.endpoints import parse_spec

EXAMPLES = {
    "name": "x",
    "model": "a/b@1",
    "criterion": "polite",
    "expression": "a",
    "url": "http://x.test",
    "judge": "j",
    "milestones": [{"expression": "passed"}],
    "component": "y",
    "checks": [{"name": "once", "tools": ["refund"], "most_calls": 1}],
    "low": -1,
    "high": 1,
}


def test_every_type_has_a_card_whose_defaults_are_valid() -> None:
    schemas = part_schemas()
    listed = [part["type"] for parts in schemas.values() for part in parts]
    titles = [part["title"] for parts in schemas.values() for part in parts]
    assert len(set(listed)) == len(set(titles)) == len(listed)
    assert all(part["title"] and part["help"] for parts in schemas.values() for part in parts)
    for part in schemas["components"]:
        made: dict[str, Any] = {"type": part["type"]}
        made |= {field["name"]: EXAMPLES[field["name"]] for field in part["fields"] if field["required"]}
        made |= {
            field["name"]: field["default"]
            for field in part["fields"]
            if not field["required"] and field["default"] is not None
        }
        if part["type"] == "python":
            made["code"] = "def reward(trajectory):\n    return 1"
        if part["type"] != "token_penalty":  # which needs a model
            other = {"name": "y", "type": "step_penalty"}  # for a part that looks at another one
            assert parse_spec({"components": [made, other]}).components[0].name == "x"
        assert all(
            field["kind"]
            in (
                "text",
                "number",
                "model",
                "judge",
                "choice",
                "json",
                "flag",
                "code",
                "program",
                "component",
                "components",
            )
            for field in part["fields"]
        )


def test_numbers_choices_and_names_of_other_parts() -> None:
    fields = {
        (part["type"], field["name"]): field
        for parts in part_schemas().values()
        for part in parts
        for field in part["fields"]
    }
    assert fields["token_penalty", "free"]["whole"] and not fields["clip", "eta"]["whole"]
    assert fields["gate", "component"]["kind"] == "component"
    assert fields["pattern", "within"]["choices"] == ["last", "all"]
    passages = fields["judge", "passages"]
    assert (passages["kind"], passages["choices"]) == ("choice", ["retrieved", "cited"])
    assert (passages["required"], passages["default"]) == (False, None)
    assert fields["answer_match", "compare"]["choices"] == ["exact", "f1", "numeric", "set", "math"]
    assert (fields["milestones", "milestones"]["kind"], fields["milestones", "in_order"]["kind"]) == (
        "json",
        "flag",
    )
    assert fields["shaping", "end"]["choices"] == ["zero", "kept"]
    assert fields["krc", "components"]["kind"] == "components"
    assert fields["python", "code"]["kind"] == "code" and ("python", "code_hash") not in fields
    assert fields["judge", "otherwise"] | {"default": None} == fields["judge", "otherwise"]


def test_what_the_help_says_of_a_field_is_at_the_field() -> None:
    parts = {part["type"]: part for parts in part_schemas().values() for part in parts}
    helps = {field["name"]: field["help"] for field in parts["judge"]["fields"]}
    assert helps["otherwise"] == "The number where the judge cannot tell; else that is an error."
    assert helps["weight"] == "" and "otherwise" not in parts["judge"]["help"]
    assert parts["judge"]["help"].endswith("and asked for critiques only.")
    weights = {field["name"]: field["help"] for field in parts["tool_match"]["fields"]}
    assert weights["name_weight"] == weights["value_weight"] != ""
    assert parts["gate"]["help"].startswith("otherwise where the component's value is below at_least;")
    assert {field["label"] for field in parts["verifier"]["fields"]} >= {"URL", "Timeout seconds"}

"""The cards of the builder follow the published spec."""

from typing import Any

from apps.rewards.part_schemas import TITLES, part_schemas
from workers.schema.endpoints import parse_spec

EXAMPLES = {
    "name": "x",
    "model": "a/b@1",
    "criterion": "polite",
    "expression": "a",
    "url": "http://x.test",
    "judge": "j",
}


def test_every_type_has_a_card_whose_defaults_are_valid() -> None:
    schemas = part_schemas()
    listed = [part["type"] for parts in schemas.values() for part in parts]
    assert sorted(listed) == sorted(TITLES)
    for part in schemas["components"]:
        made: dict[str, Any] = {"type": part["type"]}
        made |= {field["name"]: EXAMPLES[field["name"]] for field in part["fields"] if field["required"]}
        made |= {
            field["name"]: field["default"]
            for field in part["fields"]
            if not field["required"] and field["default"] is not None
        }
        if part["type"] == "reward_model":
            assert parse_spec({"components": [made]}).components[0].name == "x"
        assert all(
            field["kind"] in ("text", "number", "model", "judge", "choice") for field in part["fields"]
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
    assert fields["judge", "otherwise"] | {"default": None} == fields["judge", "otherwise"]

"""The form of a recipe has every key once, and TOML of a field is read back."""

import dataclasses

from apps.training.recipe_fields import GROUPS, recipe_groups
from workers.schema.recipe import OBJECTIVES, Recipe


def test_every_key_is_in_one_group() -> None:
    keys = [key for group in GROUPS.values() for key in group]
    assert sorted(keys) == sorted(field.name for field in dataclasses.fields(Recipe))


def test_kinds_choices_and_help_follow_the_recipe() -> None:
    fields = {field.key: field for _, group in recipe_groups() for field in group}
    assert fields["objective"].choices == tuple(OBJECTIVES)
    assert (fields["unfrozen"].kind, fields["unfrozen"].choices) == ("flag", ("true", "false"))
    assert (fields["epochs"].kind, fields["epochs"].default) == ("number", "20")
    assert fields["search"].kind == "toml" and fields["encoder"].kind == "text"
    assert all(field.purpose and field.reason for field in fields.values())

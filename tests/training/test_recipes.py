"""Recipes as TOML."""

import pytest

from apps.training.recipes import as_toml
from workers.schema.recipe import parse_recipe, recipe_to_dict


@pytest.mark.parametrize(
    "toml",
    [
        "",
        "epochs = 3\n",
        'objective = "process"\n',
        'objective = "process"\naggregation = "mean"\n',
        'objective = "joint"\njoint_weights = {outcome = 0.5, process = 0.0}\n',
        'backbone = "decoder"\ndecoder = "/models/a \\"b\\""\nlora_rank = 0\n',
        'criterion = "höflich"\nunfrozen = true\nmargins = [0.0, 0.5, 1.0]\n',
        'generators = ["outcome", "swap"]\n',
    ],
)
def test_what_differs_from_the_defaults_and_back(toml: str) -> None:
    values = recipe_to_dict(parse_recipe(toml))
    assert parse_recipe(as_toml(values)) == parse_recipe(toml)
    assert sorted(as_toml(values).splitlines()) == sorted(toml.splitlines())

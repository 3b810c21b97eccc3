"""Recipes as TOML."""

import pytest

from apps.core.errors import DomainError
from apps.datasets.models import DatasetVersion
from apps.training import services
from apps.training.models import Recipe
from apps.training.recipes import as_toml, check, choose, for_dataset
from workers.schema.recipe import parse_recipe, recipe_to_dict
from workers.schema.recipe_keys import parse_new_recipe, without_unread_keys


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


def test_a_stored_recipe_with_a_key_without_effect_is_used_and_a_new_one_refused(project) -> None:
    text = "lora_rank = 0\nepochs = 3\n"
    with pytest.raises(DomainError, match="lora_rank = 0 has no effect") as caught:
        services.save_recipe(project=project, name="new", toml=text, by=None)
    assert caught.value.pointer == "/lora_rank"
    Recipe.objects.create(project=project, name="old", toml=text)
    assert choose(project, "old").recipe.lora_rank == 0
    form_text = as_toml(choose(project, "old").values)
    assert form_text == "epochs = 3\n"
    assert check(form_text).epochs == 3


@pytest.mark.parametrize("name", ["auto", "bradley-terry", "own"])
def test_a_name_that_has_a_meaning_is_not_given_to_a_recipe(project, name) -> None:
    with pytest.raises(DomainError, match=f"'{name}' cannot be the name of a recipe") as caught:
        services.save_recipe(project=project, name=name, toml="epochs = 3\n", by=None)
    assert caught.value.pointer == "/save_as"
    assert not Recipe.objects.exists()


def test_a_recipe_of_an_earlier_version_named_auto_is_used_as_it_is(project) -> None:
    Recipe.objects.create(project=project, name="auto", toml="epochs = 3\nensemble = 2\n")
    chosen = choose(project, "auto")
    assert for_dataset(chosen, DatasetVersion(usable_pairs=0, records={"outcome": 90})) is chosen


@pytest.mark.parametrize(
    ("pairs", "records", "objective"),
    [
        (2, {"pairwise": 2, "outcome": 90}, "bradley_terry"),
        (0, {"outcome": 90}, "outcome"),
        (0, {"rating": 4, "rubric": 9}, "regression"),
        (1, {"pairwise": 1, "step": 50}, "process"),
        (0, {"ranking": 20, "comment": 3}, "plackett_luce"),
        (0, {"outcome": 20, "step": 3}, "joint"),
        (0, {"comment": 3}, "bradley_terry"),  # which is refused in the words of any other recipe
    ],
)
def test_auto_learns_from_what_there_is(project, pairs, records, objective) -> None:
    dataset_version = DatasetVersion(usable_pairs=pairs, records=records)
    chosen = for_dataset(choose(project, "auto"), dataset_version)
    assert (chosen.name, chosen.recipe.objective) == ("auto", objective)
    assert chosen.recipe.search == ("linear", "hybrid", "frozen", "unfrozen")
    named = choose(project, "bradley-terry")
    assert for_dataset(named, dataset_version) is named


@pytest.mark.parametrize(
    "stored",
    [
        {"objective": "outcome", "generators": ["swap"], "generated_weight": 0.3},
        {"backbone": "features", "unfrozen": True, "batch_tasks": 8},
    ],
)
def test_a_key_that_only_an_unread_key_read_is_unread_too(stored: dict) -> None:
    kept = without_unread_keys(stored)
    parse_new_recipe(kept)
    assert set(kept) == set(list(stored)[:1])

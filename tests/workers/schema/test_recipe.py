import dataclasses

import pytest

from workers.errors import RewardError
from workers.schema.builtin_recipes import builtin_recipes
from workers.schema.recipe import Recipe, parse_recipe, recipe_to_dict
from workers.schema.recipe_help import PURPOSES, REASONS


def test_an_empty_recipe_is_the_default_one():
    assert parse_recipe("") == Recipe() == parse_recipe({})


def test_toml_and_dict_say_the_same():
    text = 'aggregation = "mean"\nmargins = [0, 0.5, 1]\nlearning_rate = 1\n'
    expected = Recipe(aggregation="mean", margins=(0.0, 0.5, 1.0), learning_rate=1.0)
    assert parse_recipe(text) == expected
    assert parse_recipe(recipe_to_dict(expected)) == expected


def test_every_builtin_recipe_comes_back_from_its_dict():
    for recipe in builtin_recipes().values():
        assert parse_recipe(recipe_to_dict(recipe)) == recipe
    assert not builtin_recipes()["bradley-terry"].unfrozen
    assert builtin_recipes()["bradley-terry-unfrozen"].unfrozen


def test_a_decoder_trained_as_a_whole_has_its_own_defaults() -> None:
    adapters = parse_recipe({"backbone": "decoder", "decoder": "a"})
    whole = parse_recipe({"backbone": "decoder", "decoder": "a", "lora_rank": 0})
    assert (adapters.learning_rate, adapters.epochs, adapters.gradient_checkpointing) == (1e-4, 2, False)
    assert (whole.learning_rate, whole.epochs, whole.gradient_checkpointing) == (1e-5, 1, True)
    assert adapters.checkpoint_seconds == whole.checkpoint_seconds == 600
    given = {"backbone": "decoder", "decoder": "a", "lora_rank": 0, "learning_rate": 3e-6}
    assert parse_recipe(given).learning_rate == 3e-6
    assert parse_recipe({"lora_rank": 0}) == dataclasses.replace(Recipe(), lora_rank=0)


def test_the_recipes_of_decoders_are_for_long_trajectories() -> None:
    for name in ("qwen3-0.6b", "qwen3-4b-lora", "8b-qlora"):
        recipe = builtin_recipes()[name]
        assert (recipe.max_tokens, recipe.batch_pairs, recipe.gradient_checkpointing) == (16_384, 64, True)
        assert recipe.batch_tokens == 2 * recipe.max_tokens * recipe.batch_pairs
        assert recipe.strength_weights == (1.0, 2.0, 3.0)
    assert builtin_recipes()["qwen3-0.6b"].learning_rate == 1e-5
    assert builtin_recipes()["8b-qlora"].base_weights == "nf4"


def test_every_knob_has_a_purpose_and_its_default_a_reason():
    assert list(PURPOSES) == list(REASONS) == [field.name for field in dataclasses.fields(Recipe)]


def test_a_sum_is_not_centred_unless_somebody_says_so():
    assert parse_recipe({"aggregation": "sum"}).centring == 0
    assert parse_recipe({"objective": "progress"}).centring == 0
    assert parse_recipe({"aggregation": "sum", "centring": 0.02}).centring == 0.02
    assert parse_recipe({"aggregation": "mean"}).centring == Recipe().centring


@pytest.mark.parametrize(
    ("text", "pointer", "says"),
    [
        ("learning_rat = 1", "/learning_rat", "learning_rate"),
        ('"a/b" = 1', "/a~1b", "known are objective"),
        ("epochs = 0", "/epochs", ">= 1"),
        ("epochs = 1.5", "/epochs", "int"),
        ("unfrozen = 1", "/unfrozen", "bool"),
        ('objective = "plackett"', "/objective", "plackett"),
        ("learning_rate = nan", "/learning_rate", "finite"),
        ("margins = [0, 0, inf]", "/margins", "finite"),
        ("margins = [0, -1, 0]", "/margins", ">= 0"),
        ("margins = [0, 1]", "/margins", "length"),
        ("width = 30\nattention_heads = 4", "/attention_heads", "divide"),
        ("chunk_tokens = 64\nmax_tokens = 95", "/chunk_tokens", "leave room"),
        ("folds = 1", "/folds", "at least 2"),
        ("epochs = ", "", "TOML"),
        ("strength_weights = [1, 2, 0]", "/strength_weights", "> 0"),
        ('base_weights = "nf4"', "/base_weights", "means nothing to the backbone 'step-encoder'"),
        (
            'backbone = "decoder"\ndecoder = "a"\nlora_rank = 0\nbase_weights = "bfloat16"',
            "/base_weights",
            "Set lora_rank above 0",
        ),
    ],
)
def test_a_bad_recipe_is_refused_with_the_key(text, pointer, says):
    with pytest.raises(RewardError) as caught:
        parse_recipe(text)
    assert caught.value.pointer == pointer
    assert says in caught.value.message


def test_reading_a_recipe_loads_no_torch():
    import subprocess
    import sys

    code = "import sys, workers.schema.recipe; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

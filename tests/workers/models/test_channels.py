"""Models that read some channels of a step's features only."""

import numpy as np
import pytest

from tests.workers.conftest import preference
from workers.errors import RewardError
from workers.models import build, load
from workers.models.backbones.channels import is_in_channels
from workers.models.backbones.condition_entries import CONDITIONED_WIDTH, FIRST_CONDITION
from workers.models.backbones.design_matrix import DesignMatrix
from workers.models.backbones.step_entries import FIRST_EMBEDDING, FIRST_STRUCTURE
from workers.schema.recipe import parse_recipe
from workers.schema.recipe_help import CHANNELS
from workers.schema.recipe_keys import parse_new_recipe
from workers.text import STRUCTURE
from workers.text.ngrams import COLUMNS
from workers.text.overlap import NAMES as OVERLAP
from workers.train.pipeline import train

pytestmark = pytest.mark.ml


def test_every_column_is_in_one_channel() -> None:
    columns = np.concatenate([np.arange(FIRST_EMBEDDING + 5), np.arange(FIRST_CONDITION, CONDITIONED_WIDTH)])
    found = {name: is_in_channels(columns, [name]) for name in CHANNELS}
    assert (np.sum([*found.values()], axis=0) == 1).all()
    assert {name: int(flags.sum()) for name, flags in found.items()} == {
        "words": COLUMNS,
        "characters": COLUMNS,
        "observations": COLUMNS,
        "structure": len(STRUCTURE) - len(OVERLAP),
        "overlap": len(OVERLAP),
        "embedding": 5,
        "conditions": COLUMNS,
    }
    names = [STRUCTURE[column - FIRST_STRUCTURE] for column in np.flatnonzero(found["overlap"])]
    assert names == list(OVERLAP)


def test_a_model_without_words_does_not_read_them(run_directory) -> None:
    splits = {
        "train": [preference(number) for number in range(30)],
        "test": [preference(31)],
        "validation": [],
    }
    recipe = parse_recipe({"backbone": "linear", "channels": ["words"]})
    folder = run_directory(recipe, splits=splits)
    assert train(folder)["preference"]["accuracy"] == 1.0
    model = load(folder / "model")
    columns = model.model.backbone.columns.numpy()
    assert is_in_channels(columns, ["words"]).all() and len(columns)
    rows = model.model.backbone.design_rows([model.render(preference(0, choice="a").a)], DesignMatrix())
    everything = model.render(preference(0).a)
    unread = DesignMatrix().rows([everything], model.model.backbone.known).unseen
    assert rows.unseen.nnz < unread.nnz  # features of other channels are not unseen words


def test_channels_in_recipes() -> None:
    with pytest.raises(RewardError, match="has no encoder") as error:
        parse_recipe({"backbone": "linear", "channels": ["words", "embedding"]})
    assert error.value.pointer == "/channels"
    with pytest.raises(RewardError, match="names one twice: words, words") as error:
        parse_recipe({"backbone": "linear", "channels": ["words", "words"]})
    assert error.value.pointer == "/channels"
    with pytest.raises(RewardError, match="has no effect"):
        parse_new_recipe({"channels": ["words"]})
    with pytest.raises(RewardError):
        parse_recipe({"backbone": "linear", "channels": ["wrds"]})


@pytest.mark.parametrize(
    ("channels", "weights"),
    [
        ((), (0.0, 1.0, 2.0)),
        (("words", "embedding"), (0.0, 1.0, 2.0)),
        (("words",), (0.0,)),
        (("embedding",), (1.0,)),
    ],
)
def test_what_the_weight_of_embeddings_is_chosen_from(tiny_encoder, channels, weights) -> None:
    values = {"backbone": "hybrid", "encoder": str(tiny_encoder), "chunk_tokens": 16}
    recipe = parse_recipe(values | {"channels": channels})
    assert build(recipe).backbone.embedding_weights == weights

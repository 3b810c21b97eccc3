"""The hybrid backbone: its embeddings, the weight they get, and that its scores are its own."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.workers.conftest import preference, trajectory
from workers.errors import RewardError
from workers.models import ChunkCache, build, load, renderer_of
from workers.models.backbones import chunk_encoder
from workers.models.backbones.encoder import encode
from workers.models.backbones.hybrid import HybridBackbone
from workers.models.backbones.layer_encoder import middle_layer
from workers.models.backbones.step_entries import FIRST_EMBEDDING
from workers.models.reasons import attribute
from workers.objectives import Examples, collect_training
from workers.schema import PreferenceRecord, Text
from workers.schema.reasons import WordReason
from workers.schema.recipe import Recipe, parse_recipe
from workers.schema.records import record_trajectories
from workers.schema.storage import read_split
from workers.text.word_deletion import without_word
from workers.train.convex import ConvexTrainer
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.penalty_choice import DEFAULT_VARIANCE
from workers.train.pipeline import train
from workers.train.reward_statistics import reward_statistics, score_rendered

pytestmark = pytest.mark.ml
TEXTS = ["good good", "the order was lost " * 9, "never seen before", "", "refund sent", "bad"]


@pytest.fixture
def recipe(tiny_encoder) -> Recipe:
    values = {"backbone": "hybrid", "encoder": str(tiny_encoder), "chunk_tokens": 16, "ensemble": 2}
    return parse_recipe(values)


def fitted(records, recipe) -> tuple[ConvexTrainer, list[str]]:
    """A trainer after its run, and what it reported."""
    said: list[str] = []
    trainer = ConvexTrainer(
        MultiObjectiveModule(recipe, collect_training(records, renderer_of(recipe), recipe), seed=0),
        recipe,
        Examples(),
        seed=0,
        report=lambda **event: said.append(event.get("message") or ""),
    )
    trainer.run()
    return trainer, said


def backbone_of(recipe: Recipe) -> HybridBackbone:
    backbone = build(recipe).backbone
    assert isinstance(backbone, HybridBackbone)
    return backbone


def test_a_step_has_the_mean_of_its_chunks_vectors(recipe) -> None:
    backbone = backbone_of(recipe)
    items = [backbone.renderer.render(Text(text)) for text in TEXTS]
    matrix = backbone.new_cache(0)
    known = matrix.columns(items)
    rows = matrix.rows(items, known).matrix.toarray()
    embeddings = rows[:, known >= FIRST_EMBEDDING]
    assert embeddings.shape == (len(TEXTS), backbone.encoder.hidden)
    chunks = items[1].chunks[0]
    assert len(chunks) > 1
    expected = encode(backbone.encoder.module, chunks).mean(0)
    assert embeddings[1] == pytest.approx(expected.numpy(), abs=1e-6)
    assert embeddings[0] == pytest.approx(_middle_vector(backbone, items[0].chunks[0][0]), abs=1e-6)
    assert np.linalg.norm(embeddings[0]) == pytest.approx(1.0, abs=1e-6)
    assert not embeddings[3].any()


def _middle_vector(backbone: HybridBackbone, ids: tuple[int, ...]) -> np.ndarray:
    """By the first of the tiny encoder's two layers alone."""
    bert: Any = backbone.encoder.whole
    with torch.no_grad():
        hidden = bert.embeddings(torch.tensor([ids]))
        hidden = bert.encoder.layer[0](hidden)
    hidden = hidden[0] if isinstance(hidden, tuple) else hidden
    vector = hidden.reshape(len(ids), -1).mean(0)
    return (vector / vector.norm()).numpy()


@pytest.mark.parametrize(("layers", "middle"), [(1, 1), (2, 1), (6, 4), (12, 8)])
def test_two_thirds_of_the_layers_are_read(layers, middle) -> None:
    encoder = torch.nn.Module()
    encoder.config = SimpleNamespace(num_hidden_layers=layers)
    assert middle_layer(encoder) == middle


def test_every_chunk_is_encoded_once_in_a_fit(recipe, monkeypatch) -> None:
    encoded: list[tuple[int, ...]] = []

    def counted(encoder, chunks, *, pooling, bfloat16):
        encoded.extend(chunks)
        return encode(encoder, chunks, pooling=pooling, bfloat16=bfloat16)

    monkeypatch.setattr(chunk_encoder, "encode", counted)
    fitted([preference(number) for number in range(20)], recipe)
    assert len(encoded) == len(set(encoded)) == 10


class TestWeight:
    def test_it_is_0_where_embeddings_are_noise(self, recipe, monkeypatch) -> None:
        """Vectors by a coin for every text; the words decide."""

        def noise(encoder, chunks, *, pooling, bfloat16):
            drawn = [np.random.default_rng(sum(map(hash, chunk)) % 2**32) for chunk in chunks]
            vectors = np.array([dice.standard_normal(chunk_encoder.hidden_size(encoder)) for dice in drawn])
            return torch.nn.functional.normalize(torch.from_numpy(vectors).float(), dim=-1)

        monkeypatch.setattr(chunk_encoder, "encode", noise)
        dice = np.random.default_rng(0)
        words = ["lost", "sent", "refund", "order", "the", "hello", "yes", "no", "was", "fine"]
        records = [
            PreferenceRecord(
                a=trajectory(f"good {' '.join(dice.choice(words, 6))}", task=f"t{number}"),
                b=trajectory(f"bad {' '.join(dice.choice(words, 6))}", task=f"t{number}"),
                choice="a" if dice.random() < 0.85 else "b",
                annotator="ann",
            )
            for number in range(150)
        ]
        trainer, said = fitted(records, recipe)
        assert trainer.backbone.embedding_weight == 0.0
        (choice,) = [message for message in said if "and embedding weight 0, by the loss on" in message]
        assert " and 1: " in choice
        assert " and 2: " in choice

    def test_it_is_not_0_where_only_embeddings_generalise(self, recipe, monkeypatch) -> None:
        """Every word stands in one task alone; the encoder gives those of the better side one direction."""

        def telling(encoder, chunks, *, pooling, bfloat16):
            vectors = torch.zeros(len(chunks), chunk_encoder.hidden_size(encoder))
            for row, chunk in enumerate(chunks):
                vectors[row, int(even in chunk)] = 1.0
            return vectors

        even = renderer_of(recipe).tokens.token_ids("+")[0]
        monkeypatch.setattr(chunk_encoder, "encode", telling)
        dice = np.random.default_rng(1)
        letters = list("abcdefghijklmnopqrstuvwxyz")
        records = []
        for number in range(90):
            first, second = ("".join(dice.choice(letters, 9)) for _ in range(2))
            sides = {"a": f"{first}+{first[:2]}", "b": f"{second}-{second[:2]}"}
            runs = {side: trajectory(text, task=f"t{number}") for side, text in sides.items()}
            records.append(PreferenceRecord(**runs, choice="a", annotator="ann"))
        trainer, _ = fitted(records, recipe)
        assert trainer.backbone.embedding_weight > 0.0

    def test_few_tasks_take_the_default(self, recipe) -> None:
        records = [preference(number) for number in range(6)]
        trainer, _ = fitted(records, recipe)
        assert trainer.backbone.embedding_weight == 1.0
        assert trainer.backbone.penalty == 1 / DEFAULT_VARIANCE

    def test_it_multiplies_what_embeddings_are_worth(self, recipe) -> None:
        trainer, _ = fitted([preference(number) for number in range(6)], recipe)
        backbone = trainer.backbone
        item = backbone.renderer.render(Text("good sent"))
        rewards = []
        for backbone.embedding_weight in (0.0, 0.5, 1.0):
            with torch.no_grad():
                rewards.append(float(trainer.model([item]).rewards.mean()))
        assert rewards[1] - rewards[0] == pytest.approx((rewards[2] - rewards[0]) / 2, abs=1e-9)
        assert abs(rewards[2] - rewards[0]) > 1e-4


@pytest.fixture
def trained(run_directory, recipe):
    folder = run_directory(recipe)
    report = train(folder)
    assert report["preference"]["accuracy"] > 0.75
    return folder


class TestModel:
    def test_equal_scores_whatever_it_is_batched_with_and_whatever_is_cached(self, trained) -> None:
        model = load(trained / "model")
        items = [model.render(Text(text)) for text in TEXTS]
        together = model.score(items)
        cache: Any = ChunkCache(2**20).within("project")
        first = model.score(items[:2], cache=cache)
        assert len(cache.cache) == len({chunk for item in items[:2] for chunk in item.chunks[0]})
        again = model.score(items, cache=cache)
        alone = [model.score([item])[0] for item in items]
        for scores in (again, alone, [*first, *alone[2:]]):
            assert [score.raw for score in scores] == pytest.approx(
                [score.raw for score in together], abs=1e-5
            )
        assert max(score.raw for score in together) - min(score.raw for score in together) > 1e-3

    def test_a_saved_model_is_the_one_that_was_trained(self, recipe, trained) -> None:
        model, again = load(trained / "model"), load(trained / "model")
        backbone = model.model.backbone
        assert isinstance(backbone, HybridBackbone)
        assert model.manifest["backbone"]["kind"] == "hybrid"
        assert model.manifest["backbone"]["embedding_weight"] == backbone.embedding_weight
        assert model.manifest["backbone"]["layer"] == backbone.encoder.layer == 1
        assert backbone.deviates
        item = model.render(Text("good sent"))
        (mine,), (other,) = model.score([item]), again.score([item])
        assert (mine.raw, mine.std) == (other.raw, other.std)
        assert mine.raw == pytest.approx(mine.offset + sum(mine.step_rewards), abs=1e-9)
        assert next(backbone.encoder.module.parameters()).dtype == torch.float32
        reward = model.manifest["reward"]
        assert reward == pytest.approx(_reward_of_training(model, trained), abs=1e-6)

    def test_reasons_are_what_deletion_changes(self, trained) -> None:
        model, content = load(trained / "model"), Text("good sent late good")
        (whole,) = model.score([model.render(content)])
        parts = attribute(model, model.render(content))
        total = parts.start + parts.texts.sum() + parts.events.sum() + parts.embeddings.sum()
        assert total == pytest.approx(whole.raw, abs=1e-6)
        assert model.model.backbone.embedding_weight == 0 or abs(parts.embeddings.sum()) > 1e-6
        words = [reason for reason in model.reasons(content) if isinstance(reason, WordReason)]
        assert "good" in {reason.text for reason in words}
        for reason in words:
            (without,) = model.score([model.render(without_word(content, reason.text))])
            assert reason.by == pytest.approx((whole.raw - without.raw) / model.std, abs=1e-5)


def _reward_of_training(model, folder) -> dict[str, float]:
    """Median and spread of the training's trajectories, as the loaded model scores them."""
    runs = [run for record in read_split(folder, "train") for run in record_trajectories(record)]
    rendered = list({item.key: item for item in map(model.render, runs)}.values())
    return reward_statistics(score_rendered(model.model, rendered).raw)


@pytest.mark.parametrize("key", ["heads_only", "unfrozen"])
def test_what_means_nothing_to_it_is_refused(key) -> None:
    with pytest.raises(RewardError, match=f"{key} means nothing to the backbone 'hybrid'"):
        parse_recipe({"backbone": "hybrid", key: True})

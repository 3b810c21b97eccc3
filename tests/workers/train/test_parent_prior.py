"""The weights of a linear or hybrid parent as the mean of the prior."""

import shutil

import numpy as np
import pytest
import torch

from tests.workers.conftest import preference, trajectory
from tests.workers.train.test_convex import noisy
from workers.errors import RewardError
from workers.models import load, renderer_of
from workers.objectives import Examples, collect_training
from workers.schema import OutcomeRecord, PreferenceRecord
from workers.schema.parents import can_be_parent, can_train_heads, is_prior_mean, require_parent
from workers.schema.recipe import parse_recipe
from workers.train.convex import ConvexTrainer
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.penalty_choice import PARENT_FACTORS, ChosenPenalty, choose_penalty
from workers.train.pipeline import train
from workers.train.reward_statistics import score_rendered

pytestmark = pytest.mark.ml


def fitted(
    records, *, parent=None, penalty=None, like=None, seen_tasks=frozenset(), **values
) -> tuple[ConvexTrainer, list[str]]:
    recipe = parse_recipe({"backbone": "linear", "ensemble": 1} | values)
    examples = collect_training(records, renderer_of(recipe), recipe)
    module = MultiObjectiveModule(recipe, examples, seed=0, parent=parent, like=like)
    said: list[str] = []
    trainer = ConvexTrainer(
        module,
        recipe,
        Examples(),
        seed=0,
        report=lambda **event: said.append(event.get("message", "")),
        penalty=penalty,
        seen_tasks=seen_tasks,
    )
    trainer.run()
    return trainer, said


def turned(records) -> list[PreferenceRecord]:
    """The same comparisons with the other winner."""
    return [
        PreferenceRecord(a=record.a, b=record.b, choice="b" if record.choice == "a" else "a", annotator="ann")
        for record in records
    ]


def raw(trainer: ConvexTrainer, texts) -> np.ndarray:
    render = trainer.backbone.renderer.render
    return score_rendered(trainer.model, [render(trajectory(text)) for text in texts]).raw.numpy()


@pytest.fixture(scope="module")
def parent() -> ConvexTrainer:
    return fitted(noisy(300))[0]


class TestFit:
    @pytest.mark.parametrize("factor", [0.5, 1.0])
    def test_with_a_strong_penalty_it_scores_as_the_parent(self, parent, factor) -> None:
        child, _ = fitted(noisy(20, seed=5), parent=parent.model, penalty=ChosenPenalty(1e-12, 0.0, factor))
        texts = ["good sent", "wrong late", "words that neither has"]
        assert raw(child, texts) == pytest.approx(factor * raw(parent, texts), abs=1e-6)

    def test_the_penalty_is_on_the_distance_to_the_prior_mean(self, parent) -> None:
        """At the minimum, the gradient of the sum of losses is (mean - weight) / variance."""
        records, variance = noisy(80, seed=6), 0.1
        child, _ = fitted(records, parent=parent.model, penalty=ChosenPenalty(variance, 0.0, 0.5))
        backbone = child.backbone
        weight = backbone.weight.detach().numpy()[:, 0]
        sides = [
            backbone.design_rows(
                [backbone.renderer.render(getattr(record, side)) for record in records]
            ).matrix
            for side in "ab"
        ]
        difference = (sides[0] - sides[1]).toarray()
        wins = np.array([record.choice == "a" for record in records])
        p = 1 / (1 + np.exp(-difference @ weight))
        gradient = difference.T @ (p - wins)
        mean = 0.5 * backbone.parent_weight().detach().numpy()[:, 0]
        assert gradient == pytest.approx((mean - weight) / variance, abs=1e-3)
        assert np.abs(gradient).max() > 0.05

    def test_features_that_only_the_parent_has_stay(self, parent) -> None:
        child, _ = fitted(
            [preference(number) for number in range(12)],
            parent=parent.model,
            penalty=ChosenPenalty(3.0, 0.0, 0.25),
        )
        columns = child.backbone.columns.numpy()
        assert np.isin(parent.backbone.columns.numpy(), columns).all()
        assert len(columns) > len(parent.backbone.columns)
        own = child.cache.columns([*child.examples.rendered])
        only = ~np.isin(columns, own)
        found = child.backbone.weight.detach().numpy()[only, 0]
        theirs = dict(
            zip(parent.backbone.columns.tolist(), parent.backbone.weight[:, 0].tolist(), strict=True)
        )
        assert found == pytest.approx([0.25 * theirs[column] for column in columns[only].tolist()], abs=1e-6)

    def test_outputs_are_matched_by_name(self, parent) -> None:
        """A child of outcomes has the reward of the parent, and no label or criterion of it."""
        outcomes = [
            OutcomeRecord(trajectory=trajectory(f"good {number}", task=f"t{number}"), success=number % 2 == 0)
            for number in range(12)
        ]
        child, _ = fitted(
            outcomes, parent=parent.model, objective="outcome", penalty=ChosenPenalty(1e-12, 0.0, 1.0)
        )
        start = float(child.backbone.intercept.detach()[0])
        assert raw(child, ["good sent"]) - start == pytest.approx(raw(parent, ["good sent"]), abs=1e-6)


class TestChoice:
    def test_a_parent_of_the_same_judgements_is_used(self, parent) -> None:
        child, said = fitted(noisy(40, seed=7), parent=parent.model)
        assert child.penalty is not None and child.penalty.factor > 0
        assert set(child.factor_losses) == set(PARENT_FACTORS)
        assert min(child.factor_losses.values()) == child.factor_losses[child.penalty.factor]
        assert child.factor_losses[0] - min(child.factor_losses.values()) > 0.05
        assert any("times the weights of the parent" in message for message in said)
        held_out = noisy(200, seed=8)
        alone, _ = fitted(noisy(40, seed=7))
        assert log_loss(child, held_out) < log_loss(alone, held_out) - 0.03

    def test_one_of_opposite_judgements_is_not(self) -> None:
        opposite, _ = fitted(turned(noisy(300)))
        child, _ = fitted(noisy(120, seed=7), parent=opposite.model)
        alone, _ = fitted(noisy(120, seed=7))
        assert child.penalty is not None and child.penalty.factor == 0
        assert raw(child, ["good sent", "wrong late"]) == pytest.approx(
            raw(alone, ["good sent", "wrong late"]), abs=1e-3
        )

    def test_only_where_it_helps_by_more_than_a_standard_error(self) -> None:
        without, helps = ChosenPenalty(0.3, 0.0), ChosenPenalty(0.3, 0.0, 0.5)
        records = {without: torch.tensor([0.7, 0.7, 0.7, 0.7]), helps: torch.tensor([0.6, 0.6, 0.6, 0.7])}
        means = {choice: float(losses.mean()) for choice, losses in records.items()}
        assert choose_penalty(means, records) == helps  # lower by 0.075, with an error of 0.025
        records[helps] = torch.tensor([0.3, 0.9, 0.5, 1.0])  # by 0.025, with an error of 0.17
        means[helps] = float(records[helps].mean())
        assert choose_penalty(means, records) == without

    def test_what_the_parent_has_learnt_from_does_not_speak_for_it(self) -> None:
        """A parent that knows the child's comparisons, which are random, predicts them best, and no others."""
        dice = np.random.default_rng(0)
        records = [
            PreferenceRecord(
                **{side: trajectory(f"{side}{number} x{number}{side}", task=f"t{number}") for side in "ab"},
                choice="a" if dice.random() < 0.5 else "b",
                annotator="ann",
            )
            for number in range(60)
        ]
        knows, _ = fitted(records[:40], penalty=ChosenPenalty(3.0, 0.0))
        child, _ = fitted(records, parent=knows.model)
        assert child.penalty is not None and child.penalty.factor > 0  # the fault
        seen = frozenset(f"t{number}" for number in range(40))
        child, _ = fitted(records, parent=knows.model, seen_tasks=seen)
        assert child.penalty is not None and child.penalty.factor == 0

    def test_a_parent_that_knows_nearly_all_tasks_is_not_used(self, parent) -> None:
        seen = frozenset(f"t{number}" for number in range(22))
        child, said = fitted(noisy(120, seed=7), parent=parent.model, seen_tasks=seen)
        assert child.penalty is not None and child.penalty.factor == 0
        assert any("the parent is not used" in message and "8 tasks" in message for message in said)

    def test_too_few_tasks_to_choose_by_use_none(self, parent) -> None:
        child, _ = fitted(noisy(30, seed=7, tasks=4), parent=parent.model)
        assert child.penalty is not None and child.penalty.factor == 0
        assert child.factor_losses == {}


def log_loss(trainer: ConvexTrainer, records) -> float:
    render = trainer.backbone.renderer.render
    first, second = (
        score_rendered(trainer.model, [render(getattr(record, side)) for record in records]).raw.numpy()
        for side in "ab"
    )
    sign = np.array([1 if record.choice == "a" else -1 for record in records])
    return float(np.logaddexp(0, -sign * (first - second)).mean())


class TestHybrid:
    @pytest.fixture
    def values(self, tiny_encoder) -> dict:
        return {"backbone": "hybrid", "encoder": str(tiny_encoder), "chunk_tokens": 16}

    @pytest.mark.parametrize("weight", [1.0, 2.0])
    def test_embeddings_count_as_in_the_parent_whatever_they_are_multiplied_by(self, values, weight) -> None:
        parent, _ = fitted(noisy(60), penalty=ChosenPenalty(0.3, 2.0), **values)
        child, _ = fitted(
            noisy(20, seed=5), parent=parent.model, penalty=ChosenPenalty(1e-12, weight, 1.0), **values
        )
        assert raw(child, ["good sent", "late"]) == pytest.approx(
            raw(parent, ["good sent", "late"]), abs=1e-6
        )

    def test_another_layer_is_refused(self, values) -> None:
        parent, _ = fitted(noisy(30), penalty=ChosenPenalty(0.3, 1.0), **values)
        parent.backbone.encoder.layer += 1
        with pytest.raises(RewardError, match="reads layer") as error:
            fitted(noisy(30), parent=parent.model, penalty=ChosenPenalty(0.3, 1.0), **values)
        assert error.value.pointer == "/parent"


def test_which_models_may_be_parents() -> None:
    linear, decoder, writer = ({"backbone": {"kind": kind}} for kind in ("linear", "decoder", "generative"))
    assert [can_be_parent(manifest) for manifest in (linear, decoder, writer)] == [True, True, False]
    assert [can_train_heads(manifest) for manifest in (linear, decoder, writer)] == [False, True, False]
    assert [is_prior_mean(manifest) for manifest in (linear, decoder, writer)] == [True, False, False]
    require_parent(parse_recipe({"backbone": "linear", "ensemble": 3}), linear)
    with pytest.raises(RewardError, match="the same backbone"):
        require_parent(parse_recipe({"backbone": "hybrid"}), linear)
    with pytest.raises(RewardError, match="training tasks of the parent"):
        require_parent(parse_recipe({"backbone": "linear", "folds": 3}), linear)


@pytest.mark.slow
def test_a_run_says_how_much_of_its_parent_it_uses_and_what_that_brings(run_directory) -> None:
    recipe = parse_recipe({"backbone": "linear", "ensemble": 1, "channels": ["words", "structure"]})
    first = run_directory(recipe, splits={"train": noisy(300), "validation": [], "test": noisy(20, seed=1)})
    train(first)
    held_out = noisy(120, seed=9)
    splits = {"train": noisy(40, seed=7), "validation": [], "test": held_out}
    folder = run_directory(recipe, splits=splits, parent={"name": "p/first@1"})
    shutil.copytree(first / "model", folder / "parent" / "model")
    report = train(folder)
    prior = report["train"]["prior"]
    assert prior["factor"] > 0 and list(prior["losses"]) == ["0", "0.25", "0.5", "1"]
    found = report["ablation"]["parts"]["preference"]["parent"]
    alone = train(run_directory(recipe, splits=splits))
    assert alone["train"]["prior"] is None and alone["ablation"]["parts"]["preference"]["parent"] is None
    assert found["value"] == pytest.approx(alone["preference"]["accuracy"], abs=0.02)
    assert found["difference"] == pytest.approx(report["preference"]["accuracy"] - found["value"], abs=0.02)
    model = load(folder / "model")
    assert model.manifest["parent"] == {"name": "p/first@1"}
    assert bool(torch.isfinite(model.model.backbone.weight).all())

"""A fit of the sums of trajectories is the fit of their steps."""

import numpy as np
import pytest

from tests.workers.conftest import said
from workers.models import renderer_of
from workers.models.backbones import design_matrix
from workers.models.backbones.design_matrix import DesignMatrix
from workers.objectives import Examples, collect_training
from workers.schema import PreferenceRecord, ScoreRecord, Task, Trajectory
from workers.schema.recipe import parse_recipe
from workers.train.convex import ConvexTrainer
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.penalty_choice import ChosenPenalty
from workers.train.reward_statistics import score_rendered

pytestmark = pytest.mark.ml
WORDS = ["good", "fine", "sent", "late", "lost", "wrong", "done", "kind"]


def long_trajectory(dice: np.random.Generator, task: str) -> Trajectory:
    texts = [" ".join(dice.choice(WORDS, 3)) for _ in range(2 + int(dice.integers(3)))]
    return Trajectory(
        steps=(said("user", "please"), *(said("agent", text) for text in texts)), task=Task(id=task)
    )


def comparisons(count: int) -> list[PreferenceRecord]:
    dice = np.random.default_rng(0)
    return [
        PreferenceRecord(
            a=long_trajectory(dice, f"t{number}"),
            b=long_trajectory(dice, f"t{number}"),
            choice=str(dice.choice(["a", "b", "tie"])),
            annotator="ann",
        )
        for number in range(count)
    ]


def fitted(records, *, reads_steps: bool = False, **values) -> ConvexTrainer:
    """reads_steps: as if its losses did."""
    recipe = parse_recipe({"backbone": "linear", "ensemble": 4} | values)
    examples = collect_training(records, renderer_of(recipe), recipe)
    module = MultiObjectiveModule(recipe, examples, seed=0)
    if reads_steps:
        for part in module.parts.values():
            part.reads_steps = True
    trainer = ConvexTrainer(
        module,
        recipe,
        Examples(),
        seed=0,
        report=lambda **event: None,
        penalty=ChosenPenalty(0.1, 0.0),
    )
    trainer.run()
    return trainer


def assert_equal_fits(sums: ConvexTrainer, steps: ConvexTrainer) -> None:
    assert sums.end_cache is not sums.cache
    assert steps.end_cache is steps.cache
    assert sums.losses[-1] == pytest.approx(steps.losses[-1], abs=1e-7)
    found, expected = (
        score_rendered(each.model, each.examples.rendered, cache=each.end_cache) for each in (sums, steps)
    )
    assert found.raw.numpy() == pytest.approx(expected.raw.numpy(), abs=1e-4)
    assert found.spread.numpy() == pytest.approx(expected.spread.numpy(), rel=0.05)
    assert float(expected.spread.min()) > 0.01
    again = score_rendered(sums.model, sums.examples.rendered)  # of steps, as it is served
    assert found.raw.numpy() == pytest.approx(again.raw.numpy(), abs=1e-5)
    assert found.spread.numpy() == pytest.approx(again.spread.numpy(), abs=1e-5)
    assert found.ends.numpy() == pytest.approx(again.ends.numpy(), abs=1e-5)


def test_comparisons_are_fitted_alike() -> None:
    records = comparisons(40)
    assert_equal_fits(fitted(records), fitted(records, reads_steps=True))


def test_scores_by_criteria_are_fitted_alike() -> None:
    """Next to comparisons, so that criteria have readouts of their own."""
    dice = np.random.default_rng(1)
    scores = [
        ScoreRecord(
            trajectory=long_trajectory(dice, f"s{number}"),
            criterion=("tone", "care")[number % 2],
            value=float(dice.integers(1, 6)),
            scale=(1.0, 5.0),
            annotator="ann",
        )
        for number in range(30)
    ]
    records = [*comparisons(30), *scores]
    sums = fitted(records, objective="joint")
    assert sums.backbone.readout.criteria == ("tone", "care")
    steps = fitted(records, objective="joint", reads_steps=True)
    assert_equal_fits(sums, steps)
    assert sums.backbone.weight.detach().numpy() == pytest.approx(
        steps.backbone.weight.detach().numpy(), abs=1e-4
    )


def test_an_objective_of_steps_is_fitted_to_steps() -> None:
    recipe = parse_recipe({"backbone": "linear", "objective": "process"})
    assert MultiObjectiveModule(recipe, Examples(), seed=0).reads_steps
    assert not MultiObjectiveModule(parse_recipe({"backbone": "linear"}), Examples(), seed=0).reads_steps


def test_rewards_that_are_no_sum_are_fitted_to_steps() -> None:
    trainer = fitted(comparisons(10), aggregation="mean")
    assert trainer.end_cache is trainer.cache


def test_beyond_a_number_of_entries_only_sums_are_kept(monkeypatch) -> None:
    recipe = parse_recipe({"backbone": "linear"})
    items = collect_training(comparisons(12), renderer_of(recipe), recipe).rendered
    kept, forgotten = DesignMatrix(), DesignMatrix()
    known = kept.columns(items)
    expected = kept.sums.rows(items, known)
    monkeypatch.setattr(design_matrix, "MOST_STEP_ENTRIES", 0)
    found = forgotten.sums.rows(items, known)
    assert (forgotten.entries, kept.entries > 0) == (0, True)
    assert (found.matrix != expected.matrix).nnz == 0
    assert found.counts == (1,) * len(items)
    steps = kept.rows(items, known)
    ends = np.cumsum(steps.counts)
    for row, (end, count) in enumerate(zip(ends, steps.counts, strict=True)):
        total = np.asarray(steps.matrix[end - count : end].sum(0)).ravel()
        assert expected.matrix[row].toarray().ravel() == pytest.approx(total, abs=1e-6)
        assert expected.structure[row] == pytest.approx(steps.structure[end - count : end].sum(0), abs=1e-12)

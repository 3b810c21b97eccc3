"""Reliabilities are estimated on tasks that the model was not trained on."""

import json
import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch

from workers.objectives import Example, Examples
from workers.objectives.bradley_terry import BradleyTerry
from workers.train import learnt_reliability
from workers.train.convex import ConvexTrainer
from workers.train.learnt_reliability import (
    HeldOutChoices,
    estimate_reliabilities,
    fit_reliabilities,
    needs_estimate,
)
from workers.train.limits import TrainingStopped
from workers.train.penalty_choice import ChosenPenalty
from workers.train.pipeline import train

pytestmark = pytest.mark.ml


def test_with_margins_that_leave_no_doubt_it_is_the_mean_over_the_shares_of_right_choices() -> None:
    """200 right choices show what margins mean; of `odd`, 10 of 10 are wrong: mean of (1 - q)^10 over the prior."""
    choices = HeldOutChoices(np.array([1.0] * 200 + [-1.0] * 10), ["good"] * 200 + ["odd"] * 10)
    found = fit_reliabilities(choices, {"good": None, "odd": None})
    assert found["odd"] == pytest.approx(1 / 12, abs=0.02)
    assert found["good"] > 0.98


def test_what_gold_items_and_overlap_say_counts_twice_the_own_choices() -> None:
    margins = np.array([1.0] * 400 + [-1.0] * 40)
    who = ["good"] * 400 + ["odd"] * 40
    found = fit_reliabilities(HeldOutChoices(margins, who), {"good": None, "odd": 0.6})
    assert found["odd"] == pytest.approx((2 * 0.6 * 40 + 1) / (3 * 40 + 2), abs=0.02)


def test_an_adversary_on_other_comparisons_is_not_believed() -> None:
    """Five annotators of 50 choices, one of 0.15; held-out rewards that order 70 % of honest choices."""
    found = []
    for seed in range(20):
        dice = np.random.default_rng(seed)
        utility = dice.normal(size=250) * 1.5
        honest = np.where(dice.random(250) < 1 / (1 + np.exp(-utility)), 1, -1)
        names = [f"p{number % 5}" for number in range(250)]
        flipped = np.array([name == "p4" for name in names]) & (dice.random(250) < 0.85)
        choice = np.where(flipped, -honest, honest)
        margins = choice * (utility + dice.normal(size=250))
        found.append(fit_reliabilities(HeldOutChoices(margins, names), dict.fromkeys(names)))
    adversary = [each.pop("p4") for each in found]
    assert sum(adversary) / 20 < 0.3
    assert sorted(adversary)[-2] < 0.5
    honest_mean = sum(sum(each.values()) for each in found) / 80
    assert honest_mean > 0.92


@pytest.fixture
def examples(make_preference) -> Examples:
    records = [make_preference(number, annotator="ab"[number % 2]) for number in range(12)]
    items = [
        Example("bradley_terry", record, (2 * place, 2 * place + 1)) for place, record in enumerate(records)
    ]
    return Examples(items, [None] * 24)


def test_no_model_sees_the_tasks_that_it_judges(examples, tiny_recipe, monkeypatch) -> None:
    seen = []

    def train_and_score(training, known, name, indices):
        trained_on = {index for example in training.items for index in example.trajectory_indices}
        assert not trained_on & set(indices)
        seen.append((name, dict(known), sorted(indices), len(training.items)))
        return [float(index % 2 == 0) for index in indices]

    recipe = replace(tiny_recipe, annotators="learnt")
    found = estimate_reliabilities(examples, recipe, train_and_score, seed=0)
    first, second = seen[:3], seen[3:]
    for part in (first, second):
        assert sorted(index for _, _, indices, _ in part for index in indices) == list(range(24))
    assert all(known == {"a": 1.0, "b": 1.0} for _, known, _, _ in first)
    assert all(known == second[0][1] != {"a": 1.0, "b": 1.0} for _, known, _, _ in second)
    assert found["b"] > 0.9 > 0.3 > found["a"]  # the first trajectory is better, and only b chooses it
    monkeypatch.setattr(learnt_reliability, "CHOICES_USED", 3)
    seen.clear()
    estimate_reliabilities(examples, recipe, train_and_score, seed=0)
    assert sum(len(indices) for _, _, indices, _ in seen[:3]) == 2 * 6


def test_when_it_is_needed(examples, tiny_recipe) -> None:
    learnt = replace(tiny_recipe, annotators="learnt")
    assert needs_estimate(learnt, examples)
    assert not needs_estimate(tiny_recipe, examples)
    alone = replace(examples, items=examples.items[::2])
    assert not needs_estimate(learnt, alone)
    known = [
        replace(example, record=msgspec.structs.replace(example.record, strict_reliability=0.9))
        for example in examples.items
    ]
    assert not needs_estimate(learnt, replace(examples, items=known))


def test_a_fixed_reliability_is_not_trained(examples, tiny_recipe) -> None:
    objective = BradleyTerry(replace(tiny_recipe, annotators="learnt"), examples.items)
    objective.fix_reliabilities({"a": 0.25, "stranger": 0.5})
    assert objective.annotator is not None and not objective.annotator.requires_grad
    assert objective.reliabilities() == pytest.approx({"a": 0.25, "b": 0.880797}, abs=1e-6)
    assert float(objective.annotator.detach()[0]) == pytest.approx(math.log(0.25 / 0.75))


@pytest.fixture
def learnt_run(run_directory, tiny_recipe, make_preference):
    """Three annotators, of whom one chooses the worse trajectory."""

    def make(heads=1, **more):
        records = [make_preference(number, annotator=f"p{number % 3}") for number in range(48)]
        records = [
            msgspec.structs.replace(record, choice="b" if record.choice == "a" else "a")
            if record.annotator == "p2"
            else record
            for record in records
        ]
        validation = [make_preference(number) for number in range(50, 56)]
        recipe = replace(tiny_recipe, annotators="learnt", ensemble=heads, **more)
        return run_directory(recipe, {"train": records, "validation": validation, "test": validation})

    return make


@pytest.mark.slow
def test_a_run_names_the_adversary_and_does_not_estimate_twice(learnt_run) -> None:
    whole, stopped = learnt_run(epochs=8), learnt_run(epochs=8)
    report = train(whole)
    assert report["train"]["adversaries"] == ["p2"]
    kept = json.loads((whole / "checkpoints" / "reliabilities.json").read_text())
    assert [*report["train"]["reliabilities"].values()] == pytest.approx(kept, abs=1e-5)
    assert not (whole / "checkpoints" / "reliability").exists()

    def stop() -> bool:
        return (stopped / "checkpoints" / "reliabilities.json").exists()

    with pytest.raises(TrainingStopped):
        train(stopped, stop=stop)
    again = train(stopped)
    messages = (stopped / "events.jsonl").read_text()
    assert messages.count("estimating the reliability") == 6
    assert again["train"]["reliabilities"] == report["train"]["reliabilities"]
    assert _weights(stopped) == _weights(whole)


def test_a_linear_run_estimates_them_by_one_head_within_its_budget(learnt_run, monkeypatch) -> None:
    folder = learnt_run(backbone="linear", centring=0.0, heads=4)
    config = json.loads((folder / "config.json").read_text()) | {"budget": {"seconds": 1200}}
    (folder / "config.json").write_text(json.dumps(config))
    trainers: list[ConvexTrainer] = []
    monkeypatch.setattr(ConvexTrainer, "_choose_penalty", lambda self: ChosenPenalty(0.3, 0.0))
    run = ConvexTrainer.run
    monkeypatch.setattr(ConvexTrainer, "run", lambda self: (trainers.append(self), run(self))[1])
    report = train(folder)
    assert report["train"]["adversaries"] == ["p2"]
    kept = json.loads((folder / "checkpoints" / "reliabilities.json").read_text())
    assert [*report["train"]["reliabilities"].values()] == pytest.approx(kept, abs=1e-5)
    assert [trainer.recipe.ensemble for trainer in trainers] == [1] * 6 + [4]
    left = 1200.0
    for trainer in trainers:
        share = 1 if trainer is trainers[-1] else 1 / 12
        assert trainer.limits.seconds == pytest.approx(left * share)
        left -= trainer.elapsed


def test_a_run_of_an_earlier_version_goes_on_learning_with_the_model(learnt_run, monkeypatch) -> None:
    folder = learnt_run()
    monkeypatch.setattr("workers.train.pipeline.needs_estimate", lambda recipe, examples: False)
    steps = iter([False] * 5)
    with pytest.raises(TrainingStopped):
        train(folder, stop=lambda: next(steps, True))
    monkeypatch.undo()
    report = train(folder)
    assert not (folder / "checkpoints" / "reliabilities.json").exists()
    assert "resumed from the checkpoint" in (folder / "events.jsonl").read_text()
    assert report["train"]["reliabilities"]["p0"] != pytest.approx(0.880797, abs=1e-6)


def _weights(folder) -> dict[str, list[float]]:
    from safetensors.torch import load_file

    return {
        f"{path.name} {name}": torch.nan_to_num(tensor.double()).flatten().tolist()
        for path in sorted((folder / "model").glob("*.safetensors"))
        for name, tensor in load_file(path).items()
    }

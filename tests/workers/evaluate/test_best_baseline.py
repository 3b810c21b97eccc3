"""The best baseline is chosen within the training data, and the report is about it."""

import pytest

from tests.workers.conftest import trajectory
from workers.evaluate.best_baseline import MIN_RECORDS, best_baselines
from workers.evaluate.learned_baselines import LearnedBaselines
from workers.evaluate.predictions import ScoredRecord
from workers.evaluate.preference import verdict
from workers.evaluate.report import report_of
from workers.models import ModelScore
from workers.schema import OutcomeRecord, PreferenceRecord, RatingRecord, StepLabelRecord

pytestmark = pytest.mark.ml


def score(value: float, good: float | None = None) -> ModelScore:
    labels = None if good is None else ({"good": good, "bad": 1 - good},)
    return ModelScore(value, 0.0, None, (value,), labels=labels)


def runs(name: str, count: int = 40) -> list:
    return [trajectory(f"{name} {number}", task=f"{name}{number}") for number in range(count)]


def values_of(some) -> dict:
    return {run.content_hash: float(number % 2) for number, run in enumerate(some)}


def compared(some) -> list[PreferenceRecord]:
    """Odd ones are better."""
    return [
        PreferenceRecord(a=some[number + 1], b=some[number], choice="a", annotator="ann")
        for number in range(0, len(some), 2)
    ]


def records(kind: str, some) -> list:
    if kind == "preference":
        return compared(some)
    if kind == "outcome":
        return [OutcomeRecord(trajectory=run, success=n % 2 == 1) for n, run in enumerate(some)]
    if kind == "scores":
        return [
            RatingRecord(trajectory=run, rating=float(n % 2), scale=(0.0, 1.0), annotator="a")
            for n, run in enumerate(some)
        ]
    return [
        StepLabelRecord(trajectory=run, has_first_error=True, first_error=None if n % 2 else 0, annotator="a")
        for n, run in enumerate(some)
    ]


def two_models(some) -> LearnedBaselines:
    """One that is always right, and one that never is."""
    values = values_of(some)
    return LearnedBaselines(
        models={
            "linear": {name: score(1 - value, 1 - value) for name, value in values.items()},
            "structure": {name: score(value, value) for name, value in values.items()},
        }
    )


@pytest.mark.parametrize("kind", ["preference", "outcome", "scores", "steps"])
def test_of_each_type_of_feedback(kind) -> None:
    some = runs("training", 80)
    best = best_baselines(records(kind, some), two_models(some), {None})[kind]
    assert (best["name"], best["value"]) == ("structure", pytest.approx(1.0))
    assert best["n"] == len(records(kind, some))
    assert best["values"]["linear"] < best["values"]["structure"]
    assert "longer" in best["values"] or "no_error" in best["values"]


def test_labels_and_located_steps_have_their_own() -> None:
    some = runs("training", 80)
    best = best_baselines(records("steps", some), two_models(some), {None})
    assert best["labels"]["name"] == "structure"
    assert best["located"]["value"] == 1.0  # each trajectory has a single step
    assert set(best["labels"]["values"]) == {"majority", "linear", "structure"}


def test_of_single_step_labels_only_labels_have_one() -> None:
    some = runs("training", 60)
    labelled = [
        StepLabelRecord(trajectory=run, labels={0: "good" if n % 2 else "bad"}, annotator="a")
        for n, run in enumerate(some)
    ]
    assert set(best_baselines(labelled, two_models(some), {None})) == {"labels"}


def test_values_are_means_over_folds() -> None:
    """A model that is right within folds, and whose fits have offsets that contradict it."""
    some = runs("training", 60)
    outcomes = [OutcomeRecord(trajectory=run, success=n % 2 == 1 or n < 20) for n, run in enumerate(some)]
    offset = [-10.0 if n < 20 else 0.0 for n in range(60)]
    scores = {run.content_hash: score(offset[n] + outcomes[n].success) for n, run in enumerate(some)}
    learned = LearnedBaselines(models={"linear": scores})
    folds = {run.task.id: int(n < 20) for n, run in enumerate(some)}
    pooled = best_baselines(outcomes, learned, {None})["outcome"]
    assert pooled["values"]["linear"] < 0.6
    by_fold = best_baselines(outcomes, learned, {None}, folds=folds)["outcome"]
    assert by_fold["values"]["linear"] == 1.0  # the fold of successes only has no value


def test_only_on_records_that_all_have_and_not_on_few() -> None:
    some = runs("training", 80)
    known = two_models(some[:70])
    assert best_baselines(records("outcome", some), known, {None})["outcome"]["n"] == 70
    few = records("outcome", some[: MIN_RECORDS - 1])
    assert best_baselines(few, two_models(some), {None}) == {}
    of_one_task = [trajectory(f"run {number}", task="one") for number in range(60)]
    assert best_baselines(records("outcome", of_one_task), two_models(of_one_task), {None}) == {}


def test_the_report_is_about_the_chosen_one_not_the_luckiest_of_the_held_out_data() -> None:
    """`linear` is chosen in training, and `structure` would be on the held-out data."""
    some, held_out = runs("training", 80), runs("test", 80)
    flipped = LearnedBaselines(
        models={
            "linear": {name: score(value) for name, value in values_of(some).items()},
            "structure": {name: score(1 - value) for name, value in values_of(some).items()},
        }
    )
    best = best_baselines(compared(some), flipped, {None})
    learned = LearnedBaselines(models=two_models(held_out).models, best=best)
    scored = [ScoredRecord(record, (score(1.0), score(0.0))) for record in compared(held_out)]
    part = report_of(scored, [], criteria={None}, learned=learned)["preference"]
    assert part["best_baseline"]["name"] == "linear"
    assert part["baselines"]["linear"]["accuracy"] == 0.0
    assert part["verdict"] == (
        "beats the best baseline, a linear model, but not a linear model of hand-made features"
    )


def test_the_verdict_names_the_best() -> None:
    beaten, unbeaten = ({"interval": [low, 0.5]} for low in (0.1, -0.1))
    rules = {"longer": beaten, "linear": unbeaten}
    assert verdict(rules, 20, "linear") == "does not beat the best baseline, a linear model"
    assert verdict(rules | {"longer": unbeaten}, 20, "linear") == (
        "does not beat the best baseline, a linear model, nor longer-wins"
    )
    assert verdict(rules | {"linear": beaten}, 20, "linear") == "beats every baseline"

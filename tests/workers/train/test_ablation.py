"""What each channel of a linear model brings."""

from dataclasses import replace

import pytest

from tests.workers.conftest import preference, trajectory
from workers.schema import OutcomeRecord, PreferenceRecord
from workers.schema.recipe import parse_recipe
from workers.train import ablation, pipeline
from workers.train.limits import TrainingStopped
from workers.train.pipeline import train

pytestmark = pytest.mark.ml
WRONG = ({"choice": "a"}, {"choice": "b"})  # by which side is the good one
CHANNELS = {"words", "characters", "structure", "overlap"}


def by_word(count: int) -> list[PreferenceRecord]:
    """ "fine" beats "poor", two words of one length, so that neither length nor structure tells."""
    found = []
    for number in range(count):
        fine, poor = (
            trajectory(f"{word} {'sent ' * (number % 3)}", task=f"t{number}") for word in ("fine", "poor")
        )
        a, b = (fine, poor) if number % 2 else (poor, fine)
        found.append(PreferenceRecord(a=a, b=b, choice="a" if number % 2 else "b", annotator="ann"))
    return found


def splits(records: list) -> dict:
    return {"train": records[:40], "validation": [], "test": records[40:]}


def test_a_channel_that_decides_is_enough_and_others_tell_nothing(run_directory) -> None:
    report = train(run_directory(parse_recipe({"backbone": "linear"}), splits=splits(by_word(60))))
    found = report["ablation"]
    part = found["parts"]["preference"]
    assert set(part["channels"]) == CHANNELS
    assert (
        (part["value"], part["n"], part["tasks"])
        == (report["preference"]["accuracy"], 20, 20)
        == (1.0, 20, 20)
    )
    assert found["examples"] == 40
    assert part["channels"]["words"]["alone"]["value"] == 1.0
    assert part["channels"]["characters"]["alone"]["value"] == 1.0
    assert part["channels"]["structure"]["without"]["difference"] == 0.0
    assert part["channels"]["structure"]["alone"]["value"] == 0.5
    assert part["channels"]["structure"]["alone"]["difference"] == 0.5


def test_values_are_those_of_a_model_of_these_channels(run_directory) -> None:
    """A third of the comparisons says that bad is better, so that no model is right on all."""
    records = [preference(number, **({} if number % 3 else WRONG[number % 2])) for number in range(60)]
    recipe = parse_recipe({"backbone": "linear", "channels": ["words", "structure"]})
    whole = train(run_directory(recipe, splits=splits(records)))
    words = train(run_directory(replace(recipe, channels=("words",)), splits=splits(records)))
    accuracy, reached = whole["preference"]["accuracy"], words["preference"]["accuracy"]
    assert 0.5 < accuracy < 0.9
    alone = whole["ablation"]["parts"]["preference"]["channels"]["words"]["alone"]
    assert alone["value"] == pytest.approx(reached)
    assert alone["difference"] == pytest.approx(accuracy - reached)
    assert alone["interval"][0] < alone["difference"] < alone["interval"][1]


def test_of_outcomes_and_of_some_examples(monkeypatch, run_directory) -> None:
    monkeypatch.setattr(ablation, "MAX_EXAMPLES", 30)
    records = [
        OutcomeRecord(
            trajectory=trajectory(f"{'fine' if number % 3 else 'poor'} {number % 5}", task=f"t{number}"),
            success=number % 3 > 0,
        )
        for number in range(60)
    ]
    recipe = parse_recipe({"backbone": "linear", "objective": "outcome"})
    found = train(run_directory(recipe, splits=splits(records)))["ablation"]
    assert found["examples"] == 30
    assert found["parts"]["outcome"]["channels"]["words"]["alone"]["value"] == 1.0


def test_of_a_hybrid_model(run_directory, tiny_encoder) -> None:
    recipe = parse_recipe({"backbone": "hybrid", "encoder": str(tiny_encoder), "chunk_tokens": 16})
    found = train(run_directory(recipe, splits=splits(by_word(60))))["ablation"]
    assert set(found["parts"]["preference"]["channels"]) == CHANNELS | {"embedding"}
    assert found["parts"]["preference"]["channels"]["embedding"]["alone"]["value"] == 1.0


def test_what_is_not_done_in_time_is_named(monkeypatch, run_directory) -> None:
    fitted = ablation.Ablation._fitted

    def late(self, variant, is_over):
        if len(variant.channels) == 1:
            raise TrainingStopped
        return fitted(self, variant, is_over)

    monkeypatch.setattr(ablation.Ablation, "_fitted", late)
    found = train(run_directory(parse_recipe({"backbone": "linear"}), splits=splits(by_word(60))))["ablation"]
    assert found["missing"] == [f"alone {name}" for name in ("words", "characters", "structure", "overlap")]
    part = found["parts"]["preference"]["channels"]["words"]
    assert part["alone"] is None and part["without"]["value"] == 1.0


def test_a_budget_bounds_it(monkeypatch, run_directory) -> None:
    given: list[float] = []
    monkeypatch.setattr(ablation.Ablation, "run", lambda self: given.append(self.seconds))
    recipe = parse_recipe({"backbone": "linear"})
    train(run_directory(recipe, splits=splits(by_word(60)), budget={"seconds": 20.0}))
    train(run_directory(recipe, splits=splits(by_word(60))))
    assert 15 < given[0] < 20 and given[1] == pipeline._ABLATION_SECONDS


def test_none_of_few_tasks_and_of_other_models(run_directory, tiny_recipe) -> None:
    few = {"train": by_word(40), "validation": [], "test": by_word(49)[40:]}
    assert train(run_directory(parse_recipe({"backbone": "linear"}), splits=few))["ablation"] is None
    one = parse_recipe({"backbone": "linear", "channels": ["words"]})
    assert train(run_directory(one, splits=splits(by_word(60))))["ablation"] is None
    assert train(run_directory(replace(tiny_recipe, epochs=1)))["ablation"] is None

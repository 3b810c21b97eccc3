"""A training that goes on from another model's weights."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.workers.decoders import save_decoder
from workers.errors import RewardError
from workers.models import load
from workers.schema import OutcomeRecord, PreferenceRecord, Step, Task, Trajectory, write_records
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.limits import TrainingStopped
from workers.train.parent_model import Parent
from workers.train.pipeline import train

_STILL = 1e-12  # a learning rate at which nothing moves


@pytest.fixture
def decoder(tmp_path_factory) -> str:
    return str(save_decoder(tmp_path_factory.mktemp("decoder")))


@pytest.fixture
def recipes(tiny_recipe, decoder) -> dict[str, Recipe]:
    values = {
        "backbone": "decoder",
        "decoder": decoder,
        "max_tokens": 128,
        "epochs": 2,
        "precision": "float32",
    }
    return {
        "frozen": tiny_recipe,
        "unfrozen": replace(tiny_recipe, unfrozen=True),
        "decoder": parse_recipe(values | {"lora_rank": 0}),
        "adapters": parse_recipe(values | {"lora_rank": 4, "learning_rate": 0.01}),
    }


@pytest.fixture
def goes_on(run_directory):
    """make(folder of a run, recipe, seen=[records of each model before]) -> a run directory."""

    def make(parent: Path, recipe: Recipe, *, seen=(), splits=None, **config) -> Path:
        told = {"name": "p/first@1", "unknown": []} | config
        folder = run_directory(recipe, splits, parent=told)
        shutil.copytree(parent / "model", folder / "parent" / "model")
        for number, records in enumerate(seen):
            write_records(folder / "parent" / f"seen-{number}.jsonl.zst", records)
        return folder

    return make


def rewards(folder: Path, preferences: list[PreferenceRecord]) -> list[float]:
    model = load(folder / "model")
    return [score.raw for score in model.score([model.render(record.a) for record in preferences])]


@pytest.mark.parametrize("name", ["frozen", "unfrozen", "decoder", "adapters"])
def test_it_begins_where_the_other_ended(recipes, run_directory, goes_on, preferences, name: str) -> None:
    first = run_directory(recipes[name])
    train(first)
    again = goes_on(first, replace(recipes[name], learning_rate=_STILL, encoder_learning_rate=_STILL))
    report = train(again)
    assert rewards(again, preferences) == pytest.approx(rewards(first, preferences), abs=1e-5)
    assert report["train"]["parent"] == {"name": "p/first@1", "unknown": []}
    assert load(again / "model").manifest["parent"] == {"name": "p/first@1"}
    assert load(first / "model").manifest["parent"] is None
    fresh = run_directory(replace(recipes[name], learning_rate=_STILL, encoder_learning_rate=_STILL))
    train(fresh)
    assert rewards(fresh, preferences) != pytest.approx(rewards(first, preferences), abs=1e-2)


def test_what_was_trained_of_the_encoder_stays_where_it_is_frozen_next(
    recipes, run_directory, goes_on, preferences
) -> None:
    first = run_directory(recipes["unfrozen"])
    train(first)
    again = goes_on(first, replace(recipes["frozen"], learning_rate=_STILL))
    train(again)
    assert rewards(again, preferences) == pytest.approx(rewards(first, preferences), abs=1e-5)


def test_heads_that_are_new_begin_anew(run_directory, goes_on, tiny_recipe, preferences) -> None:
    first = run_directory()
    train(first)
    outcomes = [
        OutcomeRecord(trajectory=preference.a, success=preference.choice == "a") for preference in preferences
    ]
    mixed = [*preferences, *outcomes]
    splits = {"train": mixed[:12] + mixed[24:36], "validation": mixed[12:18], "test": mixed[18:24]}
    again = goes_on(first, replace(tiny_recipe, objective="joint"), splits=splits)
    assert train(again)["train"]["by_objective"] == {"bradley_terry": 12, "outcome": 12}


def test_numbers_keep_their_scale(run_directory, goes_on, tiny_recipe) -> None:
    def walk(number: int) -> Trajectory:
        steps = tuple(Step(source="agent", features=(float(number), 1000.0)) for _ in range(3))
        return Trajectory(steps=steps, task=Task(id=f"t{number}"))

    records = [
        PreferenceRecord(a=walk(number), b=walk(number + 9), choice="a", annotator="ann")
        for number in range(12)
    ]
    recipe = replace(tiny_recipe, backbone="features", learning_rate=0.01)
    first = run_directory(recipe, {"train": records[:8], "test": records[8:]})
    train(first)
    again = goes_on(
        first,
        replace(recipe, learning_rate=_STILL),
        splits={"train": records[6:10], "test": records[10:]},  # of another mean
    )
    train(again)
    assert rewards(again, records) == pytest.approx(rewards(first, records), abs=1e-5)


def test_what_it_has_seen_before_is_no_test(run_directory, goes_on, tiny_recipe, preferences) -> None:
    first = run_directory()
    train(first)
    clean = train(goes_on(first, tiny_recipe, seen=[preferences[:6]]))
    assert clean["leaks"]["tasks"] == []
    report = train(goes_on(first, tiny_recipe, seen=[preferences[:6], preferences[20:22]]))
    assert report["leaks"]["tasks"] == ["t20", "t21"]
    assert report["findings"][0]["name"] == "leak"


def test_what_is_not_known_is_said(run_directory, goes_on, tiny_recipe) -> None:
    first = run_directory()
    train(first)
    again = goes_on(first, tiny_recipe, unknown=["p/bought@1"])
    report = train(again)
    said = [json.loads(line).get("message", "") for line in (again / "events.jsonl").read_text().splitlines()]
    assert "starts with the weights of p/first@1" in said
    (found,) = [finding for finding in report["findings"] if finding["name"] == "unchecked"]
    assert "The training data of p/bought@1 is unknown" in found["sentence"]


@pytest.mark.parametrize(
    ("changes", "pointer", "sentence"),
    [
        ({"width": 32}, "/width", "trained with width = 16"),
        ({"ensemble": 2}, "/ensemble", "trained with ensemble = 5"),
        ({"backbone": "features"}, "/parent", "with the same backbone"),
        ({"folds": 2}, "/folds", "training tasks of the parent"),
    ],
)
def test_what_does_not_fit_is_refused(
    run_directory, goes_on, tiny_recipe, changes: dict, pointer: str, sentence: str
) -> None:
    first = run_directory(replace(tiny_recipe, epochs=1))
    train(first)
    with pytest.raises(RewardError, match=sentence) as error:
        train(goes_on(first, replace(tiny_recipe, **changes)))
    assert error.value.pointer == pointer


@pytest.mark.parametrize("name", ["frozen", "unfrozen", "decoder", "adapters"])
def test_heads_alone_are_trained_on_the_trunk_there_is(
    recipes, run_directory, goes_on, preferences, name: str
) -> None:
    first = run_directory(recipes[name])
    train(first)
    wanted = replace(recipes[name], unfrozen=False, heads_only=True, epochs=20, dropout=0.0, centring=0.0)
    again = goes_on(first, wanted)
    report = train(again)
    before, after = load(first / "model").model, load(again / "model").model
    mine = dict(after.backbone.named_parameters())
    for part, weights in before.backbone.named_parameters():
        assert torch.allclose(mine[part], weights, atol=1e-6), part
    moved = dict(after.heads.named_parameters())
    assert all(not torch.equal(moved[part], weights) for part, weights in before.heads.named_parameters())
    assert report["train"]["steps"] > 0
    learnt = [preference for preference in preferences[:12] if preference.choice in ("a", "b")]
    assert _loss(again, learnt) < _loss(first, learnt)


def _loss(folder: Path, preferences: list[PreferenceRecord]) -> float:
    """Bradley-Terry's, of the model in a run's folder."""
    model = load(folder / "model")
    scores = [
        model.score([model.render(preference.a), model.render(preference.b)]) for preference in preferences
    ]
    signs = [1 if preference.choice == "a" else -1 for preference in preferences]
    margins = [sign * (a.raw - b.raw) for sign, (a, b) in zip(signs, scores, strict=True)]
    return float(np.mean(np.logaddexp(0, -np.array(margins))))


def test_a_run_of_heads_that_was_stopped_ends_as_one_that_was_not(recipes, run_directory, goes_on) -> None:
    first = run_directory(recipes["frozen"])
    train(first)
    wanted = replace(recipes["frozen"], heads_only=True, checkpoint_seconds=0)
    whole, stopped = goes_on(first, wanted), goes_on(first, wanted)
    train(whole)
    seen = 0

    def stop() -> bool:
        nonlocal seen
        seen += 1
        return seen == 8

    with pytest.raises(TrainingStopped):
        train(stopped, stop=stop)
    train(stopped)
    mine, theirs = (load(record / "model").model.heads.state_dict() for record in (stopped, whole))
    for part, weights in theirs.items():
        assert torch.equal(mine[part], weights), part


def test_heads_need_a_trunk(recipes, run_directory) -> None:
    with pytest.raises(RewardError, match="set a parent") as caught:
        train(run_directory(replace(recipes["frozen"], heads_only=True)))
    assert caught.value.pointer == "/heads_only"


@pytest.mark.parametrize("beside", [{"unfrozen": True}, {"folds": 5}])
def test_what_has_no_place_beside_heads_only(beside: dict) -> None:
    with pytest.raises(RewardError, match="cannot be combined with it"):
        parse_recipe({"heads_only": True} | beside)


@pytest.mark.parametrize(
    ("said", "encoder"),
    [("embedded", "embedded"), ("own", "FOLDER"), ("/another/project/model", "FOLDER"), ("../x", "FOLDER")],
)
def test_a_manifest_names_no_folder_of_this_machine(tmp_path: Path, said: str, encoder: str) -> None:
    """It may come from anywhere: `import_model` takes what others made."""
    loaded: Any = SimpleNamespace(manifest={"backbone": {"kind": "step-encoder", "encoder": said}})
    found = Parent(tmp_path, loaded).recipe(parse_recipe({})).encoder
    assert found == (str(tmp_path / "model") if encoder == "FOLDER" else encoder)

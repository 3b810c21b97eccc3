"""Which judgements moved a reward, of models trained on the spot."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace as changed

from tests import forked
from tests.workers.conftest import WORDS, trajectory
from tests.workers.decoders import save_decoder
from workers.errors import RewardError
from workers.influence.record_influence import trace
from workers.models import load, renderer_of
from workers.models.artifact import OBJECTIVE
from workers.objectives import Examples, collect
from workers.schema import PreferenceRecord, StepLabelRecord, parse_item, write_records
from workers.schema.recipe import CONVEX, Recipe, parse_recipe
from workers.train.convex import ConvexTrainer
from workers.train.events import no_report
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.pipeline import train
from workers.train.reward_statistics import score_rendered

ITEM = {
    "messages": [
        {"role": "user", "content": "hello the order"},
        {"role": "assistant", "content": "good sent"},
    ]
}


@pytest.fixture
def traced(run_directory, tmp_path):
    """make(recipe, splits) -> the folder of an inquiry into a model that was trained by the recipe."""

    def make(recipe: Recipe, splits=None, item=ITEM) -> Path:
        run = run_directory(recipe, splits)
        train(run)
        folder = tmp_path / f"influence-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(run / "data", folder / "data")
        shutil.copytree(run / "model", folder / "parent" / "model")
        shutil.copy(run / "config.json", folder)
        (folder / "item.json").write_text(json.dumps(item))
        return folder

    return make


def flipped(records, place: int):
    """One of the comparisons says the opposite."""
    other = changed(records[place], choice="b" if records[place].choice == "a" else "a")
    return [*records[:place], other, *records[place + 1 :]]


def test_a_mistaken_judgement_is_what_lowers_the_reward_most(traced, tiny_recipe, preferences) -> None:
    """All but one say that good is better than bad; what is asked about is good."""
    said = flipped(preferences[:18], 5)
    folder = traced(
        replace(tiny_recipe, epochs=8, ensemble=1), {"train": said, "validation": preferences[18:]}
    )
    found = trace(folder)
    assert json.loads((folder / "result.json").read_text()) == found
    assert found["records"] == 18 and found["generated"] == 0
    moved = {change["record"]: change["by"] for change in found["moved"]}
    assert set(moved) == set(range(18))
    assert min(moved, key=lambda one: moved[one]) == 5 and moved[5] < 0
    assert sum(by > 0 for by in moved.values()) > 9
    by = [change["by"] for change in found["moved"]]
    assert by == sorted(by, reverse=True)
    model = load(folder / "parent" / "model")
    (score,) = model.score([model.render(parse_item(ITEM).content)])
    assert found["reward"] == pytest.approx((score.raw - model.median) / model.std, abs=1e-4)


@pytest.mark.parametrize(
    "kind",
    [
        *(*CONVEX, "linear heads", "unfrozen", "decoder"),
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("adapters", "process", "generated")),
    ],
)
def test_every_kind_of_model(kind, traced, tiny_recipe, preferences, tmp_path_factory) -> None:
    splits = None
    if kind == "process":
        splits = {
            split: [
                StepLabelRecord(trajectory=one, labels={0: label}, annotator="ann")
                for record in some
                for one, label in (
                    (record.a, "good" if record.choice == "a" else "bad"),
                    (record.b, "neutral"),
                )
            ]
            for split, some in (("train", preferences[:12]), ("validation", preferences[12:18]))
        }
    decoder = str(save_decoder(tmp_path_factory.mktemp("decoder"))) if kind in ("decoder", "adapters") else ""
    recipe = {
        **{backbone: replace(tiny_recipe, backbone=backbone, centring=0.0) for backbone in CONVEX},
        "linear heads": replace(tiny_recipe, objective="bradley_terry", ensemble=1),
        "unfrozen": replace(tiny_recipe, unfrozen=True),
        "decoder": replace(tiny_recipe, backbone="decoder", decoder=decoder, max_tokens=128, lora_rank=0),
        "adapters": replace(tiny_recipe, backbone="decoder", decoder=decoder, max_tokens=128, lora_rank=4),
        "process": replace(tiny_recipe, objective="process"),
        "generated": replace(tiny_recipe, generators=("drop", "repeat")),
    }[kind]
    found = trace(traced(recipe, splits))
    assert found["records"] == (24 if kind == "process" else 12)
    assert found["moved"] and all(abs(change["by"]) < 100 for change in found["moved"])
    assert (found["generated"] > 0) == (kind == "generated")


def test_a_linear_model_moves_as_fits_without_each_record_say(traced) -> None:
    """Leave-one-out; too few tasks to choose a penalty, so that all fits have the same one."""
    random = np.random.default_rng(2)
    records = []
    for number in range(24):
        a, b = (trajectory(" ".join(random.choice(WORDS, 4)), task=f"t{number % 8}") for _ in range(2))
        records.append(PreferenceRecord(a=a, b=b, choice=str(random.choice(["a", "b"])), annotator="ann"))
    recipe = parse_recipe({"backbone": "linear", "ensemble": 4})
    folder = traced(recipe, {"train": records, "validation": [], "test": records[:2]})
    content, single = parse_item(ITEM).content, replace(recipe, ensemble=1)

    def raw(used: list[PreferenceRecord]) -> float:
        renderer = renderer_of(single)
        module = MultiObjectiveModule(single, collect(used, renderer, single), seed=1)
        ConvexTrainer(module, single, Examples(), seed=1, report=no_report).run()
        return float(score_rendered(module.model, [renderer.render(content)]).raw)

    whole = raw(records)
    expected = [whole - raw([*records[:place], *records[place + 1 :]]) for place in range(len(records))]
    moved = {change["record"]: change["by"] for change in trace(folder)["moved"]}
    assert set(moved) == set(range(24))
    found = [moved[place] for place in range(24)]
    assert np.corrcoef(found, expected)[0, 1] > 0.999


def test_what_the_losses_learnt_beside_the_model_is_kept(traced, tiny_recipe, preferences) -> None:
    folder = traced(replace(tiny_recipe, annotators="learnt"))
    path = folder / "parent" / "model" / OBJECTIVE
    assert path.is_file()
    with_it = trace(folder)["moved"]
    path.unlink()
    manifest = json.loads((path.parent / "touchstone.json").read_text())
    del manifest["files"][OBJECTIVE]
    (path.parent / "touchstone.json").write_text(json.dumps(manifest))
    assert trace(folder)["moved"] != with_it  # a model of before: the losses as they began


def test_the_command(traced, tiny_recipe, preferences) -> None:
    folder = traced(tiny_recipe)
    log = folder / "log.txt"
    assert forked.start("workers.influence", [str(folder)], log=log).wait() == 0, log.read_text()
    assert json.loads((folder / "result.json").read_text())["records"] == 12
    write_records(folder / "data" / "train.jsonl.zst", [])
    assert forked.start("workers.influence", [str(folder)], log=log).wait() == 2
    assert "has no feedback records that this model learns from" in log.read_text()


def test_what_cannot_be_read_is_refused(traced, tiny_recipe) -> None:
    folder = traced(tiny_recipe, item={"features": [[1.0, 2.0]]})
    with pytest.raises(RewardError):
        trace(folder)

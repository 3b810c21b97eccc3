"""Process reward models from elsewhere, fine-tuned here: what comes out is what went in, by its own code."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForTokenClassification

from tests.workers.public_step_models import (
    STEPS,
    TASK,
    Qwen2ForProcessRewardModel,
    save_process_classifier,
    save_step_tag,
    save_token_classifier,
)
from workers.errors import RewardError
from workers.importing import Checkpoint, recognise
from workers.importing.importer import ImportRequest, import_checkpoint
from workers.models import load
from workers.schema import Part, Step, StepLabelRecord, Task, Trajectory
from workers.schema.import_options import ImportOptions
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.pipeline import train


def labelled(number: int) -> StepLabelRecord:
    """A neutral label now and then, which these models have no class for."""
    steps = [Step(source="user", message=(Part(text=f"{TASK} {number}"),))]
    steps += [Step(source="agent", message=(Part(text=text),)) for text in STEPS]
    labels = {0: "good", 1: "bad" if number % 2 else "good", 2: "neutral" if number % 3 == 0 else "bad"}
    return StepLabelRecord(
        trajectory=Trajectory(steps=tuple(steps), task=Task(id=str(number))),
        labels=labels,  # type: ignore[arg-type]
        annotator="a",
    )


RECORDS = [labelled(number) for number in range(10)]
SPLITS = {"train": RECORDS[:6], "validation": RECORDS[6:8], "test": RECORDS[8:]}


def run_folder(run_directory, source: Path, tmp_path: Path, recipe: Recipe, **options: str) -> Path:
    given = ImportOptions.parse(options)
    checkpoint = Checkpoint(source)
    model = tmp_path / "imported" / "model"
    import_checkpoint(
        checkpoint, recognise(checkpoint, given), model, ImportRequest(checkpoint=source, options=given)
    )
    folder = run_directory(recipe, SPLITS, parent={"name": "p/prm@1", "unknown": []})
    shutil.copytree(model, folder / "parent" / "model")
    return folder


def recipe_with(**values: object) -> Recipe:
    given = {
        "backbone": "decoder",
        "decoder": "p/prm@1",
        "objective": "process",
        "max_tokens": 256,
        "epochs": 2,
    }
    return parse_recipe(given | {"lora_rank": 0, "learning_rate": 0.01, "precision": "float32"} | values)


@pytest.mark.parametrize("rank", [0, 4])
def test_process_classifier_goes_back_to_its_own_class(tmp_path, run_directory, rank: int) -> None:
    source = save_process_classifier(tmp_path / "source")
    folder = run_folder(run_directory, source, tmp_path, recipe_with(lora_rank=rank, max_tokens=200))
    report = train(folder)
    assert report["steps"]["labels"]["n"] == 6
    model = load(folder / "model")
    assert (model.aggregation, model.manifest["reward_from"]) == ("product", "probability")
    tokens = model.render(RECORDS[8].trajectory)
    with torch.no_grad():
        peer = Qwen2ForProcessRewardModel.from_folder(folder / "model")
        theirs = peer(torch.tensor([tokens.ids]))[0, tokens.places].softmax(-1)[:, 1]
        before = Qwen2ForProcessRewardModel.from_folder(source)(torch.tensor([tokens.ids]))
    (score,) = model.score([tokens])
    assert list(score.step_rewards) == pytest.approx(theirs.tolist(), abs=1e-5)
    assert float((before[0, tokens.places].softmax(-1)[:, 1] - theirs).abs().max()) > 1e-3
    config = json.loads((folder / "model" / "config.json").read_text())
    assert config["architectures"] == ["Qwen2ForProcessRewardModel"]


def test_token_classifier_goes_back_to_transformers(tmp_path, run_directory) -> None:
    source = save_token_classifier(tmp_path / "source", "llama", labels={0: "correct", 1: "wrong"})
    folder = run_folder(run_directory, source, tmp_path, recipe_with(heads_only=True))
    train(folder)
    model = load(folder / "model")
    tokens = model.render(RECORDS[8].trajectory)
    peer, before = (
        AutoModelForTokenClassification.from_pretrained(each, dtype=torch.float32).eval()
        for each in (folder / "model", source)
    )
    with torch.no_grad():
        logits = peer(input_ids=torch.tensor([tokens.ids])).logits[0, tokens.places]
    (score,) = model.score([tokens])
    assert list(score.step_rewards) == pytest.approx(logits.softmax(-1)[:, 0].tolist(), abs=1e-5)
    assert peer.config.id2label == {0: "correct", 1: "wrong"}
    assert torch.equal(peer.model.embed_tokens.weight, before.model.embed_tokens.weight)
    assert not torch.equal(peer.score.bias, before.score.bias)


def test_what_is_not_fine_tuned_is_refused(tmp_path, run_directory) -> None:
    source = save_step_tag(tmp_path / "source")
    folder = run_folder(run_directory, source, tmp_path, recipe_with(), type="step-tag", step_layout="turns")
    with pytest.raises(RewardError, match="its head is a part of its vocabulary"):
        train(folder)
    config = json.loads((folder / "config.json").read_text())
    config["recipe"] |= {"objective": "outcome", "aggregation": "value"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(RewardError, match="learns from step labels") as caught:
        train(folder)
    assert caught.value.pointer == "/objective"
    assert replace(recipe_with(), objective="outcome").objective == "outcome"

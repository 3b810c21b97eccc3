"""Public sequence classifiers, fine-tuned here: transformers loads what comes out, and gives the same logits."""

import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from tests.workers.public_models import (
    CHATS,
    LLAMA3,
    MISTRAL,
    save_classifier,
    trajectory_of,
    transformers_logits,
)
from workers.importing import Checkpoint, recognise
from workers.importing.importer import ImportRequest, import_checkpoint
from workers.models import load
from workers.schema.import_options import ImportOptions
from workers.schema.recipe import parse_recipe
from workers.train.pipeline import train


@pytest.mark.parametrize(
    ("name", "template", "rank", "changes"),
    [("llama", LLAMA3, 0, {}), ("qwen3", LLAMA3, 4, {}), ("mistral", MISTRAL, 0, {"pad_token_id": 1})],
)
def test_a_classifier_is_fine_tuned_and_is_one_of_transformers_again(
    tmp_path: Path, run_directory, name: str, template: str, rank: int, changes: dict
) -> None:
    source = save_classifier(tmp_path / "source", name, template=template, **changes)
    checkpoint, options = Checkpoint(source), ImportOptions()
    model = tmp_path / "imported" / "model"
    import_checkpoint(checkpoint, recognise(checkpoint, options), model, ImportRequest(checkpoint=source))
    values = {"backbone": "decoder", "decoder": "p/rm@1", "max_tokens": 256, "epochs": 2, "lora_rank": rank}
    recipe = parse_recipe(values | {"learning_rate": 0.01, "precision": "float32"})
    folder = run_directory(recipe, parent={"name": "p/rm@1", "unknown": []})
    shutil.copytree(model, folder / "parent" / "model")
    report = train(folder)
    assert report["preference"]["n"] == 6
    trained, before = load(folder / "model"), load(model)
    assert trained.manifest["text"]["whole"] == before.manifest["text"]["whole"]
    for messages in CHATS:
        (score,) = trained.score([trained.render(trajectory_of(messages))])
        logit = float(transformers_logits(folder / "model", messages)[0])
        assert score.raw == pytest.approx(logit, abs=1e-5)
        assert abs(before.score([before.render(trajectory_of(messages))])[0].raw - logit) > 1e-4
    peer = AutoModelForSequenceClassification.from_pretrained(folder / "model", dtype=torch.float32)
    assert peer.config.num_labels == 1

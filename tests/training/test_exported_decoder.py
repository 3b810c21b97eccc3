"""`export_model --format transformers`: from the registry to a folder that transformers scores by, with its card."""

import json
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command

from apps.accounts.models import Project
from apps.core.storage import artifacts
from apps.training.services import adopt_model
from tests.workers.decoders import save_decoder
from workers.models import Lineage, build, save
from workers.schema.recipe import parse_recipe

pytestmark = [pytest.mark.ml, pytest.mark.usefixtures("forked_children")]


@pytest.fixture
def model(project: Project, tmp_path: Path) -> str:
    base = save_decoder(tmp_path / "base", "qwen3")
    recipe = parse_recipe(
        {"backbone": "decoder", "decoder": str(base), "max_tokens": 256, "lora_rank": 2, "ensemble": 2}
    )
    reward = {"median": 0.5, "std": 3.0}
    save(build(recipe), tmp_path / "made", recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    manifest = json.loads((tmp_path / "made" / "touchstone.json").read_text())
    artifact = artifacts.store_tree(tmp_path / "made", "models/polite-1")
    return str(adopt_model(project=project, name="polite", artifact=artifact, manifest=manifest, by=None))


@pytest.mark.real_children
def test_a_folder_of_transformers_and_its_card(model: str, tmp_path: Path) -> None:
    from transformers import AutoConfig

    out = tmp_path / "out"
    call_command("export_model", model, str(out), "--format", "transformers")
    assert AutoConfig.from_pretrained(out).architectures == ["Qwen3ForSequenceClassification"]
    card = (out / "README.md").read_text()
    _, head, body = card.split("---\n", 2)
    assert yaml.safe_load(head) == {
        "library_name": "transformers",
        "pipeline_tag": "text-classification",
        "tags": ["touchstone", "reward-model", "trl"],
    }
    for piece in (
        "# desk/polite@1",
        "- **Objective**: bradley_terry",
        "reward = (raw - 0.5) / 3.0",
        "The 2 heads became one",
        "--runner pooling --convert classify",
        '"logit_mean": 0.5, "logit_sigma": 3.0',
        "When this was written: transformers' Qwen3ForSequenceClassification: values within",
    ):
        assert piece in body
    assert str(tmp_path) not in card
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".export-")]


def test_an_adapter_whose_base_is_not_listed_is_not_checked_and_says_so(model: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call_command("export_model", model, str(out), "--format", "adapter", "--base", "org/Qwen3")
    card = (out / "README.md").read_text()
    assert "base_model: org/Qwen3" in card
    assert "not checked, as the folder of the pretrained model (base) is not at hand" in card
    assert json.loads((out / "adapter_config.json").read_text())["base_model_name_or_path"] == "org/Qwen3"

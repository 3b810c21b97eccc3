"""The page of public reward models agrees with the import; its check compares a model with transformers' own class."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForSequenceClassification

from benchmarks.public_checkpoints import FAMILIES, PublicModel, family_tokenizer, public_models, shapes
from benchmarks.public_models import check, examine, examine_all, memory, refusals, sources, table
from workers.errors import RewardError
from workers.schema.import_options import ImportOptions

pytestmark = pytest.mark.ml
PAGE = Path(__file__).parents[2] / "docs" / "models.md"
OF_EACH_TYPE = {
    "Skywork/Skywork-Reward-V2-Qwen3-0.6B": "sequence-classifier",
    "RLHFlow/ArmoRM-Llama3-8B-v0.1": "gated-rewards",
    "Qwen/Qwen2.5-Math-PRM-7B": "process-classifier",
    "Skywork/Skywork-o1-Open-PRM-Qwen-2.5-1.5B": "value-head",
    "peiyi9979/math-shepherd-mistral-7b-prm": "step-tag",
    "PRIME-RL/EurusPRM-Stage2": "implicit-process",
    "prometheus-eval/prometheus-7b-v2.0": "generative-judge",
    "internlm/internlm2-1_8b-reward": "internlm2",
    "LxzGordon/URM-LLaMa-3.1-8B": "",
}


def named(name: str) -> PublicModel:
    return next(model for model in public_models() if model.name == name)


@pytest.mark.parametrize("name", OF_EACH_TYPE)
def test_a_model_of_each_type_is_recognised_as_the_page_says(name: str, tmp_path: Path) -> None:
    known = examine(named(name), tmp_path / "folder")
    assert known.type == OF_EACH_TYPE[name], known.refusal
    rows = [*table([known]), *refusals([known]), *sources([known])]
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if row.startswith(f"| {name} ") and row not in lines] == []


@pytest.mark.slow
def test_the_whole_page() -> None:
    """As `python -m benchmarks.public_models --write` makes it."""
    found = examine_all()
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [row for part in (table, refusals, sources) for row in part(found) if row not in lines] == []
    assert sum(line.startswith("| ") and "/" in line.split(" | ")[0] for line in lines) == 2 * len(found)


def test_every_configuration_names_its_source() -> None:
    models = public_models()
    assert len(models) >= 20
    for model in models:
        assert model.source and model.template in FAMILIES and model.heads, model.name


def test_shapes_that_were_recorded_from_the_files_themselves() -> None:
    """Of an 8B model with a token of padding; memory by hand."""
    model = named("RLHFlow/ArmoRM-Llama3-8B-v0.1")
    found = shapes(model)
    assert found["model.embed_tokens.weight"] == (128257, 4096)
    assert found["regression_layer.weight"] == (19, 4096)
    expected = 1.1 * 2 * (10**9 + 8192 * (2 * 4096 + 3 * 14336)) + 1e9
    assert memory(model, 10**9, 2) == pytest.approx(expected)


def small_classifier(folder: Path) -> Path:
    tokenizer: Any = family_tokenizer(named("Skywork/Skywork-Reward-V2-Llama-3.1-8B").template)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        num_labels=1,
        pad_token_id=tokenizer.pad_token_id,
        max_position_embeddings=512,
        **sizes,
    )
    LlamaForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_the_check_of_a_folder(tmp_path: Path) -> None:
    folder = small_classifier(tmp_path / "small")
    found = check(folder, ImportOptions(), "cpu")
    assert found["recognised"]["type"] == "sequence-classifier"
    assert found["compared"]["conversations"] == len(found["rewards"]) == 3
    assert found["compared"]["largest_difference"] < 1e-5
    assert len({round(reward, 6) for reward in found["rewards"]}) == 3
    with pytest.raises(RewardError, match="type"):
        check(folder, ImportOptions(type="value-head"), "cpu")

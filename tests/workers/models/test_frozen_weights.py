"""Frozen weights of a decoder in bfloat16 and in 4 bits, under adapters in float32, and what is saved of them."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.workers.decoders import save_decoder
from workers.errors import RewardError
from workers.models import Lineage, build, load, save
from workers.models.backbones.frozen_weights import frozen_dtype, plain_weight
from workers.schema import Text
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.distributed.group import ProcessGroup
from workers.train.distributed.placement import place_model

TEXTS = [Text("hello the order was lost"), Text("hello a refund is good"), Text("thank you")]


@pytest.fixture
def recipe(tmp_path: Path):
    def make(base_weights: str, name: str = "qwen3") -> Recipe:
        folder = save_decoder(tmp_path / f"base-{name}", name)
        values = {"backbone": "decoder", "decoder": str(folder), "max_tokens": 128, "lora_rank": 4}
        return parse_recipe(values | {"base_weights": base_weights})

    return make


@pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to False")
@pytest.mark.parametrize(("kind", "name"), [("bfloat16", "qwen3"), ("bfloat16", "gpt2"), ("nf4", "qwen3")])
def test_adapters_are_float32_and_become_part_of_the_weights(
    recipe, tmp_path: Path, kind: str, name: str
) -> None:
    if kind == "nf4":
        pytest.importorskip("bitsandbytes")
    torch.manual_seed(0)
    model = build(own := recipe(kind, name))
    backbone = model.backbone
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    assert {each.dtype for each in trained.values()} == {torch.float32}
    assert all("lora" in name or name.startswith("heads.") for name in trained)
    frozen = {each.dtype for each in model.parameters() if not each.requires_grad}
    assert frozen == ({torch.bfloat16, torch.uint8} if kind == "nf4" else {torch.bfloat16})
    for name, parameter in trained.items():
        if "lora_B" in name:
            nn.init.normal_(parameter, std=0.05)
    items = [backbone.renderer.render(text) for text in TEXTS]
    backbone.in_bfloat16 = True
    model(items).rewards.sum().backward()
    assert all(each.grad is not None and each.grad.any() for each in trained.values())
    layer_name = next(name for name, each in backbone.base.named_modules() if hasattr(each, "lora_A"))
    layer = backbone.base.get_submodule(layer_name)
    delta = layer.get_delta_weight("default").float()
    expected = (plain_weight(layer.get_base_layer()).float() + delta).detach().to(torch.bfloat16)
    with torch.no_grad():
        backbone.finish_training()
        assert torch.equal(backbone.base.get_submodule(layer_name).weight, expected)
    reward = {"median": 0.0, "std": 1.0}
    save(model, tmp_path / "model", recipe=own, reward=reward, criteria={}, lineage=Lineage())
    loaded = load(tmp_path / "model")
    assert loaded.model.backbone.base.dtype == torch.float32
    raw = [score.raw for score in loaded.score([loaded.render(text) for text in TEXTS])]
    backbone.in_bfloat16 = False
    with torch.no_grad():
        served = model.float()(items).rewards.flatten()
    assert raw == pytest.approx(served.tolist(), abs=1e-5)


def test_which_weights_are_kept_how(recipe) -> None:
    auto = recipe("auto")
    assert frozen_dtype(auto, "cpu") == torch.float32
    assert frozen_dtype(recipe("bfloat16"), "cpu") == frozen_dtype(recipe("nf4"), "cpu") == torch.bfloat16
    whole = parse_recipe({"backbone": "decoder", "decoder": "a", "lora_rank": 0})
    assert frozen_dtype(whole, "cuda:0") == torch.float32


def test_four_bits_need_bitsandbytes_and_are_not_sharded(recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(RewardError, match="Run `pip install bitsandbytes` in the environment of the worker"):
        build(recipe("nf4"))
    several = ProcessGroup()
    several.world_size = 2
    with pytest.raises(RewardError, match="weights of 4 bits are not sharded"):
        place_model(several, nn.Linear(2, 2), [], replace(recipe("nf4"), sharding="always"))
    assert place_model(several, nn.Linear(2, 2), [], recipe("nf4")) is several

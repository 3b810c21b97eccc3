"""The estimate against what torch keeps and allocates for small models of the same architectures."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from transformers import AutoModel, LlamaConfig, Qwen3Config

from workers.schema.builtin_recipes import builtin_recipes
from workers.schema.decoder_estimate import KNOWN_SHAPES, DecoderShape, estimate_decoder
from workers.schema.recipe import parse_recipe

TOKENS = 96
SHAPE = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 24,
}


def saved_bytes(model: torch.nn.Module) -> int:
    """Of every tensor that is kept for the backward pass, each storage once, weights not counted."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = tensor
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        ids = torch.zeros(1, TOKENS, dtype=torch.long)
        model(input_ids=ids, use_cache=False).last_hidden_state.sum()
        return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


@pytest.mark.parametrize("config_type", [LlamaConfig, Qwen3Config])
def test_weights_and_what_a_layer_keeps_are_those_of_the_real_classes(config_type) -> None:
    models = [
        AutoModel.from_config(config_type(**SHAPE, num_hidden_layers=layers), attn_implementation="sdpa")
        for layers in (2, 4)
    ]
    shape = DecoderShape.read(models[1].config.to_dict())
    assert shape is not None
    vectors = sum(parameter.numel() for parameter in models[1].parameters() if parameter.ndim == 1)
    assert shape.weights == sum(parameter.numel() for parameter in models[1].parameters()) - vectors
    less, more = (saved_bytes(model) for model in models)
    measured = (more - less) / 2 / TOKENS
    assert shape.layer_bytes(4) == pytest.approx(measured, rel=0.07)


def test_adapters_are_counted_as_peft_makes_them() -> None:
    from peft import LoraConfig, get_peft_model

    model = AutoModel.from_config(LlamaConfig(**SHAPE, num_hidden_layers=2))
    shape = DecoderShape.read(model.config.to_dict())
    assert shape is not None
    adapted = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear"))
    trained = sum(each.numel() for each in adapted.parameters() if each.requires_grad)
    assert shape.adapter_weights(4) == trained


def test_the_recipes_fit_where_their_documentation_says() -> None:
    """Sizes of the models by their makers: 0.6, 4.0 and 8.2 billion, the last with an LM head of 0.62."""
    counts = [KNOWN_SHAPES[name].weights / 1e9 for name in ("qwen3-0.6b", "qwen3-4b", "qwen3-8b")]
    assert counts == pytest.approx([0.596, 4.02, 8.19 - 0.62], rel=0.01)
    estimates = {
        name: estimate_decoder(KNOWN_SHAPES[builtin_recipes()[name].decoder], builtin_recipes()[name])
        for name in ("qwen3-0.6b", "qwen3-4b-lora", "8b-qlora")
    }
    assert {name: round(each.memory / 1e9) for name, each in estimates.items()} == MEMORY


MEMORY = {"qwen3-0.6b": 26, "qwen3-4b-lora": 43, "8b-qlora": 51}


def test_what_changes_the_estimate() -> None:
    shape = KNOWN_SHAPES["qwen3-0.6b"]
    values = {"backbone": "decoder", "decoder": "a", "lora_rank": 8, "micro_tokens": 1024}
    plain = estimate_decoder(shape, parse_recipe(values))
    checkpointed = estimate_decoder(shape, parse_recipe(values | {"gradient_checkpointing": True}))
    assert checkpointed.activations < 0.2 * plain.activations
    assert checkpointed.token_flops == pytest.approx(1.4 * plain.token_flops, rel=0.1)
    four_bits = estimate_decoder(shape, parse_recipe(values | {"base_weights": "nf4"}))
    assert four_bits.weights < 0.6 * plain.weights
    whole = estimate_decoder(shape, parse_recipe(values | {"lora_rank": 0}))
    assert whole.weights + whole.training == pytest.approx(18 * shape.weights)
    head = 4 * shape.vocabulary * shape.hidden
    implicit = values | {"objective": "implicit_process"}
    assert estimate_decoder(shape, parse_recipe(implicit)).weights == plain.weights + head
    both = estimate_decoder(shape, parse_recipe(implicit | {"lora_rank": 0}))
    assert both.weights == whole.weights + 2 * head + 4 * shape.weights
    assert DecoderShape.read({"n_embd": 32}) is None

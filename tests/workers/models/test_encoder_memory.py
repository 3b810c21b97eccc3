"""The estimate of what a layer keeps for its backward pass bounds what transformers' classes are seen to keep."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    DebertaV2Config,
    DebertaV2Model,
    ModernBertConfig,
    ModernBertModel,
)

from workers.schema.encoder_folder import EncoderDescription, EncoderReading
from workers.schema.encoder_recipes import layer_bytes

pytestmark = pytest.mark.ml
SHAPE = {"vocab_size": 100, "hidden_size": 64, "num_attention_heads": 4, "pad_token_id": 0}
TOKENS = 32


def kept(model: Any, *, in_bfloat16: bool) -> int:
    """Bytes of distinct tensors that are kept, but for parameters."""
    found: dict[int, int] = {}
    own = {each.untyped_storage().data_ptr() for each in model.parameters()}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        place = tensor.untyped_storage().data_ptr()
        if place not in own:
            found[place] = tensor.untyped_storage().nbytes()
        return tensor

    ids = torch.randint(5, 90, (4, TOKENS))
    mask = torch.ones_like(ids)
    mask[0, -3:] = 0
    context: Any = torch.autocast("cpu", torch.bfloat16) if in_bfloat16 else nullcontext()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), context:
        output = model(input_ids=ids, attention_mask=mask).last_hidden_state
    assert output.requires_grad
    return sum(found.values())


def bert(layers: int) -> Any:
    return BertModel(BertConfig(**SHAPE, num_hidden_layers=layers, intermediate_size=256))


def modernbert(layers: int) -> Any:
    special = dict.fromkeys(("bos_token_id", "cls_token_id"), 1) | dict.fromkeys(
        ("eos_token_id", "sep_token_id"), 2
    )
    return ModernBertModel(
        ModernBertConfig(**SHAPE, **special, num_hidden_layers=layers, intermediate_size=96)
    )


def deberta(layers: int) -> Any:
    relative = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 32}
    options = {"position_biased_input": False, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
    config = DebertaV2Config(**SHAPE, **relative, **options, num_hidden_layers=layers, intermediate_size=256)
    return DebertaV2Model(config)


@pytest.mark.parametrize("made", [bert, modernbert, deberta])
@pytest.mark.parametrize("in_bfloat16", [False, True], ids=["float32", "bfloat16"])
def test_a_layer_keeps_no_more_than_estimated(made: Any, in_bfloat16: bool) -> None:
    small, large = (kept(made(layers).train(), in_bfloat16=in_bfloat16) for layers in (2, 4))
    measured = (large - small) / 2 / (4 * TOKENS)
    config = made(2).config
    encoder = EncoderDescription(
        folder=Path("x"), transformer=Path("x"), model_type=config.model_type, architecture="", hidden=64, layers=2,
        intermediate=config.intermediate_size, heads=4, parameters=0, positions=None, reading=EncoderReading(),
        weight_files=(),
    )  # fmt: skip
    bound = layer_bytes(replace(encoder), TOKENS, 2 if in_bfloat16 else 4)
    assert 0.5 * bound < measured <= 1.05 * bound

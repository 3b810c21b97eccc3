"""An encoder that is read at a middle layer: its values, what it computes, and that it shares its weights."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from transformers import (
    AlbertConfig,
    AlbertModel,
    DistilBertConfig,
    DistilBertModel,
    ModernBertConfig,
    ModernBertModel,
)

from workers.models.backbones.encoder import encode, load_encoder
from workers.models.backbones.layer_encoder import LayerEncoder

pytestmark = pytest.mark.ml
CHUNKS = [(1, 5, 7, 9), (2, 4), tuple(range(1, 30))]
IDS = torch.arange(1, 9).reshape(2, 4)


def bert(folder) -> Any:
    return load_encoder(folder)


def distilbert(folder) -> Any:
    return DistilBertModel(DistilBertConfig(vocab_size=32, dim=16, n_layers=3, n_heads=2, hidden_dim=32))


def modernbert(folder) -> Any:
    """Has a norm after its last layer."""
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2}
    config = ModernBertConfig(vocab_size=32, pad_token_id=0, cls_token_id=1, sep_token_id=2, **sizes)
    return ModernBertModel(config)


def albert(folder) -> Any:
    """All its layers are one."""
    sizes = {"hidden_size": 16, "embedding_size": 8, "intermediate_size": 32, "num_hidden_layers": 3}
    return AlbertModel(AlbertConfig(vocab_size=32, num_attention_heads=2, **sizes))


@pytest.mark.parametrize("made", [bert, distilbert, modernbert, albert])
def test_values_are_those_of_the_whole_encoder(made, tiny_encoder) -> None:
    torch.manual_seed(0)
    whole = made(tiny_encoder).eval()
    count = whole.config.num_hidden_layers
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    with torch.no_grad():
        states = whole(input_ids=IDS, attention_mask=mask, output_hidden_states=True).hidden_states
        for layer in range(1, count + 1):
            found = LayerEncoder(whole, layer)(input_ids=IDS, attention_mask=mask).last_hidden_state
            torch.testing.assert_close(found, states[layer], atol=1e-6, rtol=0)
        again = whole(input_ids=IDS, attention_mask=mask, output_hidden_states=True).hidden_states
    assert len(again) == count + 1
    assert torch.equal(again[-1], states[-1])


def test_layers_above_are_not_computed(tiny_encoder) -> None:
    whole = load_encoder(tiny_encoder)
    computed: Counter[str] = Counter()
    handle = register_module_forward_pre_hook(lambda module, _: computed.update([type(module).__name__]))
    try:
        encode(LayerEncoder(whole, 1), CHUNKS[:1])
    finally:
        handle.remove()
    assert computed["BertLayer"] == 1
    assert len(whole.encoder.layer) == 2  # type: ignore[union-attr,arg-type]


def test_weights_are_shared(tiny_encoder) -> None:
    whole: Any = load_encoder(tiny_encoder)
    lower = LayerEncoder(whole, 1)
    assert {id(parameter) for parameter in lower.parameters()} < {
        id(parameter) for parameter in whole.parameters()
    }
    before = encode(lower, CHUNKS)
    with torch.no_grad():
        whole.encoder.layer[1].output.dense.weight.zero_()
        assert torch.equal(encode(lower, CHUNKS), before)
        whole.encoder.layer[0].output.dense.weight.zero_()
        assert not torch.allclose(encode(lower, CHUNKS), before)

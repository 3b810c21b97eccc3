"""Packed into trees, decoders of many architectures give what separate passes give."""

import random
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.workers.decoders import WINDOW, base_model, configs, recurrent, save_decoder, tokenizer
from workers.errors import RewardError
from workers.models.backbones.decoder import Decoder, decoder_folder
from workers.text import ConversationRenderer, Tokens

NAMES = list(configs())
EXACT = 1e-5


@pytest.fixture(scope="module")
def renderer() -> ConversationRenderer:
    return ConversationRenderer(tokenizer(), 400)


def random_items(seed: int, count: int = 8) -> list[Tokens]:
    """Sequences that branch off each other anywhere, longer than the window."""
    dice = random.Random(seed)
    made: list[list[int]] = []
    for _ in range(count):
        stem = dice.choice(made)[: dice.randint(1, 14)] if made and dice.random() < 0.8 else []
        made.append(stem + [dice.randrange(400) for _ in range(dice.randint(2, 3 * WINDOW))])
    return [Tokens(tuple(ids), tuple(sorted({len(ids) // 2, len(ids) - 1})), 0, False) for ids in made]


def apart(base: torch.nn.Module, items: list[Tokens]) -> Tensor:
    """Every item in a pass of its own, as transformers does it by itself."""
    rows = []
    for item in items:
        hidden = base(input_ids=torch.tensor([item.ids]), use_cache=False).last_hidden_state[0]
        rows.append(hidden[[item.start, *item.reads]])
    return torch.cat(rows)


@pytest.mark.parametrize("name", NAMES)
def test_states_and_gradients_are_those_of_separate_passes(name: str, renderer: ConversationRenderer) -> None:
    base = base_model(configs()[name])
    decoder = Decoder(base, renderer)
    decoder._cost = decoder._cost.__class__()  # always share
    for seed in range(3):
        items = random_items(seed)
        weights = torch.randn(sum(1 + len(item.reads) for item in items), decoder.width)
        packed, alone = decoder.states(items).flat, apart(base, items)
        torch.testing.assert_close(packed, alone, atol=EXACT * float(alone.detach().abs().max()), rtol=0)
        gradients = []
        for states in (packed, alone):
            base.zero_grad()
            (states * weights).sum().backward()
            gradients.append(
                {key: one.grad.clone() for key, one in base.named_parameters() if one.grad is not None}
            )
        for key, expected in gradients[1].items():
            scale = max(1.0, float(expected.abs().max()))
            torch.testing.assert_close(gradients[0][key], expected, atol=EXACT * scale, rtol=0, msg=key)


@pytest.mark.parametrize("name", NAMES)
def test_they_may_be_used(name: str, renderer: ConversationRenderer) -> None:
    Decoder(base_model(configs()[name]), renderer).require_exact()


def test_what_mixes_tokens_without_attention_is_refused(renderer: ConversationRenderer) -> None:
    with pytest.raises(RewardError, match=r"layers of the kind linear_attention"):
        Decoder(base_model(recurrent()), renderer).require_exact()


def test_a_boolean_mask_on_eager_attention_is_not_exact(renderer: ConversationRenderer, monkeypatch) -> None:
    """Seen: it is added to the scores as 0 and 1, so nothing is masked, and nothing is said."""
    decoder = Decoder(base_model(configs()["gemma2-window"]), renderer)
    assert decoder.base.config._attn_implementation == "eager"
    additive = decoder._mask
    monkeypatch.setattr(decoder, "_mask", lambda rows, window: additive(rows, window) == 0)
    with pytest.raises(RewardError, match="cannot be packed exactly"):
        decoder.require_exact()


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("window")])
def test_a_sliding_window_is_kept(name: str, renderer: ConversationRenderer) -> None:
    """With one mask for all layers, transformers would switch the window off in silence."""
    base = base_model(configs()[name])
    decoder = Decoder(base, renderer)
    item = Tokens(tuple(range(3, 3 + 4 * WINDOW)), (4 * WINDOW - 1,), 0, False)
    expected = apart(base, [item])
    torch.testing.assert_close(decoder.states([item]).flat, expected, atol=1e-4, rtol=0)
    decoder.windows = {"full_attention": None}
    assert float((decoder.states([item]).flat - expected).detach().abs().max()) > 1e-2


def test_a_window_of_an_unknown_model_is_refused(renderer: ConversationRenderer) -> None:
    base = base_model(configs()["mistral-window"])
    base.config.model_type = "unheard-of"
    with pytest.raises(RewardError, match=r"unheard-of models have a sliding window \(5 tokens\)"):
        Decoder(base, renderer)


def test_equal_beginnings_cost_once(renderer: ConversationRenderer) -> None:
    decoder = Decoder(base_model(configs()["llama"]), renderer)
    stem = tuple(range(3, 103))
    items = [Tokens((*stem, last), (100,), None, False) for last in (200, 201, 202, 203)]
    assert decoder.cost(items) == 104
    assert decoder.cost(items[:1]) == 101


def test_nothing_before_the_agent_is_a_state_of_zero(renderer: ConversationRenderer) -> None:
    decoder = Decoder(base_model(configs()["llama"]), renderer)
    (first, steps), _ = decoder.states(
        [Tokens((5, 6), (1,), None, False), Tokens((5, 7), (1,), 0, False)]
    ).split()
    assert not first.any()
    assert steps.shape == (1, decoder.width)


@pytest.mark.parametrize("name", ["", "/nowhere"])
def test_a_folder_without_a_model(name: str, tmp_path: Path) -> None:
    with pytest.raises(RewardError, match=r"there is no decoder in .*config\.json") as caught:
        decoder_folder(name)
    assert caught.value.pointer == "/decoder"
    assert decoder_folder(str(save_decoder(tmp_path))) == tmp_path

"""InternLM2's reward models against a reference that follows their published forward pass."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional
from transformers import AutoTokenizer

from tests.workers.decoders import tokenizer
from tests.workers.importing.test_sequence_classifiers import imported
from tests.workers.public_models import CHATS, trajectory_of
from workers.json_files import write_json

CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
HEADS, GROUPS, SIZE, WIDTH, INNER, LAYERS = 4, 2, 8, 32, 48, 2
REWARD_TOKEN = 5
CONFIG = {
    "architectures": ["InternLM2ForRewardModel"],
    "auto_map": {"AutoModel": "modeling_internlm2.InternLM2ForRewardModel"},
    "model_type": "internlm2",
    "bias": False,
    "vocab_size": 400,
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": GROUPS,
    "hidden_act": "silu",
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1000000,
    "rope_scaling": {"type": "dynamic", "factor": 2.0},
    "reward_token_id": REWARD_TOKEN,
    "pad_token_id": 2,
}


def save_internlm2(folder: Path) -> Path:
    torch.manual_seed(6)
    weights = {
        "model.tok_embeddings.weight": torch.randn(400, WIDTH),
        "model.norm.weight": torch.rand(WIDTH) + 0.5,
        "v_head.weight": torch.randn(1, WIDTH),
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        shapes = {
            "attention.wqkv": ((HEADS + 2 * GROUPS) * SIZE, WIDTH),
            "attention.wo": (WIDTH, HEADS * SIZE),
            "feed_forward.w1": (INNER, WIDTH),
            "feed_forward.w3": (INNER, WIDTH),
            "feed_forward.w2": (WIDTH, INNER),
        }
        weights |= {f"{at}{name}.weight": torch.randn(shape) * 0.2 for name, shape in shapes.items()}
        weights |= {f"{at}{name}.weight": torch.rand(WIDTH) + 0.5 for name in ("attention_norm", "ffn_norm")}
    folder.mkdir()
    save_file(weights, folder / "model.safetensors")
    tokenizer(CHATML).save_pretrained(folder)
    write_json(folder / "config.json", CONFIG)
    return folder


def reference(weights: dict[str, Tensor], ids: list[int]) -> float:
    """As modeling_internlm2 computes it: rotated halves, one map for queries, keys and values, grouped."""

    def norm(x: Tensor, name: str) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weights[f"{name}.weight"]

    def rotate(x: Tensor) -> Tensor:
        angles = torch.arange(len(ids))[:, None] / 1e6 ** (torch.arange(0, SIZE, 2) / SIZE)
        cos, sin = (torch.cat([part, part], -1)[:, None] for part in (angles.cos(), angles.sin()))
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    x = weights["model.tok_embeddings.weight"][ids]
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        qkv = norm(x, f"{at}attention_norm") @ weights[f"{at}attention.wqkv.weight"].T
        parts = qkv.view(len(ids), GROUPS, HEADS // GROUPS + 2, SIZE)
        query = rotate(parts[:, :, :-2].reshape(len(ids), HEADS, SIZE))
        key = rotate(parts[:, :, -2]).repeat_interleave(HEADS // GROUPS, 1)
        value = parts[:, :, -1].repeat_interleave(HEADS // GROUPS, 1)
        scores = torch.einsum("qhd,khd->hqk", query, key) / SIZE**0.5
        scores = scores.masked_fill(torch.ones(len(ids), len(ids)).triu(1).bool(), -torch.inf)
        mixed = torch.einsum("hqk,khd->qhd", scores.softmax(-1), value).reshape(len(ids), -1)
        x = x + mixed @ weights[f"{at}attention.wo.weight"].T
        y = norm(x, f"{at}ffn_norm")
        inner = functional.silu(y @ weights[f"{at}feed_forward.w1.weight"].T) * (
            y @ weights[f"{at}feed_forward.w3.weight"].T
        )
        x = x + inner @ weights[f"{at}feed_forward.w2.weight"].T
    return float(norm(x, "model.norm")[-1] @ weights["v_head.weight"][0])


def test_the_reward_is_read_at_the_reward_token(tmp_path: Path) -> None:
    folder = save_internlm2(tmp_path / "public")
    weights = load_file(folder / "model.safetensors")
    model = imported(tmp_path, folder)
    tokens = AutoTokenizer.from_pretrained(tmp_path / "import" / "model")
    scores = model.score([model.render(trajectory_of(chat)) for chat in CHATS])
    for messages, score in zip(CHATS, scores, strict=True):
        ids = tokens.apply_chat_template(messages, tokenize=True)["input_ids"]
        assert score.raw == pytest.approx(reference(weights, [*ids, REWARD_TOKEN]), abs=1e-5)
    first = tokens.apply_chat_template(CHATS[2][:2], tokenize=True)["input_ids"]
    assert scores[2].values[0] == pytest.approx(reference(weights, [*first, REWARD_TOKEN]), abs=1e-5)

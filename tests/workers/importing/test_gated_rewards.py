"""Attributes weighed by a gating network, against a reference that follows the published code of ArmoRM."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoTokenizer, LlamaModel

from tests.workers.decoders import configs, tokenizer
from tests.workers.importing.test_sequence_classifiers import imported
from tests.workers.public_models import CHATS, LLAMA3, trajectory_of
from workers.errors import RewardError
from workers.schema import Text

ATTRIBUTES = ["helpful", "honest", "brief"]


class Gate(nn.Module):
    def __init__(self, width: int, inner: int, out: int) -> None:
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor([1.3]))
        self.layers = nn.ModuleList([nn.Linear(width, inner), nn.Linear(inner, inner), nn.Linear(inner, out)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(self.layers):
            x = torch.relu(layer(x)) if number < 2 else layer(x)
        return torch.softmax(x / 2.0, dim=1) * self.logit_scale[0]


class Reference(nn.Module):
    """One conversation at a time; the gate reads where the last <|eot_id|> + header of the assistant begins."""

    def __init__(self, config: Any, count: int) -> None:
        super().__init__()
        self.model = LlamaModel(config)
        self.regression_layer = nn.Linear(config.hidden_size, count, bias=False)
        self.reward_transform_matrix = nn.Parameter(torch.eye(count) - 0.1, requires_grad=False)
        self.gating = Gate(config.hidden_size, 24, count)

    @torch.no_grad()
    def score(self, ids: list[int], pattern: list[int]) -> tuple[float, list[float]]:
        hidden = self.model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        length = len(pattern)
        gate = max(start for start in range(len(ids)) if ids[start : start + length] == pattern)
        rewards = self.regression_layer(hidden[-1:])
        weights = self.gating(hidden[gate : gate + 1])
        return float((weights * (rewards @ self.reward_transform_matrix)).sum()), rewards[0].tolist()


def save_gated(folder: Path, count: int = 3) -> Reference:
    torch.manual_seed(5)
    config = configs()["llama"]
    config.architectures = ["LlamaForRewardModelWithGating"]
    config.gating_temperature = 2.0
    config.id2label = dict(enumerate(ATTRIBUTES)) if count == 3 else config.id2label
    config.auto_map = {"AutoModelForSequenceClassification": "modeling_custom.LlamaForRewardModelWithGating"}
    reference = Reference(config, count).eval()
    folder.mkdir()
    config.save_pretrained(folder)
    tokenizer(LLAMA3).save_pretrained(folder)
    from safetensors.torch import save_file

    weights = {name: tensor.detach().clone() for name, tensor in reference.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return reference


def test_reward_and_attributes_are_those_of_the_published_architecture(tmp_path: Path) -> None:
    reference = save_gated(tmp_path / "public")
    model = imported(tmp_path, tmp_path / "public")
    tokens = AutoTokenizer.from_pretrained(tmp_path / "public")
    pattern = tokens.encode(
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n", add_special_tokens=False
    )
    scores = model.score([model.render(trajectory_of(chat)) for chat in CHATS], criteria=ATTRIBUTES)
    for messages, score in zip(CHATS, scores, strict=True):
        ids = tokens.apply_chat_template(messages, tokenize=True)["input_ids"]
        reward, attributes = reference.score(ids, pattern)
        assert score.raw == pytest.approx(reward, abs=1e-5)
        assert score.criteria == pytest.approx(dict(zip(ATTRIBUTES, attributes, strict=True)), abs=1e-5)
    first, _ = reference.score(tokens.apply_chat_template(CHATS[2][:2], tokenize=True)["input_ids"], pattern)
    assert scores[2].values[0] == pytest.approx(first, abs=1e-5)
    assert list(model.manifest["criteria"]) == ATTRIBUTES
    assert model.score([model.render(Text("hello"))])[0].tokens > 0


def test_a_gating_network_of_another_shape_is_refused_by_name(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    save_gated(tmp_path / "public")
    path = tmp_path / "public" / "model.safetensors"
    weights = load_file(path)
    del weights["gating.logit_scale"]
    weights["gating.layers.2.weight"] = weights["gating.layers.2.weight"][:, :-1].contiguous()
    save_file(weights, path)
    with pytest.raises(
        RewardError, match=r"missing: gating\.logit_scale; other shapes: gating\.layers\.2\.weight"
    ):
        imported(tmp_path, tmp_path / "public")

"""Small process reward models with random weights, written as their makers write them, and the numbers their own code
gives: of the published classes that transformers does not have, what they compute is written out here."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2Model,
)

from tests.workers.decoders import CHATML, configs, tokenizer

SEPARATOR = "<extra_0>"
TASK = "Where is order 17?"
STEPS = ["I look for the order.", "It was sent on Monday,\nnot lost.", "So it is good."]


def step_tokenizer(
    template: str | None = CHATML, *, separator: str = "", **fields: Any
) -> PreTrainedTokenizerFast:
    """separator: made a special token of the vocabulary."""
    made = tokenizer(template, **fields)
    if separator:
        made.add_special_tokens(
            {"additional_special_tokens": [*made.additional_special_tokens, separator]}
        ) if hasattr(made, "additional_special_tokens") else made.add_tokens(
            [AddedToken(separator, special=True)], special_tokens=True
        )
    return made


def save_token_classifier(
    folder: Path, name: str = "qwen2", *, labels: dict[int, str] | None = None, **changes: Any
) -> Path:
    torch.manual_seed(3)
    config = configs()[name]
    named = labels or {0: "LABEL_0", 1: "LABEL_1"}
    config.num_labels = len(named)
    config.id2label, config.label2id = named, {label: place for place, label in named.items()}
    config.update(changes)
    AutoModelForTokenClassification.from_config(config).save_pretrained(folder)
    step_tokenizer().save_pretrained(folder)
    return folder


class Qwen2ForProcessRewardModel(nn.Module):
    """What the code of Qwen2.5-Math-PRM computes: the decoder's last states through Linear, ReLU, Linear."""

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__()
        self.model = Qwen2Model(config)
        width = config.hidden_size
        self.score = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.score(self.model(input_ids=ids).last_hidden_state)
        return logits

    @classmethod
    def from_folder(cls, folder: Path) -> "Qwen2ForProcessRewardModel":
        made = cls(Qwen2Config.from_pretrained(folder)).eval()
        weights = load_file(folder / "model.safetensors")
        weights.pop("lm_head.weight", None)  # there, and read by nothing
        made.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, strict=True)
        return made


def save_process_classifier(folder: Path, **changes: Any) -> Path:
    """As Qwen/Qwen2.5-Math-PRM-7B lies on the hub: code of its own named in config.json, and an LM head kept."""
    folder.mkdir(parents=True)
    torch.manual_seed(4)
    config = configs()["qwen2"]
    config.vocab_size = 401
    config.update(changes)
    made = Qwen2ForProcessRewardModel(config)
    weights = {name: tensor.contiguous() for name, tensor in made.state_dict().items()}
    weights["lm_head.weight"] = torch.randn(config.vocab_size, config.hidden_size)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    values = config.to_dict() | {
        "architectures": ["Qwen2ForProcessRewardModel"],
        "auto_map": {"AutoModel": "modeling_qwen2_rm.Qwen2ForProcessRewardModel"},
    }
    (folder / "config.json").write_text(json.dumps(values))
    step_tokenizer(separator=SEPARATOR).save_pretrained(folder)
    return folder


def process_classifier_rewards(folder: Path, messages: list[dict[str, str]]) -> list[float]:
    """As the model's card does: softmax of the logits at every `<extra_0>`, of which the second is the good one."""
    made = AutoTokenizer.from_pretrained(folder)
    text = made.apply_chat_template(messages, tokenize=False, add_generation_prompt=False)
    ids = torch.tensor([made.encode(text)])
    (separator,) = made.encode(SEPARATOR)
    with torch.no_grad():
        chances = Qwen2ForProcessRewardModel.from_folder(folder)(ids).softmax(-1)
    found: list[float] = chances[ids == separator][:, 1].tolist()
    return found


def save_value_head(folder: Path) -> Path:
    """As TRL's AutoModelForCausalLMWithValueHead saves: the causal model's tensors, and v_head.summary."""
    torch.manual_seed(5)
    config = configs()["qwen2"]
    model = AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder)
    summary = nn.Linear(config.hidden_size, 1)
    weights = load_file(folder / "model.safetensors")
    weights |= {f"v_head.summary.{name}": tensor.detach() for name, tensor in summary.named_parameters()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    step_tokenizer().save_pretrained(folder)
    return folder


def value_head_rewards(folder: Path, task: str, steps: list[str]) -> list[float]:
    """As Skywork-o1-Open-PRM's code prepares its input: each step's ids and the id of the new line behind them."""
    made = AutoTokenizer.from_pretrained(folder)
    ids = made.encode(made.bos_token + task + "\n", add_special_tokens=False)
    places = []
    for step in steps:
        ids += made.encode(step, add_special_tokens=False) + made.encode("\n", add_special_tokens=False)[-1:]
        places.append(len(ids) - 1)
    weights = load_file(folder / "model.safetensors")
    base = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        states = base(input_ids=torch.tensor([ids])).last_hidden_state[0, places]
        values = states @ weights["v_head.summary.weight"].T + weights["v_head.summary.bias"]
    found: list[float] = values.sigmoid().flatten().tolist()
    return found


def save_step_tag(folder: Path, *, template: str | None = CHATML) -> Path:
    torch.manual_seed(6)
    AutoModelForCausalLM.from_config(configs()["llama"]).save_pretrained(folder)
    step_tokenizer(template).save_pretrained(folder)
    return folder


def causal_chances(folder: Path, ids: list[int], places: list[int], words: tuple[int, int]) -> list[float]:
    """P(first) against the second word, after each of these places."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0, places][:, list(words)]
    found: list[float] = logits.softmax(-1)[:, 0].tolist()
    return found

"""Public sequence classifiers, imported, give the logits that transformers gives."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.workers.public_models import (
    CHATS,
    GEMMA,
    LLAMA3,
    MISTRAL,
    save_classifier,
    trajectory_of,
    transformers_logits,
)
from workers.errors import RewardError
from workers.importing import Checkpoint, ImportOptions, recognise
from workers.importing.importer import run
from workers.json_files import write_json
from workers.models import LoadedModel, load

CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def imported(scratch: Path, checkpoint: Path, **request: Any) -> LoadedModel:
    folder = scratch / "import"
    folder.mkdir(parents=True)
    write_json(folder / "request.json", {"checkpoint": str(checkpoint), **request})
    run(folder)
    return load(folder / "model")


@pytest.mark.parametrize(
    ("name", "template", "changes"),
    [
        ("llama", LLAMA3, {}),
        ("qwen2", CHATML, {"pad_token_id": None}),
        ("qwen3", CHATML, {}),
        ("gemma2-window", GEMMA, {}),
        ("gemma3-window", GEMMA, {}),
        ("mistral-window", MISTRAL, {"pad_token_id": 1}),  # the padding is what ends an answer
        ("gpt2", None, {}),
    ],
)
def test_logits_are_those_of_transformers(
    tmp_path: Path, name: str, template: str | None, changes: dict[str, Any]
) -> None:
    folder = save_classifier(tmp_path / "public", name, template=template, **changes)
    model = imported(tmp_path, folder)
    scores = model.score([model.render(trajectory_of(messages)) for messages in CHATS])
    if template is not None:
        for messages, score in zip(CHATS, scores, strict=True):
            assert score.raw == pytest.approx(float(transformers_logits(folder, messages)[0]), abs=1e-5)
        # A step's value is the reward of the conversation up to it.
        until = float(transformers_logits(folder, CHATS[2][:2])[0])
        assert scores[2].values[0] == pytest.approx(until, abs=1e-5)
    check = model.manifest["imported"]["check"]
    assert check["conversations"] == 3
    assert check["largest_difference"] < 1e-5


def test_weights_saved_in_bfloat16_stay_so_where_that_is_the_precision(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "public", dtype=torch.bfloat16)
    exact = imported(tmp_path, folder)
    half = load(tmp_path / "import" / "model", precision="bfloat16")
    for model, dtype in ((exact, torch.float32), (half, torch.bfloat16)):
        assert {weight.dtype for weight in model.model.backbone.parameters()} == {dtype}
    rewards = [
        [score.raw for score in model.score([model.render(trajectory_of(chat)) for chat in CHATS])]
        for model in (exact, half)
    ]
    assert rewards[0] == pytest.approx(
        [float(transformers_logits(folder, chat)[0]) for chat in CHATS], abs=1e-5
    )
    assert rewards[1] == pytest.approx(rewards[0], rel=0.05, abs=0.02)


def test_outputs_of_a_classifier_of_several_are_reward_and_criteria(tmp_path: Path) -> None:
    names = {"0": "bad", "1": "good", "2": "brief"}
    folder = save_classifier(tmp_path / "public", labels=3, id2label=names)
    with pytest.raises(RewardError, match="outputs bad, good, brief; say which is the reward"):
        imported(tmp_path / "refused", folder)
    model = imported(tmp_path, folder, options={"label": "good", "against": "0"})
    rendered = [model.render(trajectory_of(messages)) for messages in CHATS]
    for messages, score in zip(CHATS, model.score(rendered, criteria=["bad", "brief"]), strict=True):
        bad, good, brief = transformers_logits(folder, messages).tolist()
        assert score.raw == pytest.approx(good - bad, abs=1e-5)
        assert score.criteria == pytest.approx({"bad": bad, "brief": brief}, abs=1e-5)


def test_a_head_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "public")
    weights = load_file(folder / "model.safetensors")
    weights["value_head.weight"] = weights.pop("score.weight")
    save_file(weights, folder / "model.safetensors")
    said = r"missing: score\.weight; unexpected: value_head\.weight"
    with pytest.raises(RewardError, match=said):
        recognise(Checkpoint(folder), ImportOptions())


def test_pickles_quantised_weights_and_unknown_models_are_refused(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "public")
    config = json.loads((folder / "config.json").read_text())
    for changes, said in (
        (
            {"architectures": ["LlamaForCausalLM"], "auto_map": {"AutoModel": "code.py"}},
            "own code is not run",
        ),
        ({"quantization_config": {}}, "quantised"),
    ):
        write_json(folder / "config.json", config | changes)
        with pytest.raises(RewardError, match=said):
            recognise(Checkpoint(folder), ImportOptions())
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    write_json(folder / "config.json", config)
    with pytest.raises(RewardError, match=r"pytorch_model\.bin, which can run code.*save_pretrained\(NEW\)"):
        Checkpoint(folder)


def test_calibration(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "public")
    lines = [
        {"messages": [*CHATS[0][:1], {"role": "assistant", "content": "sent " * n}]} for n in range(1, 61)
    ]
    path = tmp_path / "chats.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    model = imported(tmp_path, folder, calibration=str(path))
    raw = sorted(float(transformers_logits(folder, line["messages"])[0]) for line in lines[:3])
    scores = [model.score([model.render(trajectory_of(line["messages"]))])[0] for line in lines]
    assert sorted(score.raw for score in scores[:3]) == pytest.approx(raw, abs=1e-5)
    assert model.median == pytest.approx(sorted(score.raw for score in scores)[30], rel=0.1)
    assert model.manifest["training"]["trajectories"] == 60
    assert scores[0].ood_score is not None

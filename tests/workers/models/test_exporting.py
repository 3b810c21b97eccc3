"""Models in the forms of others: what the README says, run with the peer's own classes, gives the model's rewards."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from benchmarks import export_table
from tests.workers.decoders import save_decoder
from tests.workers.importing import test_judges
from tests.workers.importing.test_sequence_classifiers import imported
from tests.workers.importing.test_step_models import imported as imported_steps
from tests.workers.judge import judges
from tests.workers.public_models import (
    CHATS,
    pair_logits,
    save_bidirectional,
    save_classifier,
    transformers_logits,
)
from tests.workers.public_step_models import save_process_classifier
from workers.errors import RewardError
from workers.models import Lineage, build, load, load_scorer, save, save_generative
from workers.models.exporting import export, servers
from workers.models.exporting.model_folder import save_tensors
from workers.models.exporting.source import ExportOptions, ExportUsage
from workers.models.kinds import KINDS
from workers.schema import Part, Step, Task, Trajectory
from workers.schema.conditions import with_conditions
from workers.schema.model_score import ModelScore
from workers.schema.recipe import parse_recipe

MESSAGES = [
    {"role": "user", "content": "Where is my order?"},
    {"role": "assistant", "content": "It was sent."},
    {"role": "user", "content": "When?"},
    {"role": "assistant", "content": "On Monday."},
]
_SOURCES = {"user": "user", "assistant": "agent"}
TALK = Trajectory(
    steps=tuple(
        Step(source=_SOURCES[message["role"]], message=(Part(text=message["content"]),))  # type: ignore[arg-type]
        for message in MESSAGES
    ),
    task=Task(id=""),
)
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """make(name, base fields, recipe fields) -> the artifact of a decoder with random weights, adapters included."""
    made: dict[str, Path] = {}

    def make(name: str = "qwen3", *, labels: tuple[str, ...] = (), **fields: Any) -> Path:
        key = json.dumps([name, labels, fields])
        if key in made:
            return made[key]
        folder = tmp_path_factory.mktemp("model")
        base = save_decoder(folder / "base", name)
        values = {
            "backbone": "decoder",
            "decoder": str(base),
            "max_tokens": 256,
            "lora_rank": 0,
            "ensemble": 3,
        }
        recipe = parse_recipe(values | fields)
        torch.manual_seed(3)
        model = build(recipe, labels=labels, reward_from="labels" if labels else "scalar")
        with torch.no_grad():  # adapters begin at nothing
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter) * parameter.requires_grad)
        reward = {"median": 0.25, "std": 2.0}
        save(model, folder / "model", recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
        return made.setdefault(key, folder / "model")

    return make


def score(artifact: Path) -> ModelScore:
    model = load(artifact)
    return model.score([model.render(TALK)])[0]


def run_readme(usage: ExportUsage, folder: Path) -> dict[str, Any]:
    """What the code of the README computes for MESSAGES."""
    code = re.search(r"```python\n(.*?)```", usage.sections[0][1], re.DOTALL)
    assert code
    text = re.sub(r"(?s)messages = \[.*?\n\]", f"messages = {MESSAGES!r}", code[1])
    values: dict[str, Any] = {}
    exec(text.replace('folder = "."', f"folder = {str(folder)!r}"), values)
    return values


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "gemma2-window", "gpt2"])
def test_a_sequence_classifier_gives_the_reward_by_transformers_alone(
    make, tmp_path: Path, name: str
) -> None:
    artifact = make(name)
    usage = export(artifact, "transformers", tmp_path / "out", ExportOptions())
    found, ours = run_readme(usage, tmp_path / "out"), score(artifact)
    assert found["raw"] == pytest.approx(ours.raw, abs=1e-5)
    assert found["reward"] == pytest.approx((ours.raw - 0.25) / 2.0, abs=1e-5)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["id2label"] == {"0": "reward"}
    assert not [
        path.name
        for path in (tmp_path / "out").iterdir()
        if path.name in ("touchstone.json", "heads.safetensors")
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "llama"},
        {"name": "gpt2", "aggregation": "sum"},
        {"name": "qwen3", "aggregation": "mean", "labels": ("bad", "neutral", "good")},
        {"name": "qwen3", "aggregation": "min", "labels": ("bad", "good")},
    ],
    ids=["value", "sum", "mean-of-labels", "min-of-labels"],
)
def test_a_token_classifier_gives_the_reward_of_each_step(
    make, tmp_path: Path, fields: dict[str, Any]
) -> None:
    artifact = make(**fields)
    usage = export(artifact, "token-classifier", tmp_path / "out", ExportOptions())
    found, ours = run_readme(usage, tmp_path / "out"), score(artifact)
    assert found["steps"] == pytest.approx(ours.step_rewards, abs=1e-5)
    assert found["raw"] == pytest.approx(ours.raw, abs=1e-5)


@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_an_adapter_gives_the_reward_on_its_base_and_is_refused_on_another(
    make, tmp_path: Path, name: str
) -> None:
    artifact = make(name, lora_rank=4)
    base = artifact.parent / "base"
    options = ExportOptions(base=str(base), base_name=str(base))
    usage = export(artifact, "adapter", tmp_path / "out", options)
    assert run_readme(usage, tmp_path / "out")["raw"] == pytest.approx(score(artifact).raw, abs=1e-5)
    assert (tmp_path / "out" / "adapter_model.safetensors").stat().st_size < (
        base / "model.safetensors"
    ).stat().st_size
    torch.manual_seed(9)
    other = tmp_path / "other"
    peer = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1)
    for parameter in peer.parameters():
        parameter.data.mul_(1.5)
    peer.save_pretrained(other)
    with pytest.raises(RewardError, match="other is not what it was trained on"):
        export(artifact, "adapter", tmp_path / "wrong", ExportOptions(base=str(other)))


def test_shards_are_read_as_one(make, tmp_path: Path) -> None:
    export(make("llama"), "transformers", tmp_path / "out", ExportOptions())
    whole = load_file(tmp_path / "out" / "model.safetensors")
    (tmp_path / "out" / "model.safetensors").unlink()
    save_tensors(whole.items(), tmp_path / "out", shard=40_000)
    assert len([*(tmp_path / "out").glob("model-*-of-*.safetensors")]) > 2
    peer, loading = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert not loading["missing_keys"]
    assert all(torch.equal(tensor, whole[name]) for name, tensor in peer.state_dict().items())


@pytest.mark.parametrize(("name", "pooling"), [("llama", "LAST"), ("qwen2", "LAST"), ("qwen3", "RANK")])
def test_llama_cpp_gives_the_reward(make, tmp_path: Path, name: str, pooling: str) -> None:
    pytest.importorskip("xllamacpp")
    artifact = make(name)
    export(artifact, "gguf", tmp_path / "out", ExportOptions(out_type="f32"))
    ids = load(artifact).render(TALK).ids
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.workers.llm.llama_embedding"),
            *(str(tmp_path / "out" / "model-f32.gguf"), pooling, json.dumps([*ids])),
        ],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"no_proxy": "127.0.0.1"},
    )
    found = json.loads(done.stdout.strip().rpartition("\n")[2])
    if pooling == "RANK":
        raw = math.log(found[0] / found[1])
    else:
        head = json.loads((tmp_path / "out" / "score.json").read_text())["weight"]
        raw = sum(a * b for a, b in zip(found, head, strict=True))
    assert raw == pytest.approx(score(artifact).raw, abs=1e-5)


@pytest.mark.parametrize(("out_type", "bits"), [("f16", "F16"), ("bf16", "BF16"), ("q8_0", "Q8_0")])
def test_a_gguf_file_of_fewer_bits(make, tmp_path: Path, out_type: str, bits: str) -> None:
    gguf = pytest.importorskip("gguf")
    export(make("qwen3"), "gguf", tmp_path / "out", ExportOptions(out_type=out_type))
    reader = gguf.GGUFReader(tmp_path / "out" / f"model-{out_type}.gguf")
    kinds = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert kinds["token_embd.weight"] == bits
    assert kinds["cls.output.weight"] == kinds["output_norm.weight"] == "F32"


@pytest.mark.slow
def test_a_python_package_of_a_model_of_sets_is_tried_in_a_process_without_this_code(tmp_path: Path) -> None:
    metadata = {"numbers_before_sets": 1, "sets": [{"name": "ships", "numbers": ["at", "speed"]}]}
    steps = (Step(source="agent", features=(0.5, 2.0, 1.0, 2.0, 3.0, 4.0)),)
    example = Trajectory(steps=steps, task=Task(id="t"), metadata=metadata)
    recipe = parse_recipe({"backbone": "features", "width": 16})
    model = build(recipe, [example])
    reward = {"median": 0.25, "std": 2.0}
    save(model, tmp_path / "model", recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    usage = export(tmp_path / "model", "standalone", tmp_path / "out", ExportOptions())
    assert "in a separate process: a reward within" in usage.checked


@pytest.mark.slow
def test_a_python_package_gives_the_reward_without_this_code(make_trajectory, tmp_path: Path) -> None:
    recipe = parse_recipe({"backbone": "linear", "conditioned": ["goal"]})
    reward = {"median": 0.25, "std": 2.0}
    model = build(recipe)
    with_goal = with_conditions(TALK, ("goal",), {"goal": "the order is found"})
    rendered = [model.backbone.renderer.render(content) for content in (TALK, with_goal)]
    model.backbone.prepare_with(rendered, model.new_cache(0))
    with torch.no_grad():
        model.backbone.weight.add_(torch.randn_like(model.backbone.weight))
    model.backbone.finish_training()
    save(model, tmp_path / "model", recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    export(tmp_path / "model", "standalone", tmp_path / "out", ExportOptions())
    code = "import json, sys; from touchstone_model import load; "
    code += "print(json.dumps(load().score(json.loads(sys.argv[1]))))"
    inputs = [{"messages": MESSAGES}, {"messages": MESSAGES, "goal": "the order is found"}]
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(inputs)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path / "out",
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    theirs, by_goal = json.loads(done.stdout)
    loaded = load_scorer(tmp_path / "model")
    ours, wanted = loaded.score([loaded.render(TALK), loaded.render(with_goal)])
    assert abs(ours.raw) > 0.01
    assert abs(ours.raw - wanted.raw) > 0.01
    assert by_goal["raw"] == pytest.approx(wanted.raw, abs=1e-9)
    assert theirs["raw"] == pytest.approx(ours.raw, abs=1e-9)
    assert theirs["reward"] == pytest.approx((ours.raw - 0.25) / 2.0, abs=1e-9)
    assert theirs["steps"] == pytest.approx(ours.step_rewards, abs=1e-9)


@pytest.mark.parametrize(
    ("fields", "form", "reason"),
    [
        ({"aggregation": "mean"}, "transformers", "made of all its steps"),
        ({}, "adapter", "has no adapter"),
        ({"name": "gpt2"}, "gguf", "this model is a gpt2 one"),
        ({"name": "gemma3-window"}, "token-classifier", "no token classifier for gemma3_text"),
        ({}, "onnx", "choose from artifact, transformers"),
    ],
)
def test_what_a_model_has_no_form_for_is_refused(
    make, tmp_path: Path, fields, form: str, reason: str
) -> None:
    with pytest.raises(RewardError, match=reason):
        export(make(**fields), form, tmp_path / "out", ExportOptions())


@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_the_servers_registries_have_what_is_claimed(server: str) -> None:
    """Recorded from the registries of the versions that `servers` names."""
    recorded = json.loads((Path(__file__).parent / "server_registries.json").read_text())[server]
    known = set(recorded["architectures"])
    if server == "sglang":
        assert recorded["version"] == servers.SGLANG
        assert known >= servers.SGLANG_CLASSIFIERS
        return
    assert recorded["version"] == servers.VLLM
    assert known >= servers.VLLM_CLASSIFIERS | servers.VLLM_PROCESS
    assert known >= {f"{base}ForCausalLM" for base in servers.VLLM_CAUSAL}


@pytest.mark.parametrize("labels", [1, 2])
def test_an_imported_classifier_leaves_as_it_came(tmp_path: Path, labels: int) -> None:
    """Of two labels, the reward is the first less the second."""
    public = save_classifier(tmp_path / "public", "qwen3", labels=labels)
    options = {"label": "LABEL_0", "against": "LABEL_1"} if labels == 2 else {}
    imported(tmp_path, public, options=options)
    export(tmp_path / "import" / "model", "transformers", tmp_path / "out", ExportOptions())
    for messages in CHATS:
        before, after = (transformers_logits(folder, messages) for folder in (public, tmp_path / "out"))
        wanted = before[0] - before[1] if labels == 2 else before[0]
        assert float(after[0]) == pytest.approx(float(wanted), abs=1e-5)


@pytest.mark.parametrize("name", ["bert", "deberta-v2"])
def test_a_classifier_that_sees_all_of_a_text_leaves_as_it_came(tmp_path: Path, name: str) -> None:
    public = save_bidirectional(tmp_path / "public", name)
    imported(tmp_path, public)
    usage = export(tmp_path / "import" / "model", "transformers", tmp_path / "out", ExportOptions())
    before, after = (
        pair_logits(folder, "Where is it?", "It was sent.") for folder in (public, tmp_path / "out")
    )
    assert torch.allclose(before, after, atol=1e-6)
    assert "reads all" in usage.checked
    is_served = "text-embeddings-router --model-id" in usage.sections[1][1]
    assert is_served == (name == "bert")


def test_a_process_reward_model_leaves_as_it_came(tmp_path: Path) -> None:
    public = save_process_classifier(tmp_path / "public")
    imported_steps(public, tmp_path / "model")
    usage = export(tmp_path / "model", "transformers", tmp_path / "out", ExportOptions())
    saved, found = (load_file(folder / "model.safetensors") for folder in (public, tmp_path / "out"))
    assert saved.keys() == found.keys()
    assert all(torch.equal(saved[name], found[name]) for name in saved)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == json.loads((public / "config.json").read_text())["architectures"]
    assert "vllm serve FOLDER" in usage.sections[1][1]


def test_every_kind_is_in_the_table() -> None:
    assert set(export_table.KINDS) == {*KINDS, "generative"}


@pytest.fixture(scope="module")
def judge_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = judges.decoder(tmp_path_factory.mktemp("judge"))
    folder = tmp_path_factory.mktemp("artifact") / "model"
    reward = {"median": 0.25, "std": 2.0}
    save_generative(judges.writer(base), folder, recipe=judges.recipe(base), reward=reward, lineage=Lineage())
    return folder


def test_a_judge_is_a_language_model_whose_verdict_is_read_as_its_readme_says(
    judge_model: Path, tmp_path: Path
) -> None:
    usage = export(judge_model, "transformers", tmp_path / "out", ExportOptions())
    prompts = json.loads((tmp_path / "out" / "verdict_prompts.json").read_text())
    assert prompts["trajectory"]["words"] == ["good", "bad"]
    assert "{{run}}" in prompts["trajectory"]["user"] and "{{a}}" in prompts["pair"]["user"]
    ids = re.search(r"ids (\d+) and (\d+)", usage.sections[0][1])
    assert ids
    model = load_scorer(judge_model)
    question = model.render(TALK)
    (answer,) = model.answers([question])  # type: ignore[union-attr]
    line = model.writer.line(question, answer.written.ids, is_formed=answer.written.is_formed)  # type: ignore[union-attr]
    peer = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    with torch.no_grad():
        last = peer(input_ids=torch.tensor([[*line.ids, *line.before]])).logits[0, -1].log_softmax(-1)
    log_odds = float(last[int(ids[1])] - last[int(ids[2])])
    assert log_odds == pytest.approx(model.score([question])[0].raw, abs=1e-5)


def test_a_judge_as_a_gguf_file(judge_model: Path, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    export(judge_model, "gguf", tmp_path / "out", ExportOptions(out_type="bf16"))
    names = {tensor.name for tensor in gguf.GGUFReader(tmp_path / "out" / "model-bf16.gguf").tensors}
    assert "token_embd.weight" in names and "cls.output.weight" not in names
    assert (tmp_path / "out" / "verdict_prompts.json").is_file()


def test_an_imported_judge_says_where_its_scale_is_read(tmp_path: Path) -> None:
    source = save_decoder(
        tmp_path / "judge", "llama", shape={"max_position_embeddings": 4096}, template=test_judges.TEMPLATE
    )
    model = test_judges.judge(source, tmp_path, test_judges.SCALE)
    usage = export(tmp_path / "model", "transformers", tmp_path / "out", ExportOptions())
    reading = usage.sections[0][1]
    ids = {point: int(id_) for point, id_ in re.findall(r"(\d) has the id (\d+)", reading)}
    peer = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    question = model.render(TALK)
    before = [*model.renderer.words(question).before]
    with torch.no_grad():
        last = peer(input_ids=torch.tensor([[*question.ids, *before]])).logits[0, -1]
    chances = last[[*ids.values()]].softmax(-1)
    expected = float(chances @ torch.tensor([float(point) for point in ids]))
    assert expected == pytest.approx(model.score([question])[0].raw, abs=1e-5)
    prompts = json.loads((tmp_path / "out" / "verdict_prompts.json").read_text())
    assert prompts["run"]["scale"] == ["1", "2", "3"] and "Two trajectories" not in reading


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of trl, of what transformers is to change
def test_trl_trains_on_from_the_folder(make: Make, tmp_path: Path) -> None:
    """Before its first step, the trainer's model gives the reward of ours."""
    trl = pytest.importorskip("trl")
    from datasets import Dataset

    artifact = make("qwen3")
    export(artifact, "transformers", tmp_path / "out", ExportOptions())
    rows = [{"chosen": MESSAGES, "rejected": MESSAGES[:2]}] * 2
    options = {"max_length": 256, "report_to": [], "use_cpu": True, "bf16": False, "max_steps": 1}
    trainer = trl.RewardTrainer(
        model=str(tmp_path / "out"),
        args=trl.RewardConfig(output_dir=str(tmp_path / "trained"), **options),
        train_dataset=Dataset.from_list(rows),
    )
    chosen = trainer.train_dataset[0]["chosen_ids"]
    assert list(chosen) == list(load(artifact).render(TALK).ids)
    with torch.no_grad():
        logit = trainer.model.eval().float()(input_ids=torch.tensor([chosen])).logits[0, 0]
    assert float(logit) == pytest.approx(score(artifact).raw, abs=1e-5)
    trainer.train()

"""Process reward models from elsewhere: the numbers of each step are those of their own code."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForTokenClassification, AutoTokenizer

from tests.workers.decoders import save_decoder, tokenizer
from tests.workers.public_step_models import (
    SEPARATOR,
    STEPS,
    TASK,
    causal_chances,
    process_classifier_rewards,
    save_process_classifier,
    save_step_tag,
    save_token_classifier,
    save_value_head,
    step_tokenizer,
    value_head_rewards,
)
from workers.errors import RewardError
from workers.importing import Checkpoint, ImportOptions, recognise
from workers.importing.importer import ImportRequest, import_checkpoint
from workers.models import LoadedModel, SessionCache, load
from workers.models.exporting import export
from workers.models.exporting.source import ExportOptions
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory
from workers.text import Session


def trajectory(*said: tuple[str, str]) -> Trajectory:
    steps = tuple(Step(source=source, message=(Part(text=text),)) for source, text in said)  # type: ignore[arg-type]
    return Trajectory(steps=steps, task=Task(id="t"))


SOLUTION = trajectory(("user", TASK), *(("agent", step) for step in STEPS))


def imported(source: Path, folder: Path, **options: Any) -> LoadedModel:
    checkpoint = Checkpoint(source)
    given = ImportOptions.parse(options)
    found = recognise(checkpoint, given)
    import_checkpoint(checkpoint, found, folder, ImportRequest(checkpoint=source, options=given))
    return load(folder)


def step_rewards(model: LoadedModel, of: Trajectory = SOLUTION) -> list[float]:
    (score,) = model.score([model.render(of)])
    return list(score.step_rewards)


def token_classifier_rewards(folder: Path, *, good: int = 1) -> list[float]:
    """As TRL's PRMTrainer tokenises: bos, the prompt, and every step with the separator's ids behind it."""
    made = AutoTokenizer.from_pretrained(folder)
    ids = [made.bos_token_id, *made.encode(TASK, add_special_tokens=False)]
    places = []
    for step in STEPS:
        ids += made.encode(step, add_special_tokens=False) + made.encode("\n", add_special_tokens=False)
        places.append(len(ids) - 1)
    model = AutoModelForTokenClassification.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        chances = model(input_ids=torch.tensor([ids])).logits[0, places].softmax(-1)
    found: list[float] = chances[:, good].tolist()
    return found


@pytest.mark.parametrize("name", ["qwen2", "llama", "gpt2"])
def test_token_classifier(tmp_path, name: str) -> None:
    source = save_token_classifier(tmp_path / "source", name)
    model = imported(source, tmp_path / "model")
    wanted = token_classifier_rewards(source)
    assert step_rewards(model) == pytest.approx(wanted, abs=1e-5)
    (score,) = model.score([model.render(SOLUTION)])
    assert score.raw == pytest.approx(min(wanted), abs=1e-5)
    assert [labels["good"] for labels in score.labels] == pytest.approx(wanted, abs=1e-5)
    assert model.manifest["imported"]["check"]["largest_difference"] < 1e-5


def test_process_classifier(tmp_path) -> None:
    source = save_process_classifier(tmp_path / "source")
    model = imported(source, tmp_path / "model")
    answer = "".join(f"{step}{SEPARATOR}" for step in STEPS)
    system = {"role": "system", "content": "Think."}
    chat = [system, {"role": "user", "content": TASK}, {"role": "assistant", "content": answer}]
    wanted = process_classifier_rewards(source, chat)
    said = trajectory(("system", "Think."), *((step.source, step.text) for step in SOLUTION.steps))
    assert step_rewards(model, said) == pytest.approx(wanted, abs=1e-5)
    (score,) = model.score([model.render(said)])
    assert score.raw == pytest.approx(wanted[0] * wanted[1] * wanted[2], abs=1e-5)
    assert "auto_map" not in json.loads((tmp_path / "model" / "config.json").read_text())
    # the user speaks between two steps: each message of the assistant ends with the separator
    chat = [
        {"role": "user", "content": TASK},
        {"role": "assistant", "content": STEPS[0] + SEPARATOR},
        {"role": "user", "content": "And?"},
        {"role": "assistant", "content": STEPS[1] + SEPARATOR},
    ]
    spoken = trajectory(("user", TASK), ("agent", STEPS[0]), ("user", "And?"), ("agent", STEPS[1]))
    assert step_rewards(model, spoken) == pytest.approx(process_classifier_rewards(source, chat), abs=1e-5)


def test_value_head(tmp_path) -> None:
    source = save_value_head(tmp_path / "source")
    wanted = value_head_rewards(source, TASK, STEPS)
    assert step_rewards(imported(source, tmp_path / "model")) == pytest.approx(wanted, abs=1e-5)
    odds = imported(source, tmp_path / "odds", step_value="logit", aggregation="last")
    (score,) = odds.score([odds.render(SOLUTION)])
    logits = torch.tensor(wanted, dtype=torch.double).logit()
    assert list(score.step_rewards) == pytest.approx(logits.tolist(), abs=1e-4)
    assert score.raw == pytest.approx(float(logits[-1]), abs=1e-4)


def test_step_tag_in_plain_text(tmp_path) -> None:
    """Math-Shepherd: `tokenizer.encode(f"{question} {output}")`, read wherever the id of the tag stands."""
    source = save_step_tag(tmp_path / "source", template=None)
    model = imported(source, tmp_path / "model", type="step-tag", step_token="good", good_label="+")
    made = AutoTokenizer.from_pretrained(source)
    output = "\n".join(f"Step {number}: {step} good" for number, step in enumerate(STEPS, 1))
    # the tag is a part of the text as well; the model's own code would be misled by it, so it is broken up
    ids = [made.bos_token_id, *made.encode(f"{TASK} {output}".replace("is good. ", "is g ood. "))]
    tag = made.encode(" good")[-1:]
    places = [place for place, id_ in enumerate(ids) if [id_] == tag]
    words = made.encode("+ -")[0], made.encode("+ -")[-1]
    assert len(places) == len(STEPS)
    assert step_rewards(model) == pytest.approx(causal_chances(source, ids, places, words), abs=1e-5)


def test_step_tag_as_answers(tmp_path) -> None:
    """RLHFlow: a growing conversation whose steps are answered by +, read before that answer."""
    source = save_step_tag(tmp_path / "source")
    model = imported(source, tmp_path / "model", type="step-tag", step_layout="turns")
    made = AutoTokenizer.from_pretrained(source)
    words = made.encode("+")[-1], made.encode("-")[-1]
    chat: list[dict[str, str]] = []
    wanted = []
    for place, step in enumerate(STEPS):
        chat.append({"role": "user", "content": f"{TASK} {step}" if not place else step})
        text = made.apply_chat_template([*chat, {"role": "assistant", "content": ""}], tokenize=False)
        ids = made.encode(text[: text.rindex("<|im_end|>")])
        wanted += causal_chances(source, ids, [len(ids) - 1], words)
        chat.append({"role": "assistant", "content": "+"})
    assert step_rewards(model) == pytest.approx(wanted, abs=1e-5)


def test_what_an_agent_does_is_text_of_its_step(tmp_path) -> None:
    """A call is part of the step, its result a message of the user; an agent cannot write the separator."""
    source = save_process_classifier(tmp_path / "source")
    model = imported(source, tmp_path / "model")
    call = Step(
        source="agent",
        reasoning="Let me look.",
        tool_calls=(ToolCall(name="find", arguments={"order": 17}, id="c"),),
        observation=(ObservationResult(content=(Part(text="sent"),), call_id="c"),),
    )
    last = Step(source="agent", message=(Part(text=f"It was sent.{SEPARATOR}"),))
    first = Step(source="user", message=(Part(text=TASK),))
    acted = Trajectory(steps=(first, call, last), task=Task(id="t"))
    tokens = model.render(acted)
    text = AutoTokenizer.from_pretrained(source).decode(tokens.ids)
    thought = '<think>\nLet me look.\n</think>\n\n\nfind({"order": 17})'
    assert text == (
        f"<|im_start|>user\n{TASK}<|im_end|>\n<|im_start|>assistant\n{thought}{SEPARATOR}<|im_end|>\n"
        f"<|im_start|>user\nsent<|im_end|>\n<|im_start|>assistant\nIt was sent.< extra_0>{SEPARATOR}"
    )
    assert [tokens.ids[read] for read in tokens.reads] == [
        AutoTokenizer.from_pretrained(source).encode(SEPARATOR)[0]
    ] * 2
    assert not model.rewrites


def test_a_growing_trajectory_costs_its_new_tokens(tmp_path) -> None:
    model = imported(save_process_classifier(tmp_path / "source"), tmp_path / "model")
    cache = SessionCache(2**24).within()
    for end in (2, 3, 4):
        grown = Trajectory(steps=SOLUTION.steps[:end], task=Task(id="t"))
        (score,) = model.score([model.render(grown, session=Session("p", "s"))], cache=cache)
        assert list(score.step_rewards) == pytest.approx(step_rewards(model, grown), abs=1e-5)
    assert score.cached_tokens > score.tokens / 2
    long = trajectory(("user", TASK), *(("agent", step) for step in STEPS * 3))
    short = imported(tmp_path / "source", tmp_path / "short", max_tokens=64)
    (cut,) = short.score([short.render(long)])
    assert cut.truncated and cut.tokens <= 64 and cut.step_rewards[-1] > 0
    assert cut.labels[cut.dropped[0]] is None and cut.step_rewards[cut.dropped[0]] == 0


def drop(folder: Path, *names: str, **more: torch.Tensor) -> None:
    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if name not in names}
    save_file(kept | more, folder / "model.safetensors", metadata={"format": "pt"})


def test_heads_that_do_not_fit_are_named(tmp_path) -> None:
    source = save_process_classifier(tmp_path / "source")
    drop(source, "score.2.bias", **{"score.4.weight": torch.zeros(2, 32)})
    with pytest.raises(RewardError, match=r"missing: score\.2\.bias; unexpected: score\.4\.weight"):
        recognise(Checkpoint(source), ImportOptions())
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(
        json.dumps(config | {"architectures": ["BertForTokenClassification"], "model_type": "bert"})
    )
    with pytest.raises(RewardError, match="reads in both directions"):
        recognise(Checkpoint(source), ImportOptions())


@pytest.mark.parametrize(
    ("labels", "options", "words"),
    [
        ({0: "a", 1: "b"}, {}, "which one is a good step cannot be told"),
        ({0: "a", 1: "b"}, {"good_label": "c"}, "is no class of the model; it has a, b"),
        ({0: "a", 1: "b", 2: "good"}, {}, "which one is a bad step cannot be told"),
        ({0: "bad", 1: "good"}, {"step_value": "odds"}, "known are probability, logit"),
        ({0: "bad", 1: "good"}, {"aggregation": "sum"}, "known are min, mean, product, last"),
        (
            {0: "bad", 1: "good"},
            {"label": "good"},
            "label means nothing to a model of the type token-classifier",
        ),
    ],
)
def test_options_that_cannot_be_used(tmp_path, labels, options, words) -> None:
    source = save_token_classifier(tmp_path / "source", labels=labels)
    with pytest.raises(RewardError, match=words) as caught:
        recognise(Checkpoint(source), ImportOptions.parse(options))
    assert caught.value.pointer is not None and caught.value.pointer.startswith("/options/")


def test_the_good_class_and_the_separator_can_be_named(tmp_path) -> None:
    source = save_token_classifier(tmp_path / "source", labels={0: "sent", 1: "lost", 2: "bad"})
    found = recognise(Checkpoint(source), ImportOptions(good_label="sent", step_token="\\n"))
    assert found.labels == ("good", "lost", "bad")
    assert not any("PRMTrainer" in note for note in found.notes)
    model = imported(source, tmp_path / "model", good_label="sent")
    assert step_rewards(model) == pytest.approx(token_classifier_rewards(source, good=0), abs=1e-5)
    (score,) = model.score([model.render(SOLUTION)])
    assert set(score.labels[0]) == {"good", "bad", "lost"}


def test_a_tag_has_to_be_named(tmp_path) -> None:
    source = save_step_tag(tmp_path / "source")
    with pytest.raises(RewardError, match="not recognised as a reward model"):
        recognise(Checkpoint(source), ImportOptions())
    with pytest.raises(RewardError, match="name the tag that stands after each step") as caught:
        recognise(Checkpoint(source), ImportOptions(type="step-tag"))
    assert caught.value.pointer == "/options/step_token"


def log_ratios(policy: Path, reference: Path, ids: list[int]) -> torch.Tensor:
    """[tokens - 1], as transformers' causal models give them."""
    found = []
    for folder in (policy, reference):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
        found.append(logits.gather(-1, torch.tensor(ids[1:]).unsqueeze(-1)).squeeze(-1))
    return found[0] - found[1]


@pytest.mark.parametrize("name", ["qwen2", "gemma2-window"])
def test_implicit_rewards(tmp_path, name: str) -> None:
    """Of what the agent wrote, its end-of-turn mark included, and of nothing that it was told."""
    policy = save_decoder(tmp_path / "policy", name)
    torch.manual_seed(8)
    config = AutoModelForCausalLM.from_pretrained(policy).config
    reference = tmp_path / "reference"
    AutoModelForCausalLM.from_config(config).save_pretrained(reference)
    tokenizer().save_pretrained(reference)
    model = imported(
        policy,
        tmp_path / "model",
        type="implicit-process",
        reference=str(reference),
        beta=0.5,
        max_tokens=300,
    )
    spoken = trajectory(("user", TASK), ("agent", STEPS[0]), ("user", "And?"), ("agent", STEPS[2]))
    made = AutoTokenizer.from_pretrained(policy)
    ids: list[int] = []
    spans = []
    for step in spoken.steps:
        role = "assistant" if step.source == "agent" else "user"
        ids += made.encode(f"<|im_start|>{role}\n", add_special_tokens=False)
        start = len(ids)
        ids += made.encode(f"{step.text}<|im_end|>", add_special_tokens=False)
        spans += [(start, len(ids))] * (role == "assistant")
        ids += made.encode("\n", add_special_tokens=False)
    ratios = log_ratios(policy, reference, ids)
    wanted = [0.5 * float(ratios[start - 1 : end - 1].sum()) for start, end in spans]
    (score,) = model.score([model.render(spoken)])
    rendered = model.render(spoken)
    assert list(rendered.ids) == ids[: spans[-1][1]] and list(rendered.spans) == spans
    assert list(score.step_rewards) == pytest.approx(wanted, abs=1e-5)
    assert score.raw == pytest.approx(sum(wanted), abs=1e-5)
    assert model.manifest["imported"]["check"]["largest_difference"] < 1e-4
    other = trajectory(("user", TASK), ("agent", STEPS[1]))
    both = model.score([model.render(other), model.render(spoken)])
    assert list(both[1].step_rewards) == pytest.approx(wanted, abs=1e-5)


def test_implicit_rewards_need_a_reference_of_the_same_words(tmp_path) -> None:
    policy = save_decoder(tmp_path / "policy", "qwen2")
    with pytest.raises(RewardError, match="name the folder of the one"):
        recognise(Checkpoint(policy), ImportOptions(type="implicit-process"))
    other = save_decoder(tmp_path / "other", "qwen2")
    step_tokenizer(separator=SEPARATOR).save_pretrained(other)
    with pytest.raises(RewardError, match="another vocabulary"):
        recognise(Checkpoint(policy), ImportOptions(type="implicit-process", reference=str(other)))


def test_what_came_in_goes_out(tmp_path) -> None:
    """Value heads keep their tensors' names; a policy and its reference are two folders that transformers loads."""
    source = save_value_head(tmp_path / "skywork")
    imported(source, tmp_path / "value-head")
    usage = export(tmp_path / "value-head", "transformers", tmp_path / "out", ExportOptions())
    assert "with a value head" in usage.checked
    out = load_file(tmp_path / "out" / "model.safetensors")
    assert out.keys() == load_file(source / "model.safetensors").keys()
    wanted = value_head_rewards(source, TASK, STEPS)
    assert value_head_rewards(tmp_path / "out", TASK, STEPS) == pytest.approx(wanted, abs=1e-6)
    policy, reference = save_decoder(tmp_path / "policy"), save_decoder(tmp_path / "reference", seed=5)
    imported(policy, tmp_path / "implicit", type="implicit-process", reference=str(reference))
    export(tmp_path / "implicit", "transformers", tmp_path / "both", ExportOptions())
    ids = [20, 21, 22, 23]
    before = log_ratios(policy, reference, ids)
    assert torch.equal(log_ratios(tmp_path / "both" / "policy", tmp_path / "both" / "reference", ids), before)

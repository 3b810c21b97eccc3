"""Corrections of steps for trainers of policies: step pairs, and trajectories that end with the correction."""

import copy
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.annotation.feedback.services import import_feedback
from apps.datasets.exports import EXPORTS
from apps.datasets.models import DatasetVersion
from tests.datasets.feedback import freeze

TOOLS = [
    {"type": "function", "function": {"name": name, "description": "", "parameters": {"type": "object"}}}
    for name in ("find", "book")
]
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>"
    "{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}"
    "{% for c in m.get('tool_calls') or [] %} {{ c['function']['name'] }}{% endfor %}<|end|>{% endgeneration %}"
    "{% else %}{{ m['content'] }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CALL = {"text": "I look it up.", "tool_calls": [{"name": "find", "arguments": {"id": 7}}]}


def trajectory(*answers: str) -> dict[str, Any]:
    steps = [
        {"step_id": 2 + place, "source": "agent", "message": text, "reasoning_content": "Hm."}
        for place, text in enumerate(answers)
    ]
    return {
        "trajectory": {
            "schema_version": "ATIF-v1.7",
            "session_id": answers[0],
            "agent": {"name": "fox", "version": "1", "tool_definitions": TOOLS},
            "steps": [{"step_id": 1, "source": "user", "message": "Where is 7?"}, *steps],
        }
    }


def steps(task: str, annotator: str = "ann", **said: Any) -> dict[str, Any]:
    return {"task": {"id": task}, "annotator": annotator} | said


@pytest.fixture
def corrected(project: Project) -> DatasetVersion:
    first = trajectory("Hello.", "No idea.", "Bye.")
    records = [
        steps("a", trajectory=first, labels={"0": "good", "1": "bad", "2": "bad"},
              corrections={"1": CALL, "2": "Anything else?"}),
        steps("a", "ben", trajectory=first, first_error=1, corrections={"1": CALL}),
        steps("b", trajectory=trajectory("It is lost."), labels={"0": "bad"}, corrections={"0": "It comes."}),
        steps("c", trajectory=trajectory("Yes."), labels={"0": "good"}),
        steps("d", trajectory=trajectory("Fine."), labels={"0": "good"}, corrections={"0": "Better."}),
    ]  # fmt: skip
    stream = io.BytesIO("".join(json.dumps(record) + "\n" for record in records).encode())
    assert not import_feedback(project=project, stream=stream, format="steps", by=None).rejected
    return freeze(project)


def exported(version: DatasetVersion, format: str) -> tuple[list[dict[str, Any]], dict[str, int]]:
    left_out: Counter[str] = Counter()
    rows = [json.loads(line) for line in EXPORTS[format](version, None, left_out)]
    known = {"trajectory": int, "tools": list}
    assert all(isinstance(row.pop(key), type_) for row in rows for key, type_ in known.items())
    return sorted(rows, key=lambda row: (row["task"], row["agent_step"])), dict(+left_out)


ASK = {"role": "user", "content": "Where is 7?"}
HELLO = {"role": "assistant", "content": "Hello.", "reasoning_content": "Hm."}
CALLED = {
    "role": "assistant",
    "content": "I look it up.",
    "tool_calls": [{"type": "function", "function": {"name": "find", "arguments": {"id": 7}}}],
}


def agent(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def about(task: str, step: int) -> dict[str, Any]:
    return {"task": task, "agent_step": step, "origin": "imported"}


def test_a_step_pair_is_one_step_against_another(corrected: DatasetVersion) -> None:
    rows, left_out = exported(corrected, "trl-step-pairs")
    said = {"role": "assistant", "content": "No idea.", "reasoning_content": "Hm."}
    assert rows == [
        {"prompt": [ASK, HELLO], "chosen": [CALLED], "rejected": [agent("No idea.")]} | about("a", 1),
        {"prompt": [ASK, HELLO, said], "chosen": [agent("Anything else?")], "rejected": [agent("Bye.")]}
        | about("a", 2),
        {"prompt": [ASK], "chosen": [agent("It comes.")], "rejected": [agent("It is lost.")]} | about("b", 0),
        {"prompt": [ASK], "chosen": [agent("Better.")], "rejected": [agent("Fine.")]} | about("d", 0),
    ]
    assert left_out == {
        "step records without a correction": 1,
        "corrections that another record makes too": 1,
    }
    others, counted = exported(corrected, "openrlhf-step-pairs")
    renamed = [{key.removesuffix("_messages"): value for key, value in row.items()} for row in others]
    assert (renamed, counted) == (rows, left_out)
    assert all("prompt_messages" in row for row in others)


def test_a_revised_trajectory_ends_with_the_correction_of_the_first_error(corrected: DatasetVersion) -> None:
    rows, left_out = exported(corrected, "trl-sft-revised")
    assert rows == [
        {"prompt": [ASK], "completion": [HELLO, CALLED]} | about("a", 1),
        {"prompt": [ASK], "completion": [agent("It comes.")]} | about("b", 0),
    ]
    assert left_out == {
        "step records without a correction": 1,
        "corrections after the first error": 1,
        "corrections that another record makes too": 1,
        "corrections in trajectories without an error": 1,
    }
    others, counted = exported(corrected, "openrlhf-sft-revised")
    whole = [row.pop("prompt") + row.pop("completion") for row in rows]
    joined = [row | {"messages": messages} for row, messages in zip(rows, whole, strict=True)]
    assert (others, counted) == (joined, left_out)


@pytest.fixture
def tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {letter: code for code, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    fast = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=fast, eos_token="<|end|>", pad_token="<|pad|>")
    made.chat_template = TEMPLATE
    return made


def loaded(version: DatasetVersion, format: str, folder: Path) -> Any:
    """As `datasets` reads the file."""
    import datasets

    path = folder / f"{format}.jsonl"
    path.write_text("".join(EXPORTS[format](version, None, Counter())), encoding="utf-8")
    found = datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(folder / "cache")
    )
    return found.sort(["task", "agent_step"])


def small_model(tokenizer: Any) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=512)
    return GPT2LMHeadModel(config)


def texts(tokenizer: Any, batch: Any, labels: list[list[bool]]) -> list[str]:
    return [
        tokenizer.decode([int(token) for token, keep in zip(row, kept, strict=True) if keep])
        for row, kept in zip(batch["input_ids"].tolist(), labels, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning", "ignore::DeprecationWarning")
class TestTRL:
    """TRL's own trainers read the files, and train on exactly what was written."""

    def test_the_trainer_of_preferences_reads_step_pairs(
        self, corrected: DatasetVersion, tokenizer: Any, tmp_path: Path
    ) -> None:
        from trl import DPOConfig, DPOTrainer

        rows = loaded(corrected, "trl-step-pairs", tmp_path)
        config = DPOConfig(
            output_dir=str(tmp_path), report_to=[], use_cpu=True, max_length=None, max_steps=1,
            per_device_train_batch_size=4,
        )  # fmt: skip
        model = small_model(tokenizer)
        trainer = DPOTrainer(
            model=model,
            ref_model=copy.deepcopy(model),
            args=config,
            train_dataset=rows,
            processing_class=tokenizer,
        )
        batch = trainer.data_collator([*trainer.train_dataset])
        seen = texts(tokenizer, batch, batch["completion_mask"].bool().tolist())
        assert seen[:4] == [
            "I look it up. find<|end|>",
            "Anything else?<|end|>",
            "It comes.<|end|>",
            "Better.<|end|>",
        ]
        assert seen[4:] == ["No idea.<|end|>", "Bye.<|end|>", "It is lost.<|end|>", "Fine.<|end|>"]
        assert trainer.train().training_loss == pytest.approx(0.693, abs=0.01)

    def test_the_trainer_of_demonstrations_reads_revised_trajectories(
        self, corrected: DatasetVersion, tokenizer: Any, tmp_path: Path
    ) -> None:
        from trl import SFTConfig, SFTTrainer

        rows = loaded(corrected, "trl-sft-revised", tmp_path)
        config = SFTConfig(
            output_dir=str(tmp_path), report_to=[], use_cpu=True, assistant_only_loss=True, max_length=None,
            max_steps=1,
        )  # fmt: skip
        model = small_model(tokenizer)
        trainer = SFTTrainer(model=model, args=config, train_dataset=rows, processing_class=tokenizer)
        batch = trainer.data_collator([*trainer.train_dataset])
        seen = texts(tokenizer, batch, [[label != -100 for label in row] for row in batch["labels"].tolist()])
        assert seen == ["Hello.<|end|>I look it up. find<|end|>", "It comes.<|end|>"]
        assert trainer.train().training_loss > 0

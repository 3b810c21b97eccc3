"""Ratings and step labels go out to those who train on them; the peers' own trainers take the files."""

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps.accounts.models import Project
from apps.annotation.feedback.services import import_feedback
from apps.datasets.exports import EXPORTS
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.datasets.test_exports import with_tools

ASKED = {"role": "user", "content": "Where is it?"}
LOOK = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"order": 7}'}}
RUN = {
    "messages": [
        ASKED,
        {"role": "assistant", "content": None, "tool_calls": [LOOK]},
        {"role": "tool", "tool_call_id": "1", "content": "lost"},
        {"role": "assistant", "content": "It is lost."},
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "A refund."},
    ]
}
OF = {"task": {"id": "x"}, "trajectory": RUN, "annotator": "ann"}
STEPS = [
    'assistant: find({"order": 7})',
    "tool: lost\n\nassistant: It is lost.",
    "user: And now?\n\nassistant: A refund.",
]


def load(project: Project, format: str, *records: dict[str, Any]) -> None:
    stream = io.BytesIO("".join(json.dumps(OF | record) + "\n" for record in records).encode())
    result = import_feedback(project=project, stream=stream, format=format, by=None)
    assert not result.rejected, result.rejected


def rows(project: Project, format: str) -> list[dict[str, Any]]:
    """Without the records, which are for imports."""
    found = [json.loads(line) for line in EXPORTS[format](freeze(project), None, Counter())]
    return [{key: value for key, value in row.items() if key != "record"} for row in found]


@pytest.mark.parametrize(
    ("said", "completions", "labels"),
    [
        ({"labels": {"0": "good", "1": "neutral", "2": "bad"}}, 3, [True, True, False]),
        ({"labels": {"0": "good", "2": "bad"}}, 1, [True]),
        ({"first_error": 1}, 2, [True, False]),
        ({"first_error": 0}, 1, [False]),
        ({"first_error": None}, 3, [True, True, True]),
    ],
)
def test_steps_end_where_nothing_is_known(
    project: Project, said: dict[str, Any], completions: int, labels: list[bool]
) -> None:
    load(project, "steps", said)
    assert rows(project, "trl-stepwise") == [
        {"prompt": "Where is it?", "completions": STEPS[:completions], "labels": labels, "origin": "imported"}
    ]


def test_a_run_whose_first_step_is_unknown_says_nothing(project: Project) -> None:
    load(project, "steps", {"labels": {"1": "good"}})
    assert rows(project, "trl-stepwise") == []


def test_thumbs_of_ratings_and_of_unpaired_comparisons(project: Project) -> None:
    load(project, "ratings", {"accept": False}, {"rating": 4, "scale": [1, 5], "annotator": "ben"})
    load(project, "ratings", {"rating": 3, "scale": [1, 5], "annotator": "cleo"})  # the middle
    import_pairs(project, [pair("y"), pair("z", choice="both_bad"), pair("w", choice="tie")])
    found = rows(project, "trl-unpaired")
    of_ratings = [row for row in found if row["prompt"][0]["content"] == "Where is it?"]
    assert [row["label"] for row in of_ratings] == [False, True]
    assert [message["role"] for message in of_ratings[0]["completion"]] == [
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    of_pairs = [
        (row["completion"][0]["content"].split()[0], row["label"]) for row in found if row not in of_ratings
    ]
    assert sorted(of_pairs) == [("Gladly:", False), ("Gladly:", True), ("No.", False), ("No.", False)]


def test_what_was_said_of_one_run_comes_in_the_order_it_was_imported(project: Project) -> None:
    said = [place % 3 == 0 for place in range(12)]
    load(project, "ratings", *({"accept": row, "annotator": f"ann-{n}"} for n, row in enumerate(said)))
    assert [row["label"] for row in rows(project, "trl-unpaired")] == said


def test_openrlhf_has_whole_conversations(project: Project) -> None:
    import_pairs(project, [pair("x", choice="b", strength=3)])
    (row,) = rows(project, "openrlhf")
    assert [message["role"] for message in row["chosen"]] == ["user", "assistant"] and row["margin"] == 1.0
    assert row["chosen"][1]["content"].startswith("No.") and row["rejected"][1]["content"].startswith(
        "Gladly"
    )


def test_rewardbench_has_texts(project: Project) -> None:
    import_pairs(project, [with_tools("x"), pair("y", choice="tie")])
    (row,) = rows(project, "rewardbench")
    assert (row["id"], row["subset"], row["chosen"], row["rejected"]) == (
        0,
        "first",
        "It comes.",
        "It is lost.",
    )
    assert row["prompt"] == 'user: Where is it?\n\nassistant: find({"order": 7})\n\ntool: lost'


@pytest.fixture
def files(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Every format as its peer loads it; tool calls come late in the feedback."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    import_pairs(project, [pair(f"x{n}", strength=1 + n % 3) for n in range(20)] + [with_tools("late")])
    load(project, "steps", {"labels": {"0": "good", "1": "bad"}})
    load(project, "ratings", {"accept": True})
    freeze(project)
    loaded = {}
    for name in ("trl", "trl-unpaired", "trl-stepwise", "openrlhf", "rewardbench"):
        path = tmp_path / f"{name}.jsonl"
        call_command("export_dataset", "desk/first", "--format", name, "--out", str(path))
        loaded[name] = datasets.load_dataset(
            "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"), chunksize=2000
        )
    return loaded


@pytest.mark.slow
# Of the trainers among themselves.
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_datasets_and_the_trainers_take_them(files: dict[str, Any], tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2ForSequenceClassification, GPT2LMHeadModel
    from trl import KTOConfig, KTOTrainer, RewardConfig, RewardTrainer

    counts = {name: len(rows) for name, rows in files.items()}
    assert counts == {"trl": 21, "trl-unpaired": 43, "trl-stepwise": 1, "openrlhf": 21, "rewardbench": 21}
    step = files["trl-stepwise"][0]
    assert len(step["completions"]) == len(step["labels"]) == 2 and step["labels"] == [True, False]

    tokenizer = _tokenizer()
    config = GPT2Config(
        vocab_size=64, n_embd=8, n_layer=1, n_head=1, n_positions=512, num_labels=1, pad_token_id=0
    )
    common = {"output_dir": str(tmp_path), "report_to": [], "use_cpu": True, "per_device_train_batch_size": 4}
    # OpenRLHF's columns, as some messages have calls.
    names = {"chosen_messages": "chosen", "rejected_messages": "rejected"}
    files["openrlhf"] = files["openrlhf"].rename_columns(names)
    for name in ("trl", "openrlhf"):
        reward = RewardTrainer(
            model=GPT2ForSequenceClassification(config), args=RewardConfig(**common), train_dataset=files[name],
            processing_class=tokenizer,
        )  # fmt: skip
        assert len(reward.train_dataset) == 21, name
        batch = next(iter(reward.get_train_dataloader()))
        assert "margin" in batch and reward.compute_loss(reward.model, batch).isfinite()
    kto = KTOTrainer(
        model=GPT2LMHeadModel(config), ref_model=GPT2LMHeadModel(config), args=KTOConfig(**common),
        train_dataset=files["trl-unpaired"], processing_class=tokenizer,
    )  # fmt: skip
    assert len(kto.train_dataset) == 43
    assert set(next(iter(kto.get_train_dataloader()))["label"].tolist()) <= {True, False}


def _tokenizer() -> Any:
    """A small one that knows some words, with a chat template that writes calls out."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<eos>", "<unk>", "user", "assistant", "tool", "is", "it", "help", "me", "with", "done"]
    fast = Tokenizer(models.WordLevel({word: code for code, word in enumerate(words)}, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(
        tokenizer_object=fast, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    made.chat_template = (
        "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} "
        "{% for c in m.get('tool_calls') or [] %}{{ c['function']['name'] }} {% endfor %}{% endfor %}"
        "{% if add_generation_prompt %}assistant {% endif %}"
    )
    return made

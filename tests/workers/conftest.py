"""A tiny random encoder, and trajectories to train on, made on the spot."""

import json
import string
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import BertConfig, BertModel

from workers.evaluate.learned_baselines import BaselineScores
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory, write_records
from workers.schema.recipe import Recipe, recipe_to_dict

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [
    "good",
    "bad",
    "fine",
    "poor",
    "the",
    "order",
    "was",
    "sent",
    "lost",
    "refund",
    "yes",
    "no",
    "hello",
]


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory) -> Path:
    """A BERT of 2 layers and 32 dimensions with a word-piece tokenizer."""
    folder = tmp_path_factory.mktemp("encoder")
    letters = string.ascii_lowercase + string.digits + string.punctuation
    pieces = [*_SPECIAL, *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def with_linear_baseline() -> None:
    """For tests that look at the linear models which a report names next to the trained one."""


@pytest.fixture(autouse=True)
def without_linear_baseline(request, monkeypatch) -> None:
    """Fitting them takes as long as a tiny training, and most tests of trainings look at none."""
    if "with_linear_baseline" not in request.fixturenames:
        monkeypatch.setattr(
            "workers.train.baselines.linear_scores", lambda *given, **options: BaselineScores()
        )


@pytest.fixture
def tiny_recipe(tiny_encoder) -> Recipe:
    return Recipe(
        encoder=str(tiny_encoder),
        chunk_tokens=16,
        max_tokens=256,
        width=16,
        attention_heads=2,
        epochs=4,
        batch_pairs=4,
        learning_rate=5e-3,
        encoder_learning_rate=1e-3,
        precision="float32",
        patience=0,
        warmup=0.0,
    )


def said(source: str, text: str) -> Step:
    return Step(source=source, message=(Part(text=text),))


def trajectory(answer: str, *, task: str = "t", question: str = "hello the order") -> Trajectory:
    return Trajectory(steps=(said("user", question), said("agent", answer)), task=Task(id=task))


def preference(number: int, **fields) -> PreferenceRecord:
    """The better one says good, the worse one bad; task t0, t1, ..."""
    good, bad = (
        trajectory(f"{word} {'sent ' * (number % 5)}", task=f"t{number}") for word in ("good", "bad")
    )
    a, b = (good, bad) if number % 2 else (bad, good)
    values = {"annotator": "ann", "choice": "a" if number % 2 else "b"} | fields
    return PreferenceRecord(a=a, b=b, **values)


@pytest.fixture
def preferences() -> list[PreferenceRecord]:
    return [preference(number) for number in range(24)]


@pytest.fixture
def run_directory(tmp_path, tiny_recipe, preferences):
    """make(recipe, splits) -> a run directory; by default half of the preferences to train on, a quarter each else."""

    def make(recipe: Recipe = tiny_recipe, splits=None, **config) -> Path:
        folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        (folder / "data").mkdir(parents=True)
        default = {"train": preferences[:12], "validation": preferences[12:18], "test": preferences[18:]}
        for split, records in (splits or default).items():
            write_records(folder / "data" / f"{split}.jsonl.zst", records)
        values = {
            "recipe": recipe_to_dict(recipe),
            "seed": 1,
            "device": "cpu",
            "budget": {"seconds": None},
            "attempt": 1,
            "snapshot": {"name": "p/d@1", "hash": "h"},
        }
        (folder / "config.json").write_text(json.dumps(values | config))
        return folder

    return make


@pytest.fixture
def make_trajectory():
    return trajectory


@pytest.fixture
def make_preference():
    return preference

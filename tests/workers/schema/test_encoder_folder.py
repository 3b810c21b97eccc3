"""What a folder of an encoder says of itself, without torch; and what a recipe makes of its size."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from workers.errors import RewardError
from workers.schema.encoder_folder import EncoderReading, position_limit, read_encoder_folder
from workers.schema.encoder_recipes import encoder_defaults, estimate_encoder
from workers.schema.recipe import parse_recipe
from workers.schema.recipe_keys import parse_new_recipe

CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
MODULES = "sentence_transformers.models."


def weights(path: Path, rows: int) -> None:
    """A header alone, of a matrix of 8 columns: no one reads further."""
    tensor = {"dtype": "F32", "shape": [rows, 8], "data_offsets": [0, 32 * rows]}
    header = json.dumps({"embeddings.weight": tensor, "__metadata__": {"format": "pt"}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)


def encoder_in(folder: Path, *, rows: int = 100, modules: Any = None, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    (folder / "tokenizer.json").write_text("{}")
    weights(folder / "model.safetensors", rows)
    if modules is not None:
        listed = [
            {"idx": place, "path": path, "type": MODULES + kind} for place, (kind, path) in enumerate(modules)
        ]
        (folder / "modules.json").write_text(json.dumps(listed))
        for _, path in modules[1:]:
            (folder / path).mkdir(exist_ok=True)
            (folder / path / "config.json").write_text("{}")
    return folder


POOLED = [("Transformer", ""), ("Pooling", "1_Pooling")]


def test_what_is_said_of_a_folder(tmp_path: Path) -> None:
    """Pooling as earlier versions wrote it, from the file, or the mean."""
    plain = read_encoder_folder(encoder_in(tmp_path / "plain"))
    assert plain.summary == "BertModel, 0.0 M parameters: mean pooling, 8 numbers, at most 64 tokens."
    assert (plain.parameters, plain.reading) == (800, EncoderReading())
    folder = encoder_in(tmp_path / "written", modules=[*POOLED, ("Normalize", "2_Normalize")])
    (folder / "1_Pooling/config.json").write_text(
        '{"pooling_mode_cls_token": true, "pooling_mode_lasttoken": true}'
    )
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 32, "do_lower_case": true}')
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query"})
    )
    written = read_encoder_folder(folder)
    assert (written.reading.pooling, written.longest, written.embedding_size) == (
        ("cls", "lasttoken"),
        32,
        16,
    )
    assert (written.reading.prompt, written.reading.lower_case, written.reading.is_plain) == (
        "query: ",
        True,
        False,
    )
    assert written.reading.with_prompt("passage: ").prompt == "passage: "
    assert "prompts query, default prompt 'query: '" in written.summary


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512}, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "mpnet", "max_position_embeddings": 514}, 512),
        ({"model_type": "bert", "max_position_embeddings": -1}, None),
    ],
)
def test_the_longest_input(config: dict[str, Any], expected: int | None) -> None:
    assert position_limit(config) == expected


def without(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink()


@pytest.mark.parametrize(
    ("values", "removed", "written", "message"),
    [
        ({}, ["config.json"], [], r"has no config\.json; give 'embedded', or a folder"),
        ({}, ["tokenizer.json"], [], r"has no tokenizer\.json; convert its tokenizer: AutoTokenizer\.from_pretrained"),
        ({}, ["model.safetensors"], ["pytorch_model.bin"], r"has pickled weights .*AutoModel\.from_pretrained"),
        ({}, ["model.safetensors"], [], r"has no model\.safetensors; save_pretrained"),
        ({"model_type": "new", "auto_map": {"AutoModel": "x.py"}}, [], [], r"needs the code of its folder .*never run"),
        ({"model_type": "t5"}, [], [], r"has the model type 't5'; read as encoders are albert, bert"),
        ({"modules": [("Transformer", "../x")]}, [], [], r"names the module '\.\./x' outside of it"),
        ({"modules": [("StaticEmbedding", "")]}, [], [], r"begins with the module 'StaticEmbedding'"),
        ({"modules": [*POOLED, ("CNN", "2_CNN")]}, [], [], r"has the module 'CNN'; read here are Transformer"),
        ({"modules": [POOLED[0]]}, [], [], r"has no Pooling in modules\.json"),
        ({"modules": [*POOLED, ("Dense", "2_Dense")]}, [], ["2_Dense/pytorch_model.bin"], r"has no 2_Dense/model\.saf"),
    ],
)  # fmt: skip
def test_what_is_refused(
    tmp_path: Path, values: dict[str, Any], removed: list[str], written: list[str], message: str
) -> None:
    folder = encoder_in(tmp_path / "given", **values)
    without(folder, *removed)
    for name in written:
        (folder / name).write_bytes(b"x")
    with pytest.raises(RewardError, match=f"The encoder folder given {message}") as error:
        read_encoder_folder(folder)
    assert error.value.pointer == "/encoder"


def test_code_of_a_folder_is_not_needed_where_transformers_has_the_class(tmp_path: Path) -> None:
    folder = encoder_in(tmp_path / "nomic", model_type="nomic_bert", auto_map={"AutoModel": "x.py"})
    assert read_encoder_folder(folder).model_type == "nomic_bert"


def test_defaults_by_size(tmp_path: Path) -> None:
    small, base, large = (
        read_encoder_folder(encoder_in(tmp_path / str(rows), rows=rows, max_position_embeddings=512))
        for rows in (100, 13_000_000, 40_000_000)
    )
    assert encoder_defaults(small, {"unfrozen": True}) == encoder_defaults(large, {}) == {}
    assert encoder_defaults(base, {"unfrozen": True})["encoder_learning_rate"] == 2e-5
    found = encoder_defaults(large, {"unfrozen": True})
    assert found == {
        "encoder_learning_rate": 1e-5,
        "encoder_layer_decay": 0.9,
        "gradient_checkpointing": True,
    }
    assert parse_new_recipe({"unfrozen": True} | found).epochs == 3, (
        "and the schedule of an encoder that is trained"
    )
    assert encoder_defaults(large, {"backbone": "decoder", "unfrozen": True}) == {}
    short = read_encoder_folder(encoder_in(tmp_path / "short"))
    assert encoder_defaults(short, {"encoder_prompt": "query: "}) == {"chunk_tokens": 64 - 2 - len("query: ")}


def test_memory_by_hand(tmp_path: Path) -> None:
    encoder = read_encoder_folder(encoder_in(tmp_path / "given"))
    recipe = parse_recipe(
        {"unfrozen": True, "precision": "float32", "micro_tokens": 1000, "chunk_tokens": 64}
    )
    layer = 40 * 8 + 2 * 4 * 32 + 12 * 2 * 64
    expected = 1.1 * (16 * 800 + 1000 * (2 * layer + 3 * layer)) + 1e9
    assert estimate_encoder(encoder, recipe).memory == pytest.approx(expected)
    frozen = estimate_encoder(encoder, parse_recipe({"chunk_tokens": 64}))
    assert not frozen.trains and frozen.memory == pytest.approx(1.1 * (4 * 800 + 8192 * layer) + 1e9)

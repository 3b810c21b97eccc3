"""A decoder's artifact: it scores the same in transformers' own classifier, and nothing about it may change unseen."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tests.workers.decoders import CHATML, save_decoder
from workers.errors import RewardError
from workers.models import Lineage, LoadedModel, RewardModel, build, load, save
from workers.schema import Text, TokenIds
from workers.schema.recipe import Recipe, parse_recipe


@pytest.fixture
def made(tmp_path: Path):
    """make(name, tokens, ...) -> recipe of such a decoder."""

    def make(name: str = "llama", tokens: dict | None = None, **fields) -> Recipe:
        folder = save_decoder(tmp_path / f"base-{len(list(tmp_path.iterdir()))}", name, **(tokens or {}))
        values = {"backbone": "decoder", "decoder": str(folder), "max_tokens": 256, "lora_rank": 0}
        return parse_recipe(values | fields)

    return make


def store(model: RewardModel, recipe: Recipe, folder: Path) -> LoadedModel:
    reward = {"median": 0.0, "std": 1.0}
    save(model, folder, recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    return load(folder)


def raw(model: LoadedModel, *contents) -> list[float]:
    return [score.raw for score in model.score([model.render(content) for content in contents])]


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "gemma", "gpt2", "mistral-window"])
def test_transformers_own_classifier_scores_the_same(made, tmp_path, make_trajectory, name: str) -> None:
    recipe = made(name)
    torch.manual_seed(3)
    model = store(build(recipe), recipe, tmp_path / "model")
    peer = AutoModelForSequenceClassification.from_pretrained(tmp_path / "model").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    contents = [make_trajectory("good sent"), make_trajectory("bad lost refund " * 9)]
    texts = [
        tokenizer.apply_chat_template(
            [
                {"role": "user", "content": "hello the order"},
                {"role": "assistant", "content": content.steps[1].text},
            ],
            tokenize=False,
        )
        for content in contents
    ]
    batch = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
    with torch.no_grad():
        theirs = peer(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits.squeeze(-1)
    assert raw(model, *contents) == pytest.approx(theirs.tolist(), abs=1e-5)


def test_its_padding_is_no_token_that_is_scored(made, tmp_path) -> None:
    """A classifier reads at the last token that is no padding: with the end of a turn as padding, one before it."""
    recipe = made(tokens={"pad_token": "<|im_end|>", "eos_token": "<|im_end|>"})
    model = store(build(recipe), recipe, tmp_path / "model")
    pad = json.loads((tmp_path / "model" / "config.json").read_text())["pad_token_id"]
    assert pad is not None
    assert pad not in (model.renderer.tokenizer.eos_token_id, *model.renderer.closing_ids())
    peer = AutoModelForSequenceClassification.from_pretrained(tmp_path / "model").eval()
    closed = model.render(Text("the order<|im_end|>"))
    with torch.no_grad():
        theirs = peer(input_ids=torch.tensor([closed.ids])).logits
    assert raw(model, Text("the order<|im_end|>")) == pytest.approx(theirs.flatten().tolist(), abs=1e-5)


def test_saved_and_loaded_it_scores_as_before(made, tmp_path, make_trajectory) -> None:
    contents = [make_trajectory("good sent"), make_trajectory("bad " * 30)]
    for ensemble, rank in ((1, 0), (3, 0), (2, 4)):
        recipe = made(ensemble=ensemble, lora_rank=rank)
        torch.manual_seed(5)
        built = build(recipe)
        if rank:  # adapters begin at nothing; something has to be there to be merged
            with torch.no_grad():
                for parameter in built.parameters():
                    parameter.add_(0.02 * torch.randn_like(parameter) * parameter.requires_grad)
        before = raw(LoadedModel(built, {"aggregation": "value", "backbone": {}}), *contents)
        built.requires_grad_(True)
        folder = tmp_path / f"model-{ensemble}-{rank}"
        after = store(built, recipe, folder)
        assert raw(after, *contents) == pytest.approx(before, abs=1e-5)
        assert after.score([after.render(contents[0])])[0].std is None or ensemble > 1
        assert not [
            path for path in folder.iterdir() if path.suffix not in (".json", ".safetensors", ".jinja")
        ]


def test_a_batch_changes_nothing(made, tmp_path, make_trajectory) -> None:
    recipe = made()
    model = store(build(recipe), recipe, tmp_path / "model")
    contents = [make_trajectory("good " * count) for count in (1, 30, 3, 60)]
    alone = [value for content in contents for value in raw(model, content)]
    assert raw(model, *contents) == pytest.approx(alone, abs=1e-5)
    assert raw(model, *contents[::-1]) == pytest.approx(alone[::-1], abs=1e-5)


def test_steps_sum_to_what_was_gained(made, tmp_path, make_trajectory) -> None:
    recipe = made()
    model = store(build(recipe), recipe, tmp_path / "model")
    (one,) = model.score([model.render(make_trajectory("good sent"))])
    assert sum(one.step_rewards) == pytest.approx(one.raw - one.offset, abs=1e-6)
    (text,) = model.score([model.render(TokenIds((20, 21, 22)))])
    assert text.offset == 0.0


def test_a_template_changed_after_training_is_refused(made, tmp_path) -> None:
    recipe = made()
    store(build(recipe), recipe, tmp_path / "model")
    path = tmp_path / "model" / "chat_template.jinja"
    assert path.read_text() == CHATML
    manifest = json.loads((tmp_path / "model" / "touchstone.json").read_text())
    for files, said in ((manifest["files"], "is damaged"), ({}, "another rendering")):
        (tmp_path / "model" / "touchstone.json").write_text(json.dumps(manifest | {"files": files}))
        path.write_text(CHATML.replace("\n", " "))
        with pytest.raises(RewardError, match=said):
            load(tmp_path / "model")


def test_longer_than_the_decoder_reads(made) -> None:
    recipe = replace(made(), max_tokens=4096)
    with pytest.raises(RewardError, match="this decoder reads at most 512") as caught:
        build(recipe)
    assert caught.value.pointer == "/max_tokens"

"""Classifiers that see all of a text, imported, give the logits that transformers gives."""

import json
from pathlib import Path

import pytest

from tests.workers.importing.test_sequence_classifiers import imported
from tests.workers.public_models import (
    CHATS,
    pair_logits,
    save_bidirectional,
    save_classifier,
    trajectory_of,
    transformers_logits,
)
from workers.errors import RewardError
from workers.schema import Text, TokenIds
from workers.text import ClassifierInputs

CHATML = "{% for m in messages %}[CLS] {{ m.role }} {{ m.content }} [SEP]{% endfor %}"


@pytest.mark.parametrize("name", ["bert", "roberta", "deberta-v2", "modernbert"])
def test_pairs_of_question_and_answer(tmp_path: Path, name: str) -> None:
    folder = save_bidirectional(tmp_path / "public", name)
    model = imported(tmp_path, folder)
    scores = model.score([model.render(trajectory_of(messages)) for messages in CHATS])
    for messages, score in zip(CHATS[:2], scores, strict=False):
        question, answer = (message["content"] for message in messages)
        assert score.raw == pytest.approx(float(pair_logits(folder, question, answer)[0]), abs=1e-5)
        assert score.offset == pytest.approx(float(pair_logits(folder, question, "")[0]), abs=1e-5)
    asked = "User: A refund?\n\nAssistant: Which order?\n\nUser: the order was sent, or lost"
    expected = float(pair_logits(folder, asked, "A refund is good.")[0])
    assert scores[2].raw == pytest.approx(expected, abs=1e-5)
    assert model.manifest["imported"]["check"]["largest_difference"] < 1e-5
    assert len(scores[2].step_rewards) == 2


def test_a_chat_template_is_used_where_there_is_one(tmp_path: Path) -> None:
    folder = save_bidirectional(tmp_path / "public", "modernbert", labels=2, template=CHATML)
    model = imported(tmp_path, folder, options={"label": "1", "against": "0"})
    for messages in CHATS:
        bad, good = transformers_logits(folder, messages).tolist()
        rendered = model.render(trajectory_of(messages))
        (score,) = model.score([rendered], criteria=["LABEL_0"])
        assert score.raw == pytest.approx(good - bad, abs=1e-5)
        assert score.criteria["LABEL_0"] == pytest.approx(bad, abs=1e-5)


def test_a_decoder_that_reads_pairs_keeps_its_own_forward_pass(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "public", "llama", template=None)
    model = imported(tmp_path, folder, options={"text_form": "pair"})
    question, answer = (message["content"] for message in CHATS[0])
    (score,) = model.score([model.render(trajectory_of(CHATS[0]))])
    assert score.raw == pytest.approx(float(pair_logits(folder, question, answer)[0]), abs=1e-5)


def test_long_texts_lose_their_middle_and_the_answer_stays(tmp_path: Path) -> None:
    model = imported(tmp_path, save_bidirectional(tmp_path / "public", "bert"))
    long = [{"role": "user", "content": "why " * 500}, {"role": "assistant", "content": "no"}]
    rendered = model.render(trajectory_of(long))
    assert isinstance(rendered, ClassifierInputs)
    assert rendered.truncated
    assert 100 < len(rendered.inputs[-1].ids) <= 128
    tokens = model.renderer.tokenizer
    assert tokens.decode(rendered.inputs[-1].ids).endswith("n ##o [SEP]")
    assert model.render(Text("hello " * 500)).truncated


def test_a_form_that_the_model_has_not_is_refused(tmp_path: Path) -> None:
    folder = save_bidirectional(tmp_path / "public", "bert")
    for form, said in (("template", "has no chat template"), ("prose", "none of template, pair, text")):
        with pytest.raises(RewardError, match=said):
            imported(tmp_path / form, folder, options={"text_form": form})


def test_no_input_is_longer_than_the_table_of_positions(tmp_path: Path) -> None:
    folder = save_bidirectional(tmp_path / "public", "roberta")
    config = json.loads((folder / "config.json").read_text())
    longest = config["max_position_embeddings"] - 1 - config["pad_token_id"]
    with pytest.raises(RewardError, match=f"has positions for {longest} tokens at most") as error:
        imported(tmp_path / "more", folder, options={"max_tokens": longest + 1})
    assert error.value.pointer == "/options/max_tokens"
    model = imported(tmp_path, folder, options={"max_tokens": longest})
    assert model.render(Text("why " * 500)).tokens <= longest
    rendered = model.render(TokenIds((5,) * 500))
    assert rendered.tokens == longest
    assert len(model.score([rendered])) == 1
    with pytest.raises(RewardError, match="outside this model's vocabulary"):
        model.render(TokenIds((10**6,)))


@pytest.mark.parametrize("name", ["num_hidden_layers", "num_labels"])
def test_no_model_is_built_that_the_tensors_cannot_fill(tmp_path: Path, name: str) -> None:
    folder = save_bidirectional(tmp_path / "public", "bert")
    config = json.loads((folder / "config.json").read_text())
    config.pop("id2label", None)
    (folder / "config.json").write_text(json.dumps(config | {name: 10**8}))
    with pytest.raises(RewardError, match=f"says {name} = 100000000, and the weights are"):
        imported(tmp_path, folder)

"""Causal language models as judges, asked by a file: verdicts are the probabilities that transformers gives."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.workers.decoders import save_decoder
from workers.errors import RewardError
from workers.evaluate import RecordScorer
from workers.importing import Checkpoint, ImportOptions, recognise
from workers.importing.importer import ImportRequest, import_checkpoint
from workers.models import load_scorer
from workers.models.generative.model import GenerativeModel
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ATTENTIVE = """
critique_tokens = 6
mark = "so:"
[run]
system = "Judge."
user = "Q: {{task}}\\nA: {{answer}}\\nIs it good?"
verdicts = ["yes", "no"]
[pair]
user = "{{task}} | {{answer_a}} | {{answer_b}}"
verdicts = ["A", "B"]
"""
SCALE = """
critique_tokens = 0
mark = ""
before_verdict = ""
[run]
user = "{{task}}: {{answer}}"
scale = ["1", "2", "3"]
"""


def run_of(answer: str) -> Trajectory:
    said = (("user", "Where is order 17?"), ("agent", answer))
    steps = tuple(Step(source=source, message=(Part(text=text),)) for source, text in said)  # type: ignore[arg-type]
    return Trajectory(steps=steps, task=Task(id="t"))


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("judge")
    return save_decoder(folder, "llama", shape={"max_position_embeddings": 4096}, template=TEMPLATE)


def judge(source: Path, folder: Path, prompts: str | None, **options: Any) -> GenerativeModel:
    if prompts is not None:
        path = folder / "asked.toml"
        path.write_text(prompts)
        options["prompts"] = str(path)
    given = ImportOptions.parse({"type": "generative-judge", "max_tokens": 4096} | options)
    checkpoint = Checkpoint(source)
    found = recognise(checkpoint, given)
    import_checkpoint(checkpoint, found, folder / "model", ImportRequest(checkpoint=source, options=given))
    model = load_scorer(folder / "model")
    assert isinstance(model, GenerativeModel)
    return model


def asked_ids(source: Path, *messages: tuple[str, str]) -> list[int]:
    made = AutoTokenizer.from_pretrained(source)
    text = made.apply_chat_template(
        [{"role": role, "content": content} for role, content in messages],
        tokenize=False,
        add_generation_prompt=True,
    )
    ids: list[int] = made.encode(text, add_special_tokens=False)
    return ids


def next_log_probs(source: Path, ids: list[int]) -> torch.Tensor:
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0, -1].log_softmax(-1)


def critique_ids(source: Path, ids: list[int], tokens: int) -> list[int]:
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
    made = model.generate(torch.tensor([ids]), max_new_tokens=tokens, do_sample=False)[0, len(ids) :]
    return [id_ for id_ in made.tolist() if id_ != 1]


def first_difference(source: Path, *words: str) -> tuple[list[int], list[int]]:
    """What the words begin with alike, and the first token of each that differs."""
    made = AutoTokenizer.from_pretrained(source)
    ids = [made.encode(word, add_special_tokens=False) for word in words]
    at = next(place for place in range(9) if len({tuple(each[: place + 1]) for each in ids}) > 1)
    return ids[0][:at], [each[at] for each in ids]


def test_verdicts_of_a_file(source: Path, tmp_path) -> None:
    model = judge(source, tmp_path, ATTENTIVE)
    (score,) = model.score([model.render(run_of("It was sent."))])
    ids = asked_ids(
        source, ("system", "Judge."), ("user", "Q: Where is order 17?\nA: It was sent.\nIs it good?")
    )
    assert list(model.render(run_of("It was sent.")).ids) == ids
    made = AutoTokenizer.from_pretrained(source)
    before, (yes, no) = first_difference(source, " yes", " no")
    written = critique_ids(source, ids, 6)
    found = next_log_probs(source, [*ids, *written, *made.encode("so:", add_special_tokens=False), *before])
    assert score.raw == pytest.approx(float(found[yes] - found[no]), abs=1e-4)
    assert score.critique == made.decode(written, skip_special_tokens=True).strip()
    assert model.manifest["text"]["prompts"][0].startswith("asked.toml ")


def test_pairs_are_asked_in_both_orders(source: Path, tmp_path) -> None:
    model = judge(source, tmp_path, ATTENTIVE)
    first, second = run_of("It was sent."), run_of("Lost.")
    (pair,) = model.compare([(first, second)])
    before, (a, b) = first_difference(source, " A", " B")
    mark = AutoTokenizer.from_pretrained(source).encode("so:", add_special_tokens=False)
    chances = []
    for one, other in ((first, second), (second, first)):
        ids = asked_ids(source, ("user", f"Where is order 17? | {one.steps[1].text} | {other.steps[1].text}"))
        found = next_log_probs(source, [*ids, *critique_ids(source, ids, 6), *mark, *before])
        chances.append(float(torch.sigmoid(found[a] - found[b])))
    assert pair.probability == pytest.approx((chances[0] + 1 - chances[1]) / 2, abs=1e-5)


def test_a_scale_gives_its_expected_point_at_once(source: Path, tmp_path) -> None:
    model = judge(source, tmp_path, SCALE)
    (score,) = model.score([model.render(run_of("It was sent."))])
    ids = asked_ids(source, ("user", "Where is order 17?: It was sent."))
    before, points = first_difference(source, "1", "2", "3")
    chances = next_log_probs(source, [*ids, *before])[points].softmax(-1)
    assert score.raw == pytest.approx(float(chances @ torch.tensor([1.0, 2.0, 3.0])), abs=1e-5)
    assert not model.compares and score.critique == ""
    record = PreferenceRecord(a=run_of("It was sent."), b=run_of("Lost."), choice="a", annotator="a")
    (scored,) = RecordScorer(model)([record])
    assert scored.compared is None and scored.scores[0].raw == pytest.approx(score.raw)
    with pytest.raises(RewardError, match="no question about two trajectories"):
        model.render_pair(run_of("a"), run_of("b"))


def test_without_a_file_it_is_asked_our_own_questions(source: Path, tmp_path) -> None:
    model = judge(source, tmp_path, None, critique_tokens=4)
    assert model.compares and model.renderer.words(model.render(run_of("Sent."))).yes == "good"
    prompt = model.renderer.text(model.render(run_of("Sent.")).ids)
    assert '"said": "Sent."' in prompt and "{{" not in prompt
    assert model.manifest["imported"]["labels"] == ["good", "bad"]


@pytest.mark.parametrize(
    ("prompts", "words"),
    [
        ("[run]\nuser = 1", "needs user, the text of the question"),
        ('[run]\nuser = "{{answer}}"', "needs verdicts, the words for and against, or a scale"),
        (
            '[run]\nuser = "{{answer}} {{secret}}"\nverdicts = ["a", "b"]',
            r"has the place \{\{secret\}\}; known are",
        ),
        ('[run]\nuser = "Good?"\nverdicts = ["a", "b"]', "shows no answer"),
        ('[run]\nuser = "{{answer}}"\nscale = ["low", "high"]', "needs two numbers"),
        ('mark = ""\n[run]\nuser = "{{answer}}"\nverdicts = ["a", "b"]', "needs a mark before its verdict"),
        ('[pair]\nuser = "{{a}} {{b}}"\nverdicts = ["A", "B"]', r"\[run\] is missing"),
        ('temperature = 1\n[run]\nuser = "{{run}}"', "unknown key 'temperature'"),
        ("run = [", "not valid TOML"),
        ('critique_tokens = 4\n[run]\nuser = "{{run}}"\nscale = ["1", "10"]', "use a shorter scale"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(source: Path, tmp_path, prompts: str, words: str) -> None:
    with pytest.raises(RewardError, match=words) as caught:
        judge(source, tmp_path, prompts)
    assert caught.value.pointer == "/options/prompts"

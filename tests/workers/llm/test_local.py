"""A model in a folder answers as one behind an address does: by the schema, or not at all."""

from pathlib import Path
from typing import Literal

import msgspec
import pytest
import torch

from benchmarks.small_decoder import save_decoder
from workers.errors import RewardError
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, LogprobChoices, NoAnswer
from workers.prompts.templates import Prompt

ASKED = Prompt(
    "test.v1", ({"role": "system", "content": "Judge."}, {"role": "user", "content": "Which is better?"})
)


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    better: Literal["A", "B", "tie"]
    why: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model")
    return save_decoder(made, ['{"better": "A", "why": "x"}'], vocabulary=300, width=16, layers=1, heads=2)


def asked(folder: Path, answers: Path, **options: int) -> LLMClient:
    server = LLMServer(folder=str(folder), **{"answer_tokens": 3000} | options)  # type: ignore[arg-type]
    return LLMClient(server, AnswersFile(answers))


def test_even_random_weights_answer_by_the_schema(folder: Path, tmp_path: Path) -> None:
    weighed = LogprobChoices("better", (("A", "B", "tie"),))
    model = asked(folder, tmp_path / "answers.jsonl")
    found = [
        model.complete_with_logprobs(ASKED, Verdict, weighed=weighed, draw=draw) for draw in (None, 1, 2)
    ]
    for verdict, chances in found:
        assert isinstance(verdict, Verdict) and len(verdict.why) <= 600
        assert sum(chances[0].values()) == pytest.approx(1) and min(chances[0].values()) > 0
    assert model.usage.calls == 3 and model.usage.prompt_tokens > 3 * 20
    assert found[1][0] != found[2][0], "drawn answers differ"
    again = asked(folder, tmp_path / "anew.jsonl")
    assert [
        again.complete_with_logprobs(ASKED, Verdict, weighed=weighed, draw=draw) for draw in (None, 1, 2)
    ] == found


def test_an_answer_that_is_cut_off_is_none(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="cut off"):
        asked(folder, tmp_path / "answers.jsonl", answer_tokens=5).ask(ASKED, Verdict)


def test_a_question_without_room_is_refused(folder: Path, tmp_path: Path) -> None:
    long = Prompt("test.v1", ({"role": "user", "content": "a lot of words " * 10_000},))
    with pytest.raises(NoAnswer, match=r"The question has [\d,]+ tokens"):
        asked(folder, tmp_path / "answers.jsonl").ask(long, Verdict)


def test_the_device_is_chosen_or_refused_in_words(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # as it is on a machine without a GPU

    def on(device: str) -> LLMClient:
        return LLMClient(
            LLMServer(folder=str(folder), device=device), AnswersFile(tmp_path / "answers.jsonl")
        )

    assert on("auto").ask(ASKED, Verdict) == on("cpu").ask(ASKED, Verdict)
    with pytest.raises(RewardError, match="torch finds no GPU on this machine"):
        on("cuda")


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match="there is no decoder in"):
        asked(tmp_path / "nowhere", tmp_path / "answers.jsonl")

"""How likely the words of an answer were, as servers tell it."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from tests.workers.llm.questions import ASKED, Count, few
from tests.workers.llm.scripted import Body, Reply, Script, completion, scripted
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, LogprobChoices
from workers.llm.completions import Completion, Token, chances


def logged(said: str, likeliest: dict[str, dict[str, float]]) -> Body:
    """A completion of one token a word, with the log-probabilities of some."""
    reply = completion(said)
    words = re.findall(r'"[^"]*"|.', said)
    reply["choices"][0]["logprobs"] = {
        "content": [
            {
                "token": word,
                "logprob": -0.1,
                "bytes": None,
                "top_logprobs": [
                    {"token": token, "logprob": log, "bytes": None}
                    for token, log in likeliest.get(word, {word: -0.1}).items()
                ],
            }
            for word in words
        ]
    }
    return reply


def test_how_likely_the_words_of_an_answer_were(tmp_path: Path) -> None:
    said = json.dumps({"number": 3, "why": None})
    odds = {"3": {"3": math.log(0.6), "4": math.log(0.2), "30": math.log(0.1), '"': math.log(0.1)}}
    weighed = LogprobChoices("number", (("3", "4", "5"),))
    script = Script(lambda body: (200, logged(said, odds)))
    with scripted(script) as url:
        server = LLMServer(base_url=url, model="tiny")
        for _ in range(2):
            model = LLMClient(server, AnswersFile(tmp_path / "answers.jsonl"))
            found, chances = model.complete_with_logprobs(ASKED, Count, few, weighed=weighed)
            assert found.number == 3
            assert chances == [{"3": pytest.approx(0.75), "4": pytest.approx(0.25), "5": 0}]
        assert len(script.asked) == 1 and script.asked[0]["logprobs"] is True
        script.answer = lambda body: (
            (400, {"error": {"message": "logprobs are not known"}}) if ("logprobs" in body) else said
        )
        model = LLMClient(server, AnswersFile(tmp_path / "others.jsonl"))
        found, chances = model.complete_with_logprobs(ASKED, Count, few, weighed=weighed)
        assert found.number == 3 and chances == []
        script.answer = lambda body: (
            200,
            completion(said)
            | {"choices": [completion(said)["choices"][0] | {"logprobs": {"content": [{"token": 3}]}}]},
        )
        assert model.complete_with_logprobs(ASKED, Count, few, weighed=weighed, draw=7)[1] == []


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (
            [
                ('{"', {}),
                ("better", {}),
                ('":', {}),
                (' "', {}),
                ("A", {"A": -0.5, "B": -1.0, "tie": -2.0}),
                ('"}', {}),
            ],
            0.5465,
        ),
        ([('{"better": "', {}), ("A", {"A": -0.5, "B": -1.0, "t": -2.0}), ('"}', {})], 0.5465),
        ([('{"better": ', {}), ('"A', {'"A': -0.5, '"B': -1.0, '"tie': -2.0, "A": 0.0}), ('"}', {})], 0.5465),
        (
            [
                ('{"better":"A"', {'{"better":"A"': -0.5, '{"better":"B"': -1.0, '{"better":"t': -2.0}),
                ("}", {}),
            ],
            0.5465,
        ),
        ([('{"better": "', {}), ("A", {"x": -0.5}), ('"}', {})], None),
        ([('{"best": "', {}), ("A", {"A": -0.5}), ('"}', {})], None),
        ([], None),
    ],
)
def test_words_are_told_however_the_tokens_are_cut(tokens: Any, expected: float | None) -> None:
    completion = Completion(said="", tokens=[Token(*token) for token in tokens])
    found = chances(completion, "better", [("A", "B", "tie")])
    assert (found[0]["A"] if found else None) == (expected and pytest.approx(expected, abs=1e-3))


def test_a_server_that_tellsfewer_tokens_is_asked_forfewer(tmp_path: Path) -> None:
    said = json.dumps({"number": 3, "why": None})
    odds = {"3": {"Ġ3": math.log(0.6), "3": math.log(0.4), "4": math.log(0.2)}}
    reply = logged(said, odds)
    for record in reply["choices"][0]["logprobs"]["content"]:  # as mlx-lm tells them
        record["token"] = record["token"].replace(" ", "Ġ")
    reply["choices"][0]["logprobs"]["content"][-1]["top_logprobs"].append({"token": None, "logprob": -6.1})

    def answer(body: Body) -> Reply:
        if body.get("top_logprobs", 0) > 11:
            return 400, {"error": "top_logprobs must be at most 11"}
        return 200, reply

    with scripted(Script(answer)) as url:
        model = LLMClient(LLMServer(base_url=url, model="tiny"), AnswersFile(tmp_path / "answers.jsonl"))
        found = model.complete_with_logprobs(ASKED, Count, weighed=LogprobChoices("number", (("3", "4"),)))
    assert found == (Count(number=3, why=None), [{"3": pytest.approx(2 / 3), "4": pytest.approx(1 / 3)}])


@pytest.mark.parametrize("wrong", ["NaN", "null", '"x"', "3.0"])
def test_chances_that_cannot_be_are_none(tmp_path: Path, wrong: str) -> None:
    said = json.dumps({"number": 3, "why": None})
    reply = json.dumps(logged(said, {"3": {"3": -12345.0, "4": -0.5}})).replace("-12345.0", wrong)
    with scripted(Script(lambda body: (200, reply))) as url:
        model = LLMClient(LLMServer(base_url=url, model="tiny"), AnswersFile(tmp_path / "answers.jsonl"))
        weighed = LogprobChoices("number", (("3", "4"),))
        assert model.complete_with_logprobs(ASKED, Count, weighed=weighed) == (Count(number=3, why=None), [])


def test_tokens_of_something_else_say_nothing_of_the_answer(tmp_path: Path) -> None:
    """As of mlx-lm 0.32, which names another token than the one it took."""
    said = json.dumps({"number": 3, "why": None})
    reply = logged(said, {"3": {"3": -0.5, "4": -1.0}})
    reply["choices"][0]["logprobs"]["content"][-1]["token"] = "]"
    with scripted(Script(lambda body: (200, reply))) as url:
        model = LLMClient(LLMServer(base_url=url, model="tiny"), AnswersFile(tmp_path / "answers.jsonl"))
        weighed = LogprobChoices("number", (("3", "4"),))
        assert model.complete_with_logprobs(ASKED, Count, weighed=weighed) == (Count(number=3, why=None), [])

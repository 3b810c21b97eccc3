"""Answers have the shape that was asked for, or there is none."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.workers.judge.scripted import Body, Reply, Script, completion, scripted
from workers.errors import RewardError
from workers.judge import Server, remote
from workers.judge.client import AnswersFile, LanguageModel, NoAnswer, Weighed
from workers.judge.completions import Completion, Token, chances
from workers.judge.prompts import Prompt, prompt, quoted

ASKED = Prompt("test.v1", ({"role": "user", "content": "How many?"},))


class Count(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    number: int
    why: str | None


GOOD = json.dumps({"number": 3, "why": None})


def ask(answer: Callable[[Body], Reply], folder: Path, **options: Any) -> tuple[Count, Script, LanguageModel]:
    script = Script(answer)
    with scripted(script) as url:
        server = Server(base_url=url, model="tiny", **options)
        model = LanguageModel(server, AnswersFile(folder / "answers.jsonl"), "secret")
        return model.ask(ASKED, Count, _few), script, model


def _few(count: Count) -> None:
    if count.number > 5:
        raise RewardError("There are at most five.")


def in_turn(*replies: Reply) -> Callable[[Body], Reply]:
    left = list(replies)
    return lambda body: left.pop(0) if len(left) > 1 else left[0]


def test_an_answer_and_what_was_sent(tmp_path: Path) -> None:
    found, script, model = ask(lambda body: GOOD, tmp_path)
    assert found == Count(number=3, why=None)
    (body,) = script.asked
    assert script.keys == {"secret"}
    assert body["model"] == "tiny" and body["temperature"] == 0
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["number", "why"] and schema["additionalProperties"] is False
    assert (model.usage.calls, model.usage.prompt_tokens, model.usage.completion_tokens) == (1, 10, 5)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("Three, I think.", "no JSON object"),
        ('{"number": 3', "no JSON"),
        ('{"number": "three", "why": null}', "Expected `int`"),
        ('{"number": 3}', "missing required field `why`"),
        ('{"number": 3, "why": null, "sure": true}', "unknown field `sure`"),
        ('{"number": 9, "why": null}', "at most five"),
        ('{"number": NaN, "why": null}', "not a JSON number"),
        ("[" * 100_000, "no JSON object"),
        ('{"number":' + "[" * 100_000, "no JSON"),
        ("", "It is empty"),
        (GOOD + " " * 500_000, "characters"),
        ((200, completion(GOOD[:5], ended="length")), "cut off"),
        ((200, completion("", refusal="I would rather not.")), "refused: I would rather not."),
        ((200, {"choices": []}), "no message"),
        ((200, {"error": "busy"}), "no message"),
        ((200, "<html>"), "no "),
        ((200, "[1]"), "no "),
        ((200, "null"), "no "),
    ],
)
def test_what_cannot_be_used_is_asked_again_with_the_reason(tmp_path: Path, bad: Reply, told: str) -> None:
    found, script, _ = ask(in_turn(bad, GOOD), tmp_path)
    assert found.number == 3
    assert len(script.asked) == 2
    assert told in script.asked[1]["messages"][-1]["content"]
    with pytest.raises(NoAnswer, match="gave no answer that can be used"):
        ask(lambda body: bad, tmp_path / "other", attempts=2)


@pytest.mark.parametrize(
    "said",
    [
        f"```json\n{GOOD}\n```",
        f"<think>{{maybe 4}}</think>\nHere it is: {GOOD} I hope it helps.",
        '{"number": 3, "why": null}\n{"number": 4, "why": null}',
    ],
)
def test_what_models_write_around_it_is_left_away(tmp_path: Path, said: str) -> None:
    assert ask(lambda body: said, tmp_path)[0].number == 3


def test_nul_and_lone_surrogates_are_replaced(tmp_path: Path) -> None:
    found = ask(lambda body: r'{"number": 1, "why": "a\u0000b\ud800"}', tmp_path)[0]
    assert found.why == "a\ufffdb\ufffd"


def test_a_busy_server_is_waited_for(tmp_path: Path) -> None:
    found, script, _ = ask(in_turn((429, {}), (503, {}), None, GOOD), tmp_path)
    assert found.number == 3 and len(script.asked) == 4


@pytest.mark.parametrize("option", ["response_format", "temperature"])
def test_an_option_that_the_server_does_not_know_is_left_out(tmp_path: Path, option: str) -> None:
    def answer(body: Body) -> Reply:
        return (400, {"error": {"message": f"{option} is not supported"}}) if option in body else GOOD

    found, script, _ = ask(answer, tmp_path)
    assert found.number == 3 and len(script.asked) == 2


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, "refused the key"), (403, "refused the key"), (404, "no model 'tiny'")],
)
def test_what_no_item_will_get_past_ends_it(tmp_path: Path, status: int, message: str) -> None:
    with pytest.raises(RewardError, match=message) as error:
        ask(lambda body: (status, {"error": {"message": "no"}}), tmp_path)
    assert not isinstance(error.value, NoAnswer)
    assert "secret" not in error.value.message


def test_a_question_that_is_refused_is_that_item_s_alone(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="maximum context length"):
        ask(lambda body: (400, {"error": {"message": "maximum context length is 10"}}), tmp_path)


def test_nobody_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_RETRIES", 0)
    server = Server(base_url="http://127.0.0.1:9/v1", model="tiny")
    model = LanguageModel(server, AnswersFile(tmp_path / "answers.jsonl"))
    with pytest.raises(RewardError, match="cannot be reached"):
        model.ask(ASKED, Count)


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    ask(lambda body: GOOD, tmp_path)
    with (tmp_path / "answers.jsonl").open("a") as out:
        out.write('{"key": "cut o')
    found, script, model = ask(lambda body: "nothing", tmp_path)
    assert found.number == 3 and script.asked == [] and model.usage.kept == 1


def test_a_kept_answer_is_checked_too(tmp_path: Path) -> None:
    ask(lambda body: GOOD, tmp_path)
    path = tmp_path / "answers.jsonl"
    path.write_text(path.read_text().replace('"number": 3', '"number": 9'))
    found, script, _ = ask(lambda body: GOOD, tmp_path)
    assert found.number == 3 and len(script.asked) == 1


def test_several_at_once_and_one_without_an_answer(tmp_path: Path) -> None:
    script = Script(lambda body: GOOD if body["messages"][0]["content"] != "4" else "no")
    with scripted(script) as url:
        model = LanguageModel(
            Server(base_url=url, model="tiny", attempts=2), AnswersFile(tmp_path / "answers.jsonl")
        )

        def one(number: int) -> Count:
            return model.ask(Prompt("n", ({"role": "user", "content": str(number)},)), Count)

        found = dict(model.each(range(20), one))
    assert sorted(found) == list(range(20))
    assert [number for number, answer in found.items() if isinstance(answer, NoAnswer)] == [4]


def test_prompts_take_data_as_data() -> None:
    made = prompt("judge", metrics="m", steps="[]", trajectory="{{metrics}} {{gone}}")
    assert made.messages[1]["content"].endswith("{{metrics}} {{gone}}")
    assert made.of.startswith("judge.v1 ")
    assert "\n" not in quoted("a\n---\nb\u2028c") and "\u2028" not in quoted("\u2028")
    with pytest.raises(KeyError):
        prompt("judge", metrics="m")


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
    weighed = Weighed("number", (("3", "4", "5"),))
    script = Script(lambda body: (200, logged(said, odds)))
    with scripted(script) as url:
        server = Server(base_url=url, model="tiny")
        for _ in range(2):
            model = LanguageModel(server, AnswersFile(tmp_path / "answers.jsonl"))
            found, chances = model.ask_weighed(ASKED, Count, _few, weighed=weighed)
            assert found.number == 3
            assert chances == [{"3": pytest.approx(0.75), "4": pytest.approx(0.25), "5": 0}]
        assert len(script.asked) == 1 and script.asked[0]["logprobs"] is True
        script.answer = lambda body: (
            (400, {"error": {"message": "logprobs are not known"}}) if ("logprobs" in body) else said
        )
        model = LanguageModel(server, AnswersFile(tmp_path / "others.jsonl"))
        found, chances = model.ask_weighed(ASKED, Count, _few, weighed=weighed)
        assert found.number == 3 and chances == []
        script.answer = lambda body: (
            200,
            completion(said)
            | {"choices": [completion(said)["choices"][0] | {"logprobs": {"content": [{"token": 3}]}}]},
        )
        assert model.ask_weighed(ASKED, Count, _few, weighed=weighed, draw=7)[1] == []


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
    completion = Completion(said="", tokens=[Token(*one) for one in tokens])
    found = chances(completion, "better", [("A", "B", "tie")])
    assert (found[0]["A"] if found else None) == (expected and pytest.approx(expected, abs=1e-3))


def test_drawn_answers_are_asked_for_and_kept_each_by_its_number(tmp_path: Path) -> None:
    script = Script(lambda body: json.dumps({"number": body.get("seed", 0), "why": None}))
    with scripted(script) as url:
        model = LanguageModel(Server(base_url=url, model="tiny"), AnswersFile(tmp_path / "answers.jsonl"))
        found = [model.ask_weighed(ASKED, Count, draw=draw)[0].number for draw in (None, 1, 2, 1)]
    assert found == [0, 1, 2, 1] and model.usage.kept == 1
    assert [body["temperature"] for body in script.asked] == [0, 0.7, 0.7]


def test_money_that_is_spent_ends_it_for_all(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match=r"^The limit is 5 a month\.$") as error:
        ask(lambda body: (402, {"error": {"message": "The limit is 5 a month."}}), tmp_path)
    assert not isinstance(error.value, NoAnswer)


def test_a_server_that_knows_the_length_by_its_newer_name(tmp_path: Path) -> None:
    def answer(body: Body) -> Reply:
        if "max_tokens" in body:
            return 400, {"error": {"message": "Use 'max_completion_tokens' instead of 'max_tokens'."}}
        return GOOD

    found, script, _ = ask(answer, tmp_path, answer_tokens=77)
    assert found.number == 3 and script.asked[-1]["max_completion_tokens"] == 77

"""Answers have the shape that was asked for, or there is none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.workers.judge.scripted import Body, Reply, Script, completion, scripted
from workers.errors import RewardError
from workers.judge import Server
from workers.judge.client import AnswersFile, LanguageModel, NoAnswer
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
        model = LanguageModel(server, "secret", AnswersFile(folder / "answers.jsonl"))
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


def test_nobody_there(tmp_path: Path) -> None:
    server = Server(base_url="http://127.0.0.1:9/v1", model="tiny")
    model = LanguageModel(server, "", AnswersFile(tmp_path / "answers.jsonl"))
    model._client.max_retries = 0
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
            Server(base_url=url, model="tiny", attempts=2), "", AnswersFile(tmp_path / "answers.jsonl")
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

"""Answers have the shape that was asked for, or there is none."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from tests.core.servers import Handler
from tests.workers.llm.questions import ASKED, GOOD, Count, ask, in_turn, numbered
from tests.workers.llm.scripted import Body, Reply, Script, completion, head, scripted
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer
from workers.prompts.templates import prompt, quoted


def test_an_answer_and_what_was_sent(tmp_path: Path) -> None:
    found, script, model = ask(lambda body: GOOD, tmp_path)
    assert found == Count(number=3, why=None)
    (body,) = script.asked
    assert script.keys == {"secret"}
    assert body["model"] == "tiny" and body["temperature"] == 0
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["number", "why"] and schema["additionalProperties"] is False
    assert (model.usage.calls, model.usage.prompt_tokens, model.usage.completion_tokens) == (1, 10, 5)


def without_content(reply: Body) -> Body:
    reply["choices"][0]["message"]["content"] = None
    return reply


def endless(to: Handler) -> None:
    head(to, 200, {})
    with suppress(OSError):
        while True:
            to.wfile.write(b" " * 100_000)


def cut_in_the_middle(to: Handler) -> None:
    data = json.dumps(completion(GOOD)).encode()
    head(to, 200, {"Content-Length": str(len(data))})
    to.wfile.write(data[:40])


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
        ((200, completion(GOOD, ended="length")), "cut off"),
        ((200, completion("", ended="length")), "cut off"),
        ((200, completion("", refusal="I would rather not.")), "refused: I would rather not."),
        ((200, completion(GOOD, ended="content_filter")), "A filter of the server stopped it."),
        ((200, without_content(completion(GOOD))), "It is empty"),
        ((200, {"choices": []}), "no message"),
        ((200, {"error": "busy"}), "no message"),
        ((200, "<html>"), "no "),
        ((200, "[1]"), "no "),
        ((200, "null"), "no "),
        ((200, "[" * 100_000), "no chat completion"),
        (lambda to: endless(to), "more than 8,000,000 bytes"),
        (lambda to: cut_in_the_middle(to), "no chat completion"),
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
        model = LLMClient(
            LLMServer(base_url=url, model="tiny", attempts=2), AnswersFile(tmp_path / "answers.jsonl")
        )

        def one(number: int) -> Count:
            return model.ask(numbered(number), Count)

        found = dict(model.each(range(20), one))
    assert sorted(found) == list(range(20))
    assert [number for number, answer in found.items() if isinstance(answer, NoAnswer)] == [4]


def test_drawn_answers_are_asked_for_and_kept_each_by_its_number(tmp_path: Path) -> None:
    script = Script(lambda body: json.dumps({"number": body.get("seed", 0), "why": None}))
    with scripted(script) as url:
        model = LLMClient(LLMServer(base_url=url, model="tiny"), AnswersFile(tmp_path / "answers.jsonl"))
        found = [model.complete_with_logprobs(ASKED, Count, draw=draw)[0].number for draw in (None, 1, 2, 1)]
    assert found == [0, 1, 2, 1] and model.usage.kept == 1
    assert [body["temperature"] for body in script.asked] == [0, 0.7, 0.7]


def test_prompts_take_data_as_data() -> None:
    made = prompt("judge", metrics="m", steps="[]", trajectory="{{metrics}} {{gone}}")
    assert made.messages[1]["content"].endswith("{{metrics}} {{gone}}")
    assert made.of.startswith("judge.v1 ")
    assert "\n" not in quoted("a\n---\nb\u2028c") and "\u2028" not in quoted("\u2028")
    with pytest.raises(KeyError):
        prompt("judge", metrics="m")

"""What becomes of calls that a server refuses, leaves, breaks off, or answers too late."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.core.servers import Handler
from tests.workers.llm.questions import ASKED, GOOD, Count, ask, in_turn, numbered
from tests.workers.llm.scripted import Body, Reply, Script, head, scripted
from workers.errors import RewardError
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer


def test_a_busy_server_is_waited_for(tmp_path: Path) -> None:
    found, script, _ = ask(in_turn((429, {}), (503, {}), None, GOOD), tmp_path)
    assert found.number == 3 and len(script.asked) == 4


def test_a_busy_server_says_how_long(tmp_path: Path) -> None:
    def busy(to: Handler) -> None:
        head(to, 429, {"Retry-After": "1", "Content-Length": "0"})

    began = time.monotonic()
    found, script, _ = ask(in_turn(busy, GOOD), tmp_path)
    assert found.number == 3 and len(script.asked) == 2 and time.monotonic() - began >= 1


def slow(to: Handler) -> None:
    """A byte now and then: the connection lives, and there is no end to it."""
    head(to, 200, {})
    with suppress(OSError):
        for _ in range(40):
            to.wfile.write(b" ")
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (lambda to: time.sleep(1), "The server did not answer: Request timed out."),
        ((500, {"error": "out of memory"}), "The server did not answer: Error code: 500"),
        (slow, "it takes too long"),
        ((413, {"error": "too large"}), "The server refused the question: Error code: 413"),
    ],
)
def test_an_item_that_breaks_the_server_has_no_answer_and_the_others_have(
    tmp_path: Path, bad: Reply, told: str
) -> None:
    script = Script(lambda body: bad if body["messages"][0]["content"] == "0" else GOOD)
    with scripted(script) as url:
        server = LLMServer(base_url=url, model="tiny", timeout=0.3, at_once=1, attempts=2, retries=1)
        model = LLMClient(server, AnswersFile(tmp_path / "answers.jsonl"))
        found = dict(model.each(range(3), lambda number: model.ask(numbered(number), Count)))
    assert isinstance(found[0], NoAnswer) and told in found[0].message
    assert [found[record] for record in (1, 2)] == [Count(number=3, why=None)] * 2
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 2


def test_a_server_that_is_broken_for_everybody_ends_it(tmp_path: Path) -> None:
    with scripted(Script(lambda body: (500, {}))) as url:
        server = LLMServer(base_url=url, model="tiny", at_once=1, retries=0)
        model = LLMClient(server, AnswersFile(tmp_path / "answers.jsonl"))
        with pytest.raises(RewardError, match="cannot be reached") as error:
            list(model.each(range(9), lambda number: model.ask(numbered(number), Count)))
    assert not isinstance(error.value, NoAnswer)


@pytest.mark.parametrize("option", ["response_format", "temperature"])
@pytest.mark.parametrize(
    "refusal",
    [
        lambda option: (400, {"error": {"message": f"{option} is not supported"}}),
        lambda option: (400, {"error": {"message": "No seed, schema, temperature.", "param": option}}),
        lambda option: (422, {"detail": f"Unexpected fields in the request: {{'{option}'}}"}),
        lambda option: (
            422,
            {"detail": [{"loc": ["body", option], "msg": "extra", "input": {"seed": 1, "schema": 2}}]},
        ),
    ],
)
def test_an_option_that_the_server_does_not_know_is_left_out(
    tmp_path: Path, option: str, refusal: Callable[[str], Reply]
) -> None:
    script = Script(lambda body: refusal(option) if option in body else GOOD)
    with scripted(script) as url:
        model = LLMClient(LLMServer(base_url=url, model="tiny"), AnswersFile(tmp_path / "answers.jsonl"))
        found = [model.ask(numbered(number), Count).number for number in (1, 2)]
    assert found == [3, 3] and len(script.asked) == 3, "what was refused once is not sent again"
    others = {"response_format", "temperature", "max_tokens"} - {option}
    assert others <= script.asked[-1].keys() and option not in script.asked[-1]


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
    server = LLMServer(base_url="http://127.0.0.1:9/v1", model="tiny", retries=0)
    model = LLMClient(server, AnswersFile(tmp_path / "answers.jsonl"))
    with pytest.raises(RewardError, match="cannot be reached"):
        model.ask(ASKED, Count)


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

"""Runs are judged by criteria, in both orders and as often as asked, or they have no answer."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rule_judge import judged
from tests.workers.llm.scripted import Body, Reply, Script, completion, scripted
from workers.errors import RewardError
from workers.judge.rubric import Criterion, RubricJudge
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory

CARE = Criterion(name="Care", definition="Nothing fails.", low=1, high=5, bad_example="It failed.")
SPEED = Criterion(name="Speed", low=0, high=1)


def run(*results: str, said: str = "done") -> Trajectory:
    """An agent that makes a call for each result, and then says something."""
    steps = [
        Step(
            source="agent",
            tool_calls=(ToolCall(name="send", arguments={}),),
            observation=(ObservationResult(content=(Part(text=result),)),),
        )
        for result in results
    ]
    return Trajectory(
        steps=(*steps, Step(source="agent", message=(Part(text=said),))),
        task=Task(id="t", instruction="Send it."),
    )


@contextmanager
def judge(
    folder: Path, answer: Callable[[Body], Reply] = judged, criteria: Any = (CARE, SPEED), **options: Any
) -> Iterator[tuple[RubricJudge, Script]]:
    script = Script(answer)
    with scripted(script) as url:
        model = LLMClient(LLMServer(base_url=url, model="rules"), AnswersFile(folder / "answers.jsonl"))
        yield RubricJudge(model, criteria, **options), script


def test_a_run_is_scored_by_each_criterion_with_a_reason_at_a_step(tmp_path: Path) -> None:
    with judge(tmp_path, guidelines='Be "fair".\nAlways.') as (one, script):
        care, speed = one.score(run("sent", "failed", "failed"))
    assert (care.value, care.step, care.reason, care.spread) == (3, 1, "2 failed.", None)
    assert speed.value == 0
    question = script.asked[0]["messages"][1]["content"]
    assert r'"Be \"fair\".\nAlways."' in question
    assert (
        '{"key": "c0", "name": "Care", "definition": "Nothing fails.", "scores": [1, 2, 3, 4, 5], "bad": "It failed."}'
        in (question)
    )
    schema = script.asked[0]["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["c0", "c1"]
    assert schema["$defs"]["Of_c1"]["properties"]["score"]["anyOf"][0] == {"enum": [0, 1]}


def test_two_runs_are_compared_in_both_orders(tmp_path: Path) -> None:
    good, bad = run("sent"), run("sent", "failed")
    with judge(tmp_path) as (one, script):
        (care, speed) = one.compare(bad, good)
    assert len(script.asked) == 2
    assert (care.chance, care.first, care.second) == (0, 0, 0) and speed.chance == 0
    assert (care.step_a, care.step_b, care.reason) == (1, None, "A failed 1 times, B 0 times.")


def test_what_depends_on_the_order_averages_out(tmp_path: Path) -> None:
    def first(body: Body) -> str:
        said = {"reason": "It is first.", "step_a": None, "step_b": None, "better": "A"}
        return json.dumps({"c0": said, "c1": said | {"better": None}})

    with judge(tmp_path, first) as (one, _):
        care, speed = one.compare(run("a"), run("b"))
    assert (care.chance, care.first, care.second) == (0.5, 1, 0)
    assert speed.chance is None


def test_several_samples_are_averaged(tmp_path: Path) -> None:
    def by_seed(body: Body) -> str:
        seed = body["seed"]
        score = None if seed == 4 else seed
        return json.dumps(
            {
                "c0": {"reason": f"sample {seed}", "step": 0, "score": score},
                "c1": {"reason": "x", "step": None, "score": None if seed > 2 else 1},
            }
        )

    with judge(tmp_path, by_seed, samples=4) as (one, script):
        care, speed = one.score(run("a"))
    assert [body["temperature"] for body in script.asked] == [0.7] * 4
    assert (care.value, care.spread, care.reason) == (2, 1, "sample 2")
    assert speed.value is None, "half of the samples say that it cannot be told"


def test_the_expected_score_where_the_model_tells_how_likely_its_words_were(tmp_path: Path) -> None:
    said = (
        '{"c0": {"reason": "r", "step": null, "score": 4}, "c1": {"reason": "r", "step": null, "score": 1}}'
    )
    odds = {"4": {"4": -0.6931, "2": -0.6931}, "1": {"1": -0.2877, "0": -1.3863, "7": -3.0}}
    reply = completion(said)
    reply["choices"][0]["logprobs"] = {
        "content": [
            {
                "token": sign, "logprob": 0.0, "bytes": None,
                "top_logprobs": [
                    {"token": token, "logprob": log, "bytes": None} for token, log in odds.get(sign, {}).items()
                ],
            }
            for sign in said
        ]
    }  # fmt: skip
    with judge(tmp_path, lambda body: (200, reply)) as (one, _):
        care, speed = one.score(run("a"))
    assert care.value == pytest.approx(3, abs=1e-3) and speed.value == pytest.approx(0.75, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"c0": {"reason": "r", "step": 9, "score": 3}}, "There is no step 9"),
        ({"c0": {"reason": "r", "step": 0, "score": 7}}, "at /c0/score"),
        ({"c0": {"reason": "r", "step": 0, "score": 3.5}}, "at /c0/score"),
        ({"c0": {"reason": " ", "step": 0, "score": 3}}, "A verdict needs its reason"),
        ({"c0": None}, "at /c0"),
        ({"c2": {"reason": "r", "step": 0, "score": 3}}, "unknown field `c2`"),
    ],
)
def test_nothing_is_made_up_of_what_cannot_be(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    good = {"reason": "r", "step": 0, "score": 1}
    with judge(tmp_path, lambda body: json.dumps({"c0": good, "c1": good} | change)) as (one, script):
        with pytest.raises(NoAnswer, match=told):
            one.score(run("a"))
        assert len(script.asked) == 3
        assert "This answer cannot be used" in script.asked[-1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"c0": {"reason": "r", "step": 0, "score": 1}}, "missing required field `c1`"),
        ({"c0": {"reason": "r", "score": 1}, "c1": {"reason": "r", "step": 0, "score": 1}}, "`step`"),
        ({"c0": {"reason": "r", "step": 0, "score": "5"}, "c1": None}, "at /c0/score"),
        ([], "It holds no JSON object"),
    ],
)
def test_a_run_without_all_of_its_scores_has_none_and_the_next_has(
    tmp_path: Path, answer: Any, told: str
) -> None:
    def half(body: Body) -> str:
        return json.dumps(answer) if "strange" in body["messages"][1]["content"] else judged(body)

    with judge(tmp_path, half) as (one, _):
        runs = {"strange": run("a", said="strange"), "plain": run("failed")}
        found = dict(one.model.each(runs, lambda name: one.score(runs[name])))
    assert isinstance(found["strange"], NoAnswer) and told in found["strange"].message
    assert not isinstance(found["plain"], NoAnswer) and found["plain"][0].value == 4


def test_a_verdict_for_nobody_is_none(tmp_path: Path) -> None:
    said = {"reason": "r", "step_a": 0, "step_b": 0, "better": "C"}
    with (
        judge(tmp_path, lambda body: json.dumps({"c0": said, "c1": said})) as (one, _),
        pytest.raises(NoAnswer, match="at /c0/better"),
    ):
        one.compare(run("a"), run("b"))


def test_scales_that_are_not_whole(tmp_path: Path) -> None:
    half = Criterion(name="Half", low=0.5, high=2.5)
    with judge(tmp_path, criteria=[half]) as (one, script):
        assert one.score(run("failed"))[0].value == 1.5
        script.answer = lambda body: json.dumps({"c0": {"reason": "r", "step": None, "score": 2}})
        with pytest.raises(NoAnswer, match=r"2 is no score of it; 0\.5, 1\.5, 2\.5 are"):
            one.score(run("failed", "failed"))


def test_what_cannot_judge_is_told(tmp_path: Path) -> None:
    for criteria, samples in (([], 1), ([CARE], 0), ([CARE], 17)):
        with pytest.raises(RewardError), judge(tmp_path, criteria=criteria, samples=samples):
            raise AssertionError("never reached")


def test_a_prompt_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match=r"no version 3 .* there are 1, 2"), judge(tmp_path, version=3):
        raise AssertionError("never reached")


def test_the_second_prompt_is_another_question(tmp_path: Path) -> None:
    with judge(tmp_path) as (one, script), judge(tmp_path, version=2) as (other, later):
        assert one.score(run("failed")) == other.score(run("failed"))
        assert one.compare(run("failed"), run("a")) == other.compare(run("failed"), run("a"))
    assert script.asked[0]["messages"][0] != later.asked[0]["messages"][0]
    assert not one.model.asked.keys() & other.model.asked.keys()

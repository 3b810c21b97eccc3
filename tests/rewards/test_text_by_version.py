"""What versions of an endpoint differ in during a release: each reads the text of a request by its own
`policy_template`, never by another version's, and only some give reasons or critiques."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest

from apps.rewards.serving.access import Caller
from apps.rewards.serving.deployments import Deployment, Target
from apps.rewards.serving.intake import ThreadSlot
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.registry import EndpointInfo, ReleaseInfo, RevisionInfo
from apps.rewards.serving.requests import ScoreRequest, Tags
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.routing import answer
from apps.rewards.serving.shadow import ShadowScorer
from apps.rewards.serving.usage_writer import UsageWriter
from tests.workers.engine.fakes import FakeModel
from workers.engine import Batcher, ServedModel, Version
from workers.errors import RewardError
from workers.schema.endpoints import parse_spec
from workers.schema.reasons import Rescoring
from workers.schema.rendered_items import parse_scored_item

CHATML = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
SECOND_TURN = "No.<|im_end|>\n<|im_start|>user\nGreat!<|im_end|>\n<|im_start|>assistant\nBye.<|im_end|>"
CALLER = Caller("key", "desk")


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    batcher = Batcher()
    yield batcher
    batcher.close()


def version(batcher: Batcher, number: int, template: str | None) -> Version:
    named = {} if template is None else {"policy_template": template}
    spec = parse_spec({"components": [{"name": "m", "model": "p/m@1"}]} | named)
    served = {"p/m@1": ServedModel("p/m@1", FakeModel())}
    return Version(number, spec, served, batcher, on_close=lambda version: None)


def target(active: Version, candidate: Version, share: float) -> Target:
    release = ReleaseInfo(1, "canary", share, RevisionInfo(candidate.number, {}, {}))
    info = EndpointInfo(1, "reward", "desk", RevisionInfo(active.number, {}, {}), False, "", release=release)
    deployment = Deployment(info)
    deployment.active.version, deployment.candidate.version = active, candidate
    return Target(deployment, active, release, candidate)


def request(**more: Any) -> ScoreRequest:
    item = parse_scored_item({"prompt": CHATML, "response": SECOND_TURN})
    return ScoreRequest((item,), tags=Tags(run="r"), **more)


def ask(
    target: Target, asked: ScoreRequest, charge: Callable[[int], None] = lambda tokens: None
) -> ScoreResponse:
    async def run() -> ScoreResponse:
        with ThreadPoolExecutor(1) as pool:
            parsers = ThreadSlot(pool, asyncio.Semaphore(1))
            return await answer(target, asked, CALLER, parsers, parsers, charge, 0.0)

    return asyncio.run(run())


@pytest.mark.parametrize("active_names_it", [False, True])
def test_a_canary_and_a_pinned_version_read_by_their_own_template(batcher, active_names_it: bool) -> None:
    """A version that names the template reads a second turn in the response; one that does not, flags it."""
    templates = ("qwen3", None) if active_names_it else (None, "qwen3")
    active, candidate = version(batcher, 1, templates[0]), version(batcher, 2, templates[1])
    both = target(active, candidate, share=1.0)
    for number, asked in (
        (2, request()),
        (1, request(version=1)),
        (2, request(version=2)),
    ):
        answered = ask(both, asked)
        names_it = templates[number - 1] is not None
        assert answered.version == number
        assert len(answered.scores[0].steps) == (2 if names_it else 1)
        assert ("template_in_text" in answered.scores[0].flags) is not names_it
        assert len(answered.items[0].content.agent_steps) == (2 if names_it else 1)  # what is sampled


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_other_version_of_a_release_reads_by_its_own_template(batcher, share: float) -> None:
    active, candidate = version(batcher, 1, None), version(batcher, 2, "qwen3")
    both = target(active, candidate, share=share)
    answered = ask(both, request())
    usage = UsageWriter()

    async def compare() -> None:
        with ThreadPoolExecutor(1) as pool:
            shadow = ShadowScorer(usage, pool)
            shadow.offer(both.deployment, answered, CALLER)
            await shadow._compare(shadow._waiting.popleft())

    asyncio.run(compare())
    (pair,) = usage._pairs
    assert pair.scores is not None
    expected = tuple(
        ask(replace(both, candidate=None), request()).rewards[0]
        if number == 1
        else ask(both, request(version=2)).rewards[0]
        for number in (1, 2)
    )
    assert pair.scores == pytest.approx(expected)
    assert pair.scores[0] != pair.scores[1]


@dataclass
class ExplainedFake(FakeModel):
    """One that gives reasons, of which there are none."""

    gives_reasons: bool = True

    def reasons(self, content: Any, *, rescoring: Rescoring) -> list[Any]:
        rescoring.charge(7)
        return []


def served_by(batcher: Batcher, number: int, model: FakeModel) -> Version:
    spec = parse_spec({"components": [{"name": "m", "model": "p/m@1"}]})
    return Version(
        number, spec, {"p/m@1": ServedModel("p/m@1", model)}, batcher, on_close=lambda version: None
    )


class TestReasonsDuringARelease:
    def test_a_candidate_that_gives_none_takes_no_part(self, batcher, caplog) -> None:
        both = target(served_by(batcher, 1, ExplainedFake()), served_by(batcher, 2, FakeModel()), share=1.0)
        answered = ask(both, request(with_reasons=True))
        assert (answered.version, answered.scores[0].reasons) == (1, {"m": []})
        assert "fails as a candidate" not in caplog.text
        assert ask(both, request()).version == 2

    def test_an_active_version_that_gives_none_refuses_whichever_would_answer(self, batcher) -> None:
        for share in (0.5, 1.0):
            both = target(
                served_by(batcher, 1, FakeModel()), served_by(batcher, 2, ExplainedFake()), share=share
            )
            with pytest.raises(Problem, match="No model of this endpoint gives reasons"):
                ask(both, request(with_reasons=True))

    def test_copies_are_charged_and_counted(self, batcher) -> None:
        both = target(
            served_by(batcher, 1, ExplainedFake()), served_by(batcher, 2, ExplainedFake()), share=1.0
        )
        charged: list[int] = []
        answered = ask(both, request(with_reasons=True), charged.append)
        assert charged == [answered.scores[0].tokens, 7]
        assert (answered.usage["reason_tokens"], answered.usage["tokens"]) == (7, answered.scores[0].tokens)
        assert "reason_tokens" not in ask(both, request()).usage

    def test_a_candidate_without_critiques_takes_no_part_in_them(self, batcher, caplog) -> None:
        both = target(served_by(batcher, 1, FakeModel()), served_by(batcher, 2, FakeModel()), share=1.0)
        with pytest.raises(RewardError, match="No component of this endpoint writes critiques"):
            ask(both, request(with_critiques=True))
        assert "fails as a candidate" not in caplog.text

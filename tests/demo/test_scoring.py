"""The pairs that the demo shows: one on which the model is right, and one on which it is wrong."""

import json
from collections.abc import Callable
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest

from apps.core.errors import DomainError
from apps.demo import generate, scoring
from apps.demo.world import actions_of, hidden_reward
from workers.schema import PreferenceRecord, Task, Trajectory, from_messages, to_messages

REVISION: Any = SimpleNamespace(number=3, endpoint=SimpleNamespace(name="sample"))


@pytest.fixture(scope="module")
def preferences() -> list[PreferenceRecord]:
    """All pairs of the five conversations about two tasks."""
    text = (generate.SAMPLE / "trajectories.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    found = []
    for task in sorted({line["task"]["id"] for line in lines})[:2]:
        own = [
            Trajectory(id=line["id"], task=Task(id=task), steps=from_messages(line["messages"]))
            for line in lines
            if line["task"]["id"] == task
        ]
        found += [PreferenceRecord(a=a, b=b, choice="a", annotator="x") for a, b in combinations(own, 2)]
    return found


@pytest.fixture
def scored(
    monkeypatch: pytest.MonkeyPatch, preferences: list[PreferenceRecord]
) -> Callable[[float], scoring.DemoScores]:
    """By a service that pays the hidden reward times a factor."""
    tasks = {
        json.dumps(to_messages(each)): each.task.id for record in preferences for each in (record.a, record.b)
    }

    def score(factor: float) -> scoring.DemoScores:
        class Client:
            def __init__(self, *_: Any) -> None: ...
            def __enter__(self) -> "Client":
                return self

            def __exit__(self, *_: Any) -> None: ...
            def describe(self) -> dict[str, int]:
                return {"version": REVISION.number}

            def score(self, items: list[dict[str, Any]], *, version: int) -> Any:
                assert version == REVISION.number
                return SimpleNamespace(results=[self._result(item["messages"]) for item in items])

            def _result(self, messages: list[dict[str, Any]]) -> Any:
                reward = factor * hidden_reward(messages, tasks[json.dumps(messages)])
                return SimpleNamespace(reward=reward, std=None, steps=(0.0,) * len(actions_of(messages)))

        monkeypatch.setattr(scoring, "RewardClient", Client)
        return scoring.score_comparisons("http://x.test", "k", REVISION, preferences, check=lambda: None)

    return score


def test_a_model_that_is_always_right_has_no_wrong_pair(
    scored: Callable[[float], scoring.DemoScores],
) -> None:
    found = scored(1.0)
    assert found.count == 40 and found.wrong is None
    assert found.right.higher.hidden > found.right.lower.hidden


def test_a_model_that_is_always_wrong_fails_the_demo(scored: Callable[[float], scoring.DemoScores]) -> None:
    with pytest.raises(DomainError, match="order none"):
        scored(-1.0)


def test_a_wrong_pair_is_one_that_the_hidden_reward_orders_otherwise(
    scored: Callable[[float], scoring.DemoScores], monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, calls = hidden_reward, iter(range(10**6))
    monkeypatch.setitem(
        globals(), "hidden_reward", lambda *given: truth(*given) * (1, -1)[next(calls) // 2 % 2]
    )
    found = scored(1.0)
    assert found.wrong is not None and found.wrong.lead < 0 < found.right.lead
    assert found.wrong.higher.result.reward >= found.wrong.lower.result.reward

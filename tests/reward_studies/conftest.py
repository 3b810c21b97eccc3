"""A desk whose people like thanks and short answers, and do not care about the word "certainly"."""

from typing import Any

import numpy as np
import pytest

from apps.accounts.models import Project
from apps.rewards.tokens import make_token
from tests.datasets.feedback import import_pairs
from tests.rewards import conftest as served

service, endpoint, fake = served.service, served.endpoint, served.fake
project, key, researcher_client = served.project, served.key, served.researcher_client

SPEC: dict[str, Any] = {
    "components": [
        {"name": "thanks", "type": "pattern", "expression": "thank", "weight": 1},
        {"name": "short", "type": "step_penalty", "free": 1, "weight": 1},
        {"name": "certain", "type": "pattern", "expression": "certainly", "weight": 1},
        {"name": "watch", "type": "repetition_penalty", "weight": 0},
    ],
    "transforms": [{"type": "gate", "component": "watch", "at_least": -1}],
}
TASKS, PAIRS = 16, 4


def answer(has_thanks: bool, steps: int, is_certain: bool, number: int) -> dict[str, Any]:
    last = " ".join([f"Answer {number}"] + ["thank you"] * has_thanks + ["certainly"] * is_certain)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Where is it?"}]
    for step in range(steps - 1):
        messages += [{"role": "assistant", "content": f"Wait, {step}."}, {"role": "user", "content": "Well?"}]
    return {"messages": [*messages, {"role": "assistant", "content": last}]}


@pytest.fixture
def feedback(project: Project) -> None:
    """Comparisons by 2 * thanks - 1.5 * (steps beyond one), with noise."""
    random = np.random.default_rng(1)
    records = []
    for task in range(TASKS):
        for number in range(PAIRS):
            drawn = [
                (bool(random.integers(2)), int(random.integers(1, 4)), bool(random.integers(2)))
                for _ in range(2)
            ]
            goods = [2 * thanks - 1.5 * (steps - 1) for thanks, steps, _ in drawn]
            chance = 1 / (1 + np.exp(-2 * (goods[0] - goods[1])))
            records.append(
                {
                    "task": {"id": f"t{task}", "instruction": f"Find parcel {task}."},
                    "a": answer(*drawn[0], 2 * number),
                    "b": answer(*drawn[1], 2 * number + 1),
                    "choice": "a" if random.random() < chance else "b",
                    "annotator": "ann",
                    "campaign": "Likes",
                }
            )
    import_pairs(project, records)


@pytest.fixture
def asks(service: Any, settings: Any) -> None:
    """The worker reaches the reward service of the test."""
    settings.REWARDS_ADDRESS = service.url
    assert make_token("desk")

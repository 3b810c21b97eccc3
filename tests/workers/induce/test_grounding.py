"""Which step a comment is about."""

import numpy as np
import pytest

from workers.induce.embedding import Embedder
from workers.induce.grounding import ground_points
from workers.induce.step_features import extract_features
from workers.schema import Trajectory, from_messages
from workers.schema.messages import build_trajectory
from workers.schema.records import Task

CALL = "call_1"


@pytest.fixture(scope="module")
def encode() -> Embedder:
    return Embedder()


def run() -> Trajectory:
    """Agent steps at 1, 2, 3 and 4."""

    def call(name: str, arguments: str) -> dict[str, object]:
        function = {"name": name, "arguments": arguments}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": CALL, "type": "function", "function": function}],
        }

    messages = [
        {"role": "user", "content": "Please refund order 1767 and say when the money comes."},
        {"role": "assistant", "content": "Good morning! I am happy to help you today."},
        call("find_order", '{"number": 1767}'),
        {"role": "tool", "tool_call_id": CALL, "content": "order 1767: two lamps, paid by card, 40 euros"},
        call("issue_refund", '{"order": 1767, "amount": 90}'),
        {"role": "tool", "tool_call_id": CALL, "content": "error: the amount is more than was paid"},
        {"role": "assistant", "content": "The refund is on its way; it takes five working days."},
    ]
    return build_trajectory(from_messages(messages), Task(id="refund"))


@pytest.mark.parametrize(
    ("comment", "sign", "step"),
    [
        ("A friendly greeting, good morning.", 1, 1),
        ("It looked the order 1767 up before anything else and found the lamps.", 1, 2),
        ("It tried to refund more than was paid.", -1, 3),
        ("Told the customer that it takes five working days.", 1, 4),
    ],
)
def test_the_step_that_is_meant(encode: Embedder, comment: str, sign: int, step: int) -> None:
    seen = extract_features(run(), encode)
    chances = ground_points([comment], [sign], seen, encode([comment]))
    assert chances.shape == (1, 4)
    assert chances.sum() == pytest.approx(1)
    assert seen.steps[int(chances.argmax())] == step


def test_an_anchor_is_kept_to(encode: Embedder) -> None:
    seen, comment = extract_features(run(), encode), "A friendly greeting, good morning."
    chances = ground_points([comment] * 2, [1, 1], seen, encode([comment] * 2), within=(3, 4))
    assert np.all(chances[:, :2] == 0) and np.all(chances[:, 2:] > 0)
    elsewhere = ground_points([comment], [1], seen, encode([comment]), within=(0, 0))
    assert elsewhere.argmax() == 0, "the anchor holds no step of the agent, so all come into question"


def test_nothing_to_ground(encode: Embedder) -> None:
    seen = extract_features(run(), encode)
    assert ground_points([], [], seen, encode([])[:0].reshape(0, seen.actions.shape[1])).shape == (0, 4)


def test_texts_are_points_of_unit_length(encode: Embedder) -> None:
    found = encode(["late again", "late again", "wait " * 5000, "很慢", ""])
    assert found.shape == (5, 384)
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    assert np.array_equal(found[0], found[1])
    assert found[0] @ encode(["too slow, late once more"])[0] > found[0] @ encode(["a tasty soup"])[0]

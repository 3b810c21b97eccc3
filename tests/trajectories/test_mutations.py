"""Whatever is broken in a document, it ends in trajectories or in an error that says where."""

import copy
import io
import json
import random
from typing import Any

import pytest

from apps.trajectories import formats
from apps.trajectories.reading import Reader, records_of
from tests.trajectories import test_formats as some
from tests.trajectories import test_otel as spans
from tests.trajectories.test_tape import TAPE
from workers.errors import InvalidRecord

MUTATIONS = 300
JUNK: list[Any] = [None, 1, -1, True, "x", "", [], {}, [1], {"a": 1}, 1e400]
DOCUMENTS: dict[str, Any] = {
    "openai": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {"role": "assistant", "content": "Hello"},
    ],
    "agentrx": some.TAU,
    "swe-agent": some.SWE,
    "mini-swe-agent": some.MESSAGES,
    "inspect": some.INSPECT,
    "mint": some.MINT,
    "who-and-when": some.WHO,
    "tau2": some.TAU2,
    "gymnasium": some.EPISODE,
    "agent-reward-bench": some.BROWSED,
    "tape": TAPE,
    "autolibra": {
        "instance_id": "7f3a",
        "agent_id": "agent",
        "metadata": {"task": "Buy shoes."},
        "points": [
            {"point_type": "observation", "data": {"content": "Open."}, "timestamp": "t"},
            {"point_type": "action", "data": {"action_type": "click", "element": 1}, "metadata": {"a": 1}},
            {"point_type": "action", "data": "Done."},
        ],
    },
    "otel": spans.traced(
        spans.span(1, spans.chat(spans.ASKED, spans.CALLED)),
        spans.span(2, spans.chat(spans.ASKED + spans.CALLED + spans.TOLD, spans.SAID)),
    ),
}


def broken(value: Any, dice: random.Random) -> Any:
    """With one thing in it replaced."""
    if isinstance(value, dict) and value:
        key = dice.choice(list(value))
        value[key] = copy.deepcopy(dice.choice(JUNK)) if dice.random() < 0.35 else broken(value[key], dice)
    elif isinstance(value, list) and value:
        place = dice.randrange(len(value))
        value[place] = copy.deepcopy(dice.choice(JUNK)) if dice.random() < 0.2 else broken(value[place], dice)
    else:
        return copy.deepcopy(dice.choice(JUNK))
    return value


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_is_read_or_refused(name: str) -> None:
    dice, ends = random.Random(name), {"read": 0, "refused": 0}
    text = json.dumps(DOCUMENTS[name])
    for _ in range(MUTATIONS):
        document = json.loads(text)
        for _ in range(dice.randint(1, 3)):
            document = broken(document, dice)
        reader = Reader(formats.FORMATS[name])
        for record in records_of(io.BytesIO(json.dumps(document).encode())):
            for part in reader.parts(record):
                try:
                    reader.prepare(part)
                    ends["read"] += 1
                except InvalidRecord as error:
                    assert error.message
                    ends["refused"] += 1
    assert min(ends.values()) > 10

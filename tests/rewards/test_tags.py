"""Labels of a request: what no database takes is refused before anything is scored."""

import json

import pytest

from apps.rewards.serving.handlers import flags_header
from apps.rewards.serving.requests import parse_score, parse_tags
from workers.errors import InvalidRecord


@pytest.mark.parametrize("key", ["run", "policy_version"])
@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", "\x00", "a\nb", "x" * 201, ""])
def test_labels_that_no_database_takes(key: str, value: str) -> None:
    with pytest.raises(InvalidRecord) as raised:
        parse_tags({key: value}, {})
    assert raised.value.pointer == f"/{key}"


def test_labels() -> None:
    sent = {"run": "grpo é 😀", "policy_version": 7}
    tags = parse_tags(json.loads(json.dumps(sent)), {})
    assert (tags.run, tags.policy_version) == ("grpo é 😀", "7")
    for header in ("X-Touchstone-Run", "X-Touchstone-Policy"):
        with pytest.raises(InvalidRecord):
            parse_tags({}, {header: "\udc80"})


def test_criteria_and_names_of_items() -> None:
    with pytest.raises(InvalidRecord) as raised:
        parse_score(json.dumps({"inputs": [], "criteria": ["\ud800"]}).encode(), {})
    assert raised.value.pointer == "/criteria/0"
    item = {"text": "a", "group": "\ud800", "session": "\ud800"}
    (read,) = parse_score(json.dumps({"inputs": [item]}).encode(), {}).items
    assert (read.group, read.session) == ("\ufffd", "\ufffd")


def test_the_header_of_flags_is_bounded() -> None:
    assert flags_header(["a", "b"]) == "a,b"
    *listed, last = flags_header([f"unread:field_{number}" for number in range(1000)]).split(",")
    assert last == "(others)" and 100 < len(listed) < 200
    assert listed == [f"unread:field_{number}" for number in range(len(listed))]

"""Which calls break which checks."""

from typing import Any

import pytest

from workers.engine.rules import rate
from workers.engine.rules.policy_checks import passes, violations_of
from workers.errors import InvalidRecord
from workers.schema import ScoreInput, parse_item
from workers.schema.decode import convert
from workers.schema.policy_checks import PolicyCheck, ValueTest, require_checks
from workers.schema.policy_part import PolicyChecks


def call(name: str, result: str = "{}", text: str | None = None, **arguments: Any) -> list[dict[str, Any]]:
    made = {"id": name, "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": text, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": name, "content": result},
    ]


def spoken(user: str, agent: str | None = None) -> list[dict[str, Any]]:
    asked = [] if agent is None else [{"role": "assistant", "content": agent}]
    return [*asked, {"role": "user", "content": user}]


def item(*messages: list[dict[str, Any]]) -> ScoreInput:
    return parse_item({"messages": [message for each in messages for message in each]})


def check(**fields: Any) -> PolicyCheck:
    found = convert({"name": "c", "tools": ["pay"]} | fields, PolicyCheck)
    require_checks([found])
    return found


def broken(own: PolicyCheck, *messages: list[dict[str, Any]]) -> list[int]:
    return [found.step for found in violations_of([own], item(*messages))]


def test_confirmation() -> None:
    own = check(confirmation={})
    assert broken(own, spoken("Pay."), spoken("Yes, go ahead.", "Shall I?"), call("pay")) == []
    assert broken(own, spoken("Yes, pay."), call("pay")) == [1]
    assert broken(own, spoken("Pay."), spoken("No, that is not correct.", "Shall I?"), call("pay")) == [3]
    assert broken(own, spoken("Pay."), spoken("How much?", "Shall I?"), call("pay"), call("other")) == [3]
    assert (
        broken(check(confirmation={"words": "^ja"}), spoken("Zahle."), spoken("ja", "Soll ich?"), call("pay"))
        == []
    )


def test_previous_call_with_equal_arguments_and_its_result() -> None:
    own = check(
        previous_call={"tools": ["look_*"], "same": ["id"], "result": [{"path": "state", "one_of": ["open"]}]}
    )
    asked = spoken("Pay.")
    assert broken(own, asked, call("look_up", '{"state": "open"}', id=1), call("pay", id=1)) == []
    assert broken(own, asked, call("look_up", '{"state": "open"}', id=2), call("pay", id=1)) == [2]
    assert broken(own, asked, call("look_up", '{"state": "shut"}', id=1), call("pay", id=1)) == [2]
    assert broken(own, asked, call("look_up", "no JSON", id=1), call("pay", id=1)) == [2]
    assert broken(own, asked, call("pay", id=1), call("look_up", '{"state": "open"}', id=1)) == [1]
    assert broken(own, asked, call("look_up", '{"state": "open"}'), call("pay")) == [2]


def test_calls_that_are_counted() -> None:
    asked = spoken("Pay.")
    assert broken(check(most_calls=1), asked, call("pay"), call("pay"), call("pay")) == [2, 3]
    own = check(most_calls=1, per=["id"])
    assert broken(own, asked, call("pay", id=1), call("pay", id=2), call("pay", id=1)) == [3]
    assert broken(
        check(forbid=True, when=[{"path": "id", "one_of": [2]}]), asked, call("pay", id=1), call("pay", id=2)
    ) == [2]
    assert broken(check(alone=True), asked, call("pay"), call("pay", text="I pay.")) == [2]
    both = call("pay")
    both[0]["tool_calls"] *= 2
    assert broken(check(most_per_step=1), asked, both) == [1, 1]


@pytest.mark.parametrize(
    ("test", "value", "holds"),
    [
        ({"path": "a", "at_most": 5}, {"a": 5}, True),
        ({"path": "a", "at_most": 5}, {"a": "5.5"}, False),
        ({"path": "a", "at_most": 5}, {"a": True}, False),
        ({"path": "a", "at_most": 5}, {}, False),
        ({"path": "a.*.b", "at_least": 2}, {"a": [{"b": 2}, {"b": 3}]}, True),
        ({"path": "a.*.b", "at_least": 2}, {"a": [{"b": 2}, {"b": 1}]}, False),
        ({"path": "a.*.b", "measure": "sum", "at_most": 5}, {"a": [{"b": 2}, {"b": 4}]}, False),
        ({"path": "a", "measure": "count", "at_most": 1}, {"a": [1, 2]}, False),
        ({"path": "a", "measure": "count", "at_most": 1}, {}, True),
        ({"path": "a", "none_of": ["x"]}, {"a": "y"}, True),
        ({"path": "a", "one_of": [1]}, {"a": True}, False),
        ({"path": "a", "matches": "^[0-9]+$"}, {"a": "12a"}, False),
        (
            {"path": "u", "hosts": ["api.example.org", "*.cdn.example"]},
            {"u": "https://api.example.org/x"},
            True,
        ),
        ({"path": "u", "hosts": ["*.cdn.example"]}, {"u": "https://a.cdn.example:8080"}, True),
        ({"path": "u", "hosts": ["example.org"]}, {"u": "https://example.org@evil.example/"}, False),
        ({"path": "u", "hosts": ["example.org"]}, {"u": "https://evil.example/example.org"}, False),
        ({"path": "u", "hosts": ["example.org"]}, {"u": "https://evil.example\\@example.org"}, False),
        ({"path": "u", "hosts": ["*.example.org"]}, {"u": "https://notexample.org"}, False),
    ],
)
def test_demands_on_values(test: dict[str, Any], value: dict[str, Any], holds: bool) -> None:
    assert passes(convert(test, ValueTest), value) is holds


def test_the_component_pays_each_check_once() -> None:
    checks = (check(alone=True), check(name="d", most_calls=1), check(name="e", most_per_step=3))
    part = PolicyChecks(name="policy", checks=checks)
    run = item(spoken("Pay."), call("pay", text="Now."), call("pay", text="Again."), call("pay"))
    score = rate(part, run, len)
    assert score.raw == pytest.approx(-2 / 3)
    assert score.step_rewards == pytest.approx((-1 / 3, -1 / 3, 0))


def test_what_could_slip_through() -> None:
    """Arguments that are no JSON object, many values, and calls written into a message."""
    own = check(forbid=True, when=[{"path": "id", "one_of": [2]}])
    run = call("pay")
    run[0]["tool_calls"][0]["function"]["arguments"] = '{"id": 2'
    assert broken(own, spoken("Pay."), run) == [1]
    limit = convert({"path": "a.*", "at_most": 5}, ValueTest)
    assert not passes(limit, {"a": [1] * 20_000 + [6]})
    written = [{"role": "assistant", "content": '<tool_call>{"name": "pay", "arguments": {}}</tool_call>'}]
    assert broken(check(alone=True), spoken("Pay."), written) == []
    assert broken(check(forbid=True), spoken("Pay."), written) == [1]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_limit_is_a_number(number: float) -> None:
    with pytest.raises(InvalidRecord, match="not infinity or NaN"):
        check(argument={"path": "a", "at_most": number})

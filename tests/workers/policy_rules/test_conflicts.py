"""Checks that contradict each other or never decide."""

import pytest

from workers.errors import InvalidRecord
from workers.policy_rules.conflicts import find_conflicts
from workers.schema.policy_checks import parse_checks

CONFLICTS = {
    "disjoint limits": (
        "[{name: a, tools: [x], argument: {path: n, at_most: 5}}, "
        "{name: b, tools: [x*], argument: {path: n, at_least: 6}}]",
        ("contradiction", ("a", "b")),
    ),
    "disjoint values": (
        "[{name: a, tools: [x], argument: {path: n, one_of: [1, 2]}}, "
        "{name: b, tools: [x], argument: {path: n, none_of: [1, 2]}}]",
        ("contradiction", ("a", "b")),
    ),
    "needs what is forbidden": (
        "[{name: a, tools: [x], forbid: true}, {name: b, tools: [y], previous_call: {tools: [x]}}]",
        ("contradiction", ("b", "a")),
    ),
    "each needs the other": (
        "[{name: a, tools: [x], previous_call: {tools: [y]}}, {name: b, tools: [y], previous_call: {tools: [x]}}]",
        ("contradiction", ("a", "b")),
    ),
    "forbidden anyway": (
        "[{name: a, tools: ['x*'], forbid: true}, {name: b, tools: [xy], confirmation: {}}]",
        ("unreachable", ("b", "a")),
    ),
    "a looser limit": (
        "[{name: a, tools: [x], argument: {path: n, at_most: 10}}, "
        "{name: b, tools: [x], argument: {path: n, at_most: 5}}]",
        ("unreachable", ("a", "b")),
    ),
    "when another denies": (
        "[{name: a, tools: [x], argument: {path: n, at_most: 5}}, "
        "{name: b, tools: [x], when: [{path: n, at_least: 6}], confirmation: {}}]",
        ("unreachable", ("b", "a")),
    ),
    "when nothing holds": (
        "[{name: a, tools: [x], when: [{path: n, at_most: 1}, {path: n, at_least: 2}], forbid: true}]",
        ("unreachable", ("a",)),
    ),
}
FINE = {
    "other paths": (
        "[{name: a, tools: [x], argument: {path: n, at_most: 5}}, "
        "{name: b, tools: [x], argument: {path: m, at_least: 6}}]"
    ),
    "other tools": (
        "[{name: a, tools: [x], argument: {path: n, at_most: 5}}, "
        "{name: b, tools: [y], argument: {path: n, at_least: 6}}]"
    ),
    "other cases": (
        "[{name: a, tools: [x], when: [{path: k, one_of: [p]}], argument: {path: n, at_most: 5}}, "
        "{name: b, tools: [x], when: [{path: k, one_of: [q]}], argument: {path: n, at_least: 6}}]"
    ),
    "touching limits": (
        "[{name: a, tools: [x], argument: {path: n, at_most: 5}}, "
        "{name: b, tools: [x], argument: {path: n, at_least: 5}}]"
    ),
    "forbidden in a case": (
        "[{name: a, tools: [x], when: [{path: n, at_least: 9}], forbid: true}, "
        "{name: b, tools: [x], confirmation: {}}]"
    ),
    "one of two tools": "[{name: a, tools: [x], forbid: true}, {name: b, tools: [y], previous_call: {tools: [x, z]}}]",
    "expressions": (
        "[{name: a, tools: [x], argument: {path: n, matches: a}}, "
        "{name: b, tools: [x], argument: {path: n, matches: b}}]"
    ),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicts(name: str) -> None:
    text, (kind, names) = CONFLICTS[name]
    (found,) = find_conflicts(parse_checks(text))
    assert (found.kind, found.checks) == (kind, names) and all(each in found.sentence for each in names)


@pytest.mark.parametrize("name", FINE)
def test_no_conflict(name: str) -> None:
    assert find_conflicts(parse_checks(FINE[name])) == []


@pytest.mark.parametrize(
    ("text", "words", "pointer"),
    [
        ("- name: a\n  tools: [x]\n", "Line 1: a check has exactly one of", "/0"),
        ("- name: a\n  tools: [x]\n  forbid: true\n  alone: true", "this one has forbid, alone", "/0"),
        (
            "- name: a\n  tools: [x]\n  argument:\n    path: n\n    at_most: five",
            "Line 5: Expected",
            "/0/argument/at_most",
        ),
        (
            "- name: a\n  tools: [x]\n  argument:\n    path: n\n    matches: '('",
            "Line 5:",
            "/0/argument/matches",
        ),
        ("- name: a\n  tools: [x]\n  argument: {path: n}", "Line 3: a test needs", "/0/argument"),
        (
            "- name: a\n  tools: [x]\n  forbid: true\n- name: a\n  tools: [y]\n  forbid: true",
            "Line 4: Duplicate",
            "/1/name",
        ),
        ("- nme: a", "Line 1:", "/0"),
        ("a: [", "This is no YAML in line 1", None),
        ("a: 1", "Checks are a list", None),
        ("- &a {name: a, tools: [x], forbid: true}\n- *a", "Anchors", None),
    ],
)
def test_errors_say_where(text: str, words: str, pointer: str | None) -> None:
    with pytest.raises(InvalidRecord) as caught:
        parse_checks(text)
    assert words in caught.value.message and caught.value.pointer == pointer

"""Records under keys of a document: which are read, and what is said around them."""

import json
from typing import Any

from tests.trajectories.logs import ReadLog, read_document

ROW = {"prompt": "What is 6 times 7?", "response": "It is 42."}


def rows(count: int) -> list[dict[str, Any]]:
    return [ROW | {"response": f"It is {number}, I think."} for number in range(count)]


def test_records_under_their_names_keep_the_name() -> None:
    read = read_document({"first": ROW, "second": ROW | {"response": "No idea."}})
    assert read.errors == [] and read.format == "prompt-response"
    assert [each.metadata["wrapper"] for each in read.trajectories] == [{"key": "first"}, {"key": "second"}]


def test_records_in_a_list_keep_what_is_said_of_all_of_them() -> None:
    read = read_document({"parameters": {"method": "PAIR"}, "empty": [], "jailbreaks": rows(2)})
    assert [each.metadata["wrapper"] for each in read.trajectories] == [
        {"parameters": {"method": "PAIR"}}
    ] * 2
    assert read.dropped == []


def test_further_lines_are_read_as_the_first() -> None:
    lines = [{"instances": rows(2)}, {"instances": rows(1)}, ROW]
    read = ReadLog("\n".join(map(json.dumps, lines)).encode())
    assert (len(read.trajectories), read.errors) == (4, [])


def test_records_deep_in_a_document() -> None:
    read = read_document({"run": {"seed": 1, "tasks": {"a": rows(1), "b": rows(2)}}})
    assert [each.metadata["wrapper"] for each in read.trajectories] == [
        {"seed": 1, "key": "a"},
        {"seed": 1, "key": "b"},
        {"seed": 1, "key": "b"},
    ]


def test_what_is_too_large_for_each_record_is_named() -> None:
    read = read_document({"notes": "x" * 5000, "rows": rows(2)})
    assert [path for path, _ in read.dropped] == ["/notes"]


def test_a_record_that_cannot_be_read_is_refused_with_its_place() -> None:
    read = read_document(
        {str(number): row for number, row in enumerate([*rows(8), {"prompt": None}, {"x": 1}])}
    )
    assert len(read.trajectories) == 8
    assert read.errors[0] == "expected a string or chat messages, got null." and len(read.errors) == 2


def test_what_is_not_of_one_format_is_no_wrapper() -> None:
    for document in (
        {"one": ROW, "two": {"messages": [{"role": "user", "content": "x"}]}},
        {"first": ROW, "x": {"x": 1}, "y": {"x": 2}, "last": ROW},
        {"rows": [*rows(2), {"x": 1}]},
        {"a": {"b": {"c": {"d": rows(1)}}}},
        {"definition": "Add the numbers.", "examples": rows(2)},  # what was asked is outside
        {"request": [{"role": "user", "content": "a"}], "x": 1},
    ):
        read = read_document(document)
        assert read.trajectories == [] and len(read.errors) == 1, document
        assert "in no known format" in read.errors[0]


def test_instances_of_an_instruction_are_answers_to_it() -> None:
    instances = [{"input": "1, 2", "output": "It is 3."}, {"input": "", "output": "It is 0."}]
    read = read_document({"id": "seed_1", "instruction": "Add the numbers.", "instances": instances})
    assert [[step.text for step in each.steps] for each in read.trajectories] == [
        ["Add the numbers.\n1, 2", "It is 3."],
        ["Add the numbers.", "It is 0."],
    ]

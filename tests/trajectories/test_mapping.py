"""Documents of any shape, read by a mapping of their fields."""

import io
import json

import pytest

from apps.trajectories import formats
from apps.trajectories.formats.json_paths import discover_paths, find_value, parse_path, without_value
from apps.trajectories.formats.mapping import FieldMapping, guess_fields
from apps.trajectories.import_reader import ImportReader, read_import_records
from workers.errors import InvalidRecord

pytestmark = pytest.mark.unit
ROW = {
    "meta": {"question id": 7, "by": "model-x"},
    "dialogue": [
        {"speaker": "human", "role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "4"},
    ],
    "grades": [{"value": "0.5"}, {"value": 1}],
    "passed": "yes",
    "odd": "kept",
}
TOML = """
[fields]
messages = "$.dialogue"
task = "$.meta['question id']"
agent = "$.meta.by"
reward = "$.grades[0].value"
success = "$.passed"
"""


def read(mapping, *documents):
    reader, good = ImportReader(formats.by_mapping(mapping)), []
    raw = "\n".join(map(json.dumps, documents)).encode()
    for record in read_import_records(io.BytesIO(raw)):
        for part in reader.parts(record):
            reader.prepare(part)
            good.append(reader.read(part))
    return good, reader


def test_a_mapping_names_what_each_field_is():
    [found], reader = read(FieldMapping.from_toml(TOML), ROW)
    assert (found.task.id, found.agent, found.reward, found.success) == ("7", "model-x", 0.5, True)
    assert [step.source for step in found.steps] == ["user", "agent"]
    assert found.metadata["unread"]["/odd"] == "kept"
    assert not reader.dropped.as_json()


def test_the_two_answers_of_a_comparison_are_two_trajectories_of_one_task():
    mapping = FieldMapping(
        {"prompt": "$.q", "chosen": "$.answers[0]", "rejected": "$.answers[-1]", "task": "$.n"}
    )
    row = {"q": "2+2?", "answers": ["4", "5"], "n": 3}
    [first, second], _ = read(mapping, row)
    assert (first.task.id, second.task.id) == ("3", "3")
    assert [first.steps[-1].text, second.steps[-1].text] == ["4", "5"]
    assert "5" not in json.dumps([step.text for step in first.steps]) + json.dumps(first.metadata)


@pytest.mark.parametrize(
    "fields, words, pointer",
    [
        ({"mesages": "$.x"}, "there is no field 'mesages'", "/fields/mesages"),
        ({"messages": "x.y"}, "begins with $", "/fields/messages"),
        ({"messages": "$.x[?(@.y)]"}, "only names and indices", "/fields/messages"),
        ({"messages": 3}, "expected a JSONPath, got a number", "/fields/messages"),
        ({"task": "$.x"}, "needs `messages`, or `response`", "/fields"),
        ({"chosen": "$.x"}, "`chosen` and `rejected`", "/fields"),
    ],
)
def test_a_wrong_mapping_is_refused_with_the_field(fields, words, pointer):
    with pytest.raises(InvalidRecord) as refused:
        FieldMapping(fields)
    assert words in refused.value.message and refused.value.pointer == pointer


@pytest.mark.parametrize("text", ["fields", "[other]\nx = 1", "[fields]\n[more]"])
def test_a_file_that_is_no_mapping_is_refused(text):
    with pytest.raises(InvalidRecord, match=r"TOML|one table"):
        FieldMapping.from_toml(text)


@pytest.mark.parametrize(
    "document, words",
    [
        ({"grades": []}, "has nothing at $.dialogue"),
        (ROW | {"grades": [{"value": "good"}]}, "'good' is no number"),
        (ROW | {"passed": "perhaps"}, "neither true nor false"),
        (ROW | {"meta": {"question id": []}}, "the id of a task is text"),
        (["a list"], "has nothing at $.dialogue"),
    ],
)
def test_a_document_that_does_not_fit_is_told(document, words):
    with pytest.raises(InvalidRecord) as refused:
        formats.by_mapping(FieldMapping.from_toml(TOML)).read(document)
    assert words in refused.value.message


@pytest.mark.parametrize(
    "path, keys",
    [
        ("$", ()),
        ("$.a.b", ("a", "b")),
        ("$['a b'][0]", ("a b", 0)),
        ('$["a\\"b"].c[-2]', ('a"b', "c", -2)),
        ("$.größe", ("größe",)),
    ],
)
def test_singular_queries_are_read(path, keys):
    assert parse_path(path) == keys


def test_every_path_that_is_found_finds_its_value():
    document = {"a": {"b c": [1, {"d'e": "x"}], "f": None}, "g": "long " * 100}
    found = discover_paths([document])
    assert {"$.a", "$.a['b c']", "$.a['b c'][0]", "$.a['b c'][-1]", "$.g"} <= found.keys()
    assert "$.a.f" not in found and found["$.g"].endswith("...")
    for path in found:
        assert find_value(document, parse_path(path)) is not None
    assert find_value(document, ("a", 3)) is None


def test_likely_fields_are_guessed_by_the_names_of_keys():
    paths = [
        "$.meta",
        "$.meta.Question_ID",
        "$.conversation",
        "$.answer",
        "$.grades[0].Score",
        "$.model",
        "$.output",
    ]
    assert guess_fields(paths) == {
        "messages": "$.conversation",
        "task": "$.meta.Question_ID",
        "reward": "$.grades[0].Score",
        "agent": "$.model",
    }
    assert guess_fields(["$.output", "$.answer", "$.query"]) == {"response": "$.answer", "prompt": "$.query"}
    assert guess_fields(["$[0]", "$.odd"]) == {}


def test_a_value_is_taken_out_and_the_rest_stays():
    assert without_value({"a": {"b": 1, "c": 2}, "d": [1, 2]}, ("a", "b")) == {"a": {"c": 2}, "d": [1, 2]}
    assert without_value({"d": [1, 2]}, ("d", -1)) == {"d": [1, None]}
    assert without_value({"d": 1}, ("x", "y")) == {"d": 1}

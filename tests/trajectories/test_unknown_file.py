"""Files that no format reads, files of several formats, and records before the first that is recognised."""

import io
import json
import zipfile

import pytest

from apps.trajectories import formats
from apps.trajectories.formats.event_log import event_log, same_file
from apps.trajectories.formats.record import Record
from apps.trajectories.import_reader import ImportReader, read_import_records
from workers.errors import InvalidRecord

pytestmark = pytest.mark.unit
CHAT = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
ANSWER = {"prompt": "Hi", "response": "Hello"}


def lines(*documents):
    return "\n".join(map(json.dumps, documents)).encode()


def archive(**files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        for name, content in files.items():
            out.writestr(name.replace("__", "/") + ".jsonl", content)
    return packed.getvalue()


def read(raw, reader=None):
    """Names of formats of what is read, and the messages of what is not."""
    reader, good, bad = reader or ImportReader(None), [], []
    records = [part for each in read_import_records(io.BytesIO(raw)) for part in reader.parts(each)]
    for record in [*records, *reader.rest()]:
        try:
            reader.prepare(record)
        except InvalidRecord as error:
            bad.append((record.line, error.pointer, error.message))
        else:
            good.append(reader.format_name(record))
    return good, bad


def test_a_file_of_no_known_format_is_told_in_one_sentence_of_it():
    good, bad = read(lines(*[{"mesages": [], "id": n} for n in range(500)]))
    [(line, _, message)] = bad
    assert good == [] and line == 1
    assert "None of 500 records" in message and "'mesages', 'id'" in message
    assert "Nearest is chat messages" in message and '{"task": "refund", "messages"' in message
    assert len(message) < 700


@pytest.mark.parametrize(
    "document, words",
    [
        ({"nbformat": 4, "cells": []}, "Jupyter notebook"),
        ({"chosen": 1, "rejectd": 2}, "a comparison of two answers (it has 'chosen', 'rejectd')"),
        ({"trace_id": "a", "span_id": "b"}, "spans of OpenTelemetry"),
        ({}, "The record is an empty object"),
        ("text", "The record is a string"),
        ([[[1]]], "an array whose first element is an array"),
    ],
)
def test_it_names_what_the_file_is_or_what_is_nearest(document, words):
    _, [(_, _, message)] = read(
        lines(document) if not isinstance(document, list) else lines(document, document)
    )
    assert words in message


def test_records_before_the_first_that_is_recognised_wait_for_it():
    good, bad = read(lines({"kind": "header"}, CHAT, CHAT))
    assert good == ["openai", "openai"]
    assert [line for line, _, _ in bad] == [1]


def test_each_file_of_an_archive_has_a_format_of_its_own():
    packed = archive(a__chats=lines(CHAT, CHAT), b__answers=lines(ANSWER), c__other=lines({"x": 1}, {"x": 2}))
    good, bad = read(packed)
    assert good == ["openai", "openai", "prompt-response"]
    [(_, pointer, message)] = bad
    assert pointer == "/c~1other.jsonl" and "None of 2 records" in message


def test_the_format_that_is_asked_for_is_used_for_every_file():
    packed = archive(a=lines(ANSWER), b=lines(CHAT))
    good, bad = read(packed, ImportReader(formats.FORMATS["prompt-response"]))
    assert good == ["prompt-response"]
    assert len(bad) == 1


class TestEventLog:
    def test_events_are_grouped_by_their_run_with_their_own_bytes(self):
        gathered = event_log(key=lambda event: event["run"])(10_000)
        sent = [b'{"run": "a",  "n": 1}', b'{"run": "b", "n": 2}', b'{"run": "a", "n": 3}\n']
        for number, raw in enumerate(sent, 1):
            gathered.add(Record(number, raw, json.loads(raw)))
        first, second = gathered.records()
        assert (first.line, first.raw) == (1, sent[0] + b"\n" + sent[2].strip())
        assert [event["n"] for event in first.document] == [1, 3]
        assert (second.line, second.document) == (2, [{"run": "b", "n": 2}])

    def test_without_a_key_a_file_is_a_run_and_a_list_is_one_too(self):
        gathered = event_log()(10_000)
        for source, document in (("x", {"n": 1}), ("x", {"n": 2}), ("y", {"n": 3}), ("y", [{"n": 4}])):
            gathered.add(Record(1, json.dumps(document).encode(), document, source=source))
        assert [[event["n"] for event in record.document] for record in gathered.records()] == [
            [1, 2],
            [3],
            [4],
        ]

    def test_each_array_of_a_file_is_a_run(self):
        gathered = event_log()(10_000)
        for pointer, number in (("/0", 1), ("/1", 2), ("/0", 3)):
            gathered.add(Record(1, b"{}", {"n": number}, pointer, is_edited=True))
        assert [[event["n"] for event in record.document] for record in gathered.records()] == [[1, 2], [3]]

    def test_a_run_over_the_limit_is_refused_and_the_others_are_read(self):
        gathered = event_log(key=lambda event: event["run"])(60)
        for run in "aaab":
            document = {"run": run, "text": "." * 10}
            gathered.add(Record(1, json.dumps(document).encode(), document))
        first, second = gathered.records()
        assert first.error is not None and second.document[0]["run"] == "b"

    def test_what_was_changed_in_reading_is_what_a_run_has(self):
        gathered = event_log()(1000)
        gathered.add(Record(1, b'{"n": NaN}', {"n": None}, is_edited=True))
        [record] = gathered.records()
        assert (record.raw, record.document) == (b'{"n": NaN}', [{"n": None}])

    def test_what_is_over_is_given_when_the_next_file_begins(self):
        gathered = event_log(key=lambda event: event.get("run"))(10_000)

        def given(source, *documents):
            found = [*gathered.ready(source)]
            for document in documents:
                gathered.add(Record(1, json.dumps(document).encode(), document, source=source))
                found += gathered.ready(source)
            return [record.document for record in found]

        assert given("x", {"n": 1}, [{"n": 2}]) == [[{"n": 1}], [{"n": 2}]]
        assert given("x", {"n": 3}) == []
        assert given("y", {"n": 4}, {"run": "a", "n": 5}) == [[{"n": 3}]]
        assert given("z", {"run": "a", "n": 6}) == []
        assert [[event["n"] for event in record.document] for record in gathered.records()] == [[4, 5, 6]]

    def test_a_run_that_ends_with_its_file_does_not_go_on_in_another(self):
        gathered = event_log(key=lambda event: event["run"], within=same_file)(10_000)
        found = []
        for source in "xxy":
            found += [len(record.document) for record in gathered.ready(source)]
            gathered.add(Record(1, b'{"run": "a"}', {"run": "a"}, source=source))
        assert found == [2]
        assert [len(record.document) for record in gathered.records()] == [1]

    def test_runs_without_an_answer_wait_until_another_has_one(self):
        gathered = event_log(answers=lambda event: "said" in event)(10_000)
        found = []
        for source, document in (("x", {"n": 1}), ("y", [{"n": 2}]), ("z", {"said": 3}), ("w", {"n": 4})):
            found += gathered.ready(source)
            gathered.add(Record(1, json.dumps(document).encode(), document, source=source))
        found += gathered.records()
        assert [record.document for record in found if not record.skipped] == [[{"said": 3}]]
        assert sum("did nothing" in record.skipped for record in found) == 3

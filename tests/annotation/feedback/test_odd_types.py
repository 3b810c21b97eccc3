"""Whatever type a field of a known document has, readers read it or refuse it with its place; nothing else happens."""

import copy
import csv
import io
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from apps.annotation.feedback.incoming import Incoming, UnreadField
from apps.annotation.feedback.readers import READERS
from apps.trajectories import formats
from apps.trajectories.import_reader import ImportReader, read_import_records
from tests.annotation.feedback.test_kinds import EACH
from tests.annotation.feedback.test_readers import COMMENT, OUTCOME, PAIR
from tests.trajectories.data_rows.row_documents import LABELLED
from tests.trajectories.field_marks import places
from tests.trajectories.mutations import DOCUMENTS
from tests.trajectories.test_field_coverage import ALL
from workers.errors import InvalidRecord

ODD: list[Any] = [
    None,
    -1,
    0.5,
    2**70,
    10**400,
    1e308,
    True,
    "x",
    "",
    [],
    [1],
    {},
    {"a": 1},
    [[{"b": [None]}]],
]
PER_PLACE, MOST_PLACES = 3, 40
HASHES = [{"content": "aa", "number": 1, "agent": "fox"}, {"content": "bb", "number": 2}]
FROZEN: dict[str, Any] = {
    "kind": "pairwise",
    "task": {"id": "t"},
    "annotator": "ann",
    "a": 0,
    "b": 1,
    "choice": "b",
}
FROZEN |= {"trajectories": HASHES}
FROZEN_STEPS = {
    "kind": "step",
    "task": {"id": "t"},
    "trajectory": 0,
    "labels": {"0": "good"},
    "trajectories": HASHES[:1],
}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": {"__raw__": "it"}}}
SHOWN = {"role": "user", "content": [{"type": "image", "image": None}]}
CALLED = {"role": "assistant", "content": "Hm.", "tool_calls": [CALL]}
EVENT = {"attributes": [{"key": "touchstone.record", "value": {"stringValue": json.dumps(FROZEN)}}]}
MADE = {"adjudication": False, "purpose": "gold", "trajectories": [1, 2], "explanation": "x"}
RATED = {"kind": "rating", "trajectory": "s1", "accept": True, "annotator": "ann", "made": {}}
SPAN = {"start": 0, "end": 2, "error type": "x", "explanation": "y"}
FAILURE = {"step_number": 2, "failure_category": "a", "step_reason": "b"}
NUMBERED = [turn | {"index": index} for index, turn in enumerate(DOCUMENTS["agentrx"]["traj"])]
RUN = DOCUMENTS["agentrx"] | {"traj": NUMBERED}
ANNOTATED = {"annotator_id": "a", "content": {"feedback": "x"}, "span": {"point_indices": [1]}}
IMAGE = {"bytes": None, "path": "x"}
FEEDBACK: list[tuple[str, Any]] = [
    *EACH,
    ("pairs", PAIR),
    ("comments", COMMENT),
    ("outcomes", OUTCOME),
    ("jsonl", PAIR | {"made": MADE}),
    (
        "trl",
        {"prompt": [SHOWN], "chosen": [SHOWN, CALLED], "rejected": "B", "images": [IMAGE], "tools": [CALL]}
        | {"margin": 0.5, "system": "S", "score_chosen": 1},
    ),
    ("openrlhf", {"prompt": "Q", "chosen": "A", "rejected": "B", "record": FROZEN}),
    ("trl-unpaired", {"prompt": "Q", "completion": "A", "label": True, "record": FROZEN | {"this": 0}}),
    ("trl-sft", {"prompt": "Q", "completion": "A", "task": "t", "trajectory": 7, "origin": "person"}),
    ("trl-stepwise", {"prompt": "Q", "completions": ["A", "B"], "labels": [True, False]}),
    ("trl-stepwise", {"prompt": "Q", "completions": ["A"], "labels": [], "record": FROZEN_STEPS}),
    ("atif", DOCUMENTS["atif"] | {"extra": {"task": {"id": "t"}, "feedback": [RATED]}}),
    ("rewardbench", {"prompt": "Q", "chosen": "A", "rejected": "B", "chosen_model": "fox", "record": FROZEN}),
    ("otel", {"resourceLogs": [{"scopeLogs": [{"logRecords": [EVENT]}]}]}),
    ("hh", {"chosen": "\n\nHuman: Q\n\nAssistant: A", "rejected": "\n\nHuman: Q\n\nAssistant: B"}),
    (
        "fine-grained-rlhf",
        {f"prediction {number}": f"answer {number}" for number in range(1, 5)}
        | {"question": "Q", "passages": [["a", "b"]], "gold": "g", "preference": [0, 1, 2, 0, 1, 2]}
        | {"feedback": {"errors": [SPAN]}},
    ),
    (
        "pandalm",
        {"idx": 1, "instruction": "I", "input": "", "response1": "A", "response2": "B"}
        | {"annotator1": 0, "annotator2": 1, "annotator3": 2},
    ),
    (
        "answer-pairs",
        {"prompt": "Q", "response_A": "a", "response_B": "b", "winner": "A>>B", "judge": "j", "model_a": "m"},
    ),
    ("answer-pairs", {"question": "Q", "answer_1": "a", "answer_2": "b", "score_1": 1, "score_2": 0.5}),
    ("who-and-when", DOCUMENTS["who-and-when"]),
    ("agentrx", [RUN, {"trajectory_id": 7, "failures": [FAILURE], "failure_summary": "s"}]),
    ("autolibra", DOCUMENTS["autolibra"] | {"annotations": [ANNOTATED]}),
    *LABELLED,
]
CELLS = {
    "kind": "comment",
    "task": "t",
    "annotator": "ann",
    "contents": '["aa"]',
    "trajectory": "1",
    "text": "x",
    "chars": "[0, 1]",
    "first_step": "1",
    "last_step": "1",
    "sign": "-1",
    "adjudication": "False",
    "quote": "q",
    "items": "[1]",
    "strength": "1",
}


def changed(document: Any, seed: str) -> Iterator[Any]:
    """The document with one value replaced at a time."""
    dice = random.Random(seed)
    found = list(places(document))
    for place, _ in dice.sample(found, min(len(found), MOST_PLACES)):
        for value in dice.sample(ODD, PER_PLACE):
            found = holder = copy.deepcopy([document])
            *path, last = (0, *place)
            for step in path:
                holder = holder[step]
            holder[last] = copy.deepcopy(value)
            yield found[0]


def check(ends: Any) -> int:
    """How many are refused, each with its line."""
    refused = 0
    for line, found in ends:
        assert line > 0 and isinstance(found, Incoming | UnreadField | InvalidRecord)
        if isinstance(found, InvalidRecord):
            assert found.message
            refused += 1
    return refused


def encoded(format: str, document: Any) -> bytes:
    if format in ("pandalm", "fine-grained-rlhf"):
        return json.dumps([document]).encode()
    several = document if isinstance(document, list) and format == "agentrx" else [document]
    return "\n".join(map(json.dumps, several)).encode()


def test_feedback_of_odd_types_is_read_or_refused() -> None:
    assert {format for format, _ in FEEDBACK} == READERS.keys() - {"csv"}
    for number, (format, document) in enumerate(FEEDBACK):
        assert check(READERS[format](io.BytesIO(encoded(format, document)))) == 0, document
        refused = 0
        for each in changed(document, f"{format} {number}"):
            try:
                refused += check(READERS[format](io.BytesIO(encoded(format, each))))
            except Exception as error:
                raise AssertionError(f"{format}: {each}") from error
        assert refused > 5, format


def test_cells_of_odd_types_are_read_or_refused() -> None:
    odd = ["", "x", "1e999", "NaN", "-1", "9" * 400, "[", "[]", "{}", "[[1]]", '"a"', "null", "true", "²"]
    for name in CELLS:
        for value in odd:
            out = io.StringIO()
            csv.writer(out).writerows([CELLS, (CELLS | {name: value}).values()])
            check(READERS["csv"](io.BytesIO(out.getvalue().encode())))


@pytest.mark.parametrize("name", ALL)
def test_documents_of_odd_types_are_read_or_refused(name: str) -> None:
    format, document = ALL[name]
    for each in changed(document, name):
        reader = ImportReader(formats.FORMATS[format])
        try:
            for record in read_import_records(io.BytesIO(json.dumps(each).encode())):
                for part in [*reader.parts(record)]:
                    reader.prepare(part)
            for part in reader.rest():
                reader.prepare(part)
        except InvalidRecord as error:
            assert error.message
        except Exception as error:
            raise AssertionError(f"{format}: {each}") from error

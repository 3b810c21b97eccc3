"""What each reader makes of its format; no database."""

import json
from io import BytesIO

import pytest

from apps.annotation.feedback.incoming import Found, Incoming, OutcomeValue, UnreadField
from apps.annotation.feedback.readers import READERS
from apps.annotation.feedback_types.comment import CommentValue
from apps.annotation.feedback_types.pairwise import PreferenceValue
from workers.errors import InvalidRecord
from workers.schema import Trajectory, TrajectoryId

HI = {"prompt": "Hi", "response": "Hello"}
BYE = {"prompt": "Hi", "response": "Go away"}
PAIR = {"task": {"id": "t"}, "a": HI, "b": BYE, "choice": "a", "strength": 3, "annotator": "ann"}
COMMENT = {
    "task": {"id": "t"},
    "trajectory": BYE,
    "text": "rude",
    "anchor": {"steps": [1, 1]},
    "sign": -1,
    "annotator": "ann",
}
OUTCOME = {"task": {"id": "t"}, "trajectory": HI, "success": True, "reward": 1.0}


def read(name: str, *records: object) -> list[Found]:
    array = name in ("pandalm", "fine-grained-rlhf")
    text = json.dumps(records) if array else "\n".join(json.dumps(record) for record in records)
    return [record for _, record in READERS[name](BytesIO(text.encode()))]


def only(name: str, record: object) -> Incoming:
    (record,) = read(name, record)
    assert isinstance(record, Incoming)
    return record


def test_pairs():
    record = only("pairs", PAIR)
    assert record.value == PreferenceValue(choice="a", strength=3)
    assert [place.steps[1].text for place in record.places if isinstance(place, Trajectory)] == [
        "Hello",
        "Go away",
    ]
    assert (record.annotator, record.origin, record.task.id if record.task else None) == (
        "ann",
        "imported",
        "t",
    )


def test_pairs_may_name_stored_trajectories_and_need_no_task_then():
    record = only(
        "pairs",
        {"a": {"trajectory_id": "x"}, "b": {"trajectory_id": "y"}, "choice": "tie", "annotator": "ann"},
    )
    assert record.places == (TrajectoryId("x"), TrajectoryId("y"))


def test_comments():
    value = only("comments", COMMENT).value
    assert isinstance(value, CommentValue)
    assert (value.text, value.anchor.steps if value.anchor else None, value.sign) == ("rude", (1, 1), -1)


def test_outcomes():
    assert only("outcomes", OUTCOME).value == OutcomeValue(success=True, reward=1.0)


def test_hh_splits_the_dialogue_and_shares_its_beginning():
    start = "\n\nHuman: Hi\n\nAssistant: Hello\n\nHuman: Tea?"
    record = only("hh", {"chosen": f"{start}\n\nAssistant: Please", "rejected": f"{start}\n\nAssistant:"})
    chosen, rejected = record.places
    assert isinstance(chosen, Trajectory) and isinstance(rejected, Trajectory)
    assert [step.source for step in chosen.steps] == ["user", "agent", "user", "agent"]
    assert (chosen.steps[-1].text, rejected.steps[-1].text) == ("Please", "")
    assert record.task and record.task.instruction == "user: Hi\n\nassistant: Hello\n\nuser: Tea?"
    assert chosen.task == rejected.task


def test_hh_prompts_that_differ_share_what_they_share():
    record = only(
        "hh", {"chosen": "\n\nHuman: Hi\n\nAssistant: a", "rejected": "\n\nHuman: Ho\n\nAssistant: b"}
    )
    assert len({place.task.id for place in record.places}) == 1


def test_fine_grained_has_six_comparisons_and_a_comment_for_each_span():
    record = {
        "question": "Who?",
        "passages": [["Title", "One.", "Two."]],
        "gold": "Ann",
        **{f"prediction {number}": f"Answer {number}" for number in range(1, 5)},
        "preference": [1, 2, 0, 1, 2, 0],
        "feedback": {"errors": [{"error type": "Irrelevant", "explanation": "", "start": 0, "end": 6}]},
    }
    *pairs, comment = read("fine-grained-rlhf", record)
    said = [
        (pair.places[0].steps[1].text[-1], pair.places[1].steps[1].text[-1], pair.value.choice)
        for pair in pairs
        if isinstance(pair, Incoming) and isinstance(pair.value, PreferenceValue)
    ]
    assert said == [
        ("1", "2", "a"), ("1", "3", "b"), ("1", "4", "tie"), ("2", "3", "a"), ("2", "4", "b"), ("3", "4", "tie"),
    ]  # fmt: skip
    assert isinstance(comment, Incoming) and isinstance(comment.value, CommentValue) and comment.value.anchor
    assert (comment.value.anchor.quote, comment.value.anchor.chars) == ("Answer", (0, 6))
    assert "Title\nOne. Two." in comment.places[0].steps[0].text


def test_pandalm_is_three_judgements_of_one_item_and_booleans_are_words():
    record = {
        "idx": 4,
        "instruction": "Yes?",
        "input": "",
        "response1": True,
        "response2": "",
        "annotator1": "1",
    }
    said = read("pandalm", record | {"annotator2": 2, "annotator3": "0"})
    assert [record.value.choice for record in said] == ["a", "b", "tie"]
    assert {record.item for record in said} == {"4"}
    assert [place.steps[1].text for place in said[0].places] == ["True", ""]


@pytest.mark.parametrize(
    ("name", "record", "pointer", "says"),
    [
        ("pairs", PAIR | {"choice": "c"}, "/choice", "Invalid enum value 'c'"),
        ("pairs", PAIR | {"strength": 4}, "/strength", "Invalid enum value 4"),
        ("pairs", PAIR | {"b": HI}, "/b", "same trajectory"),
        ("pairs", PAIR | {"colour": 1}, "/colour", "unknown key 'colour'"),
        ("pairs", PAIR | {"origin": "oracle"}, "/origin", "unknown origin"),
        ("pairs", {key: value for key, value in PAIR.items() if key != "task"}, "/task", "task is missing"),
        ("pairs", {key: value for key, value in PAIR.items() if key != "b"}, "/b", "b is missing"),
        ("pairs", PAIR | {"a": {"text": 3}}, "/a/text", "expected a string"),
        ("pairs", PAIR | {"a": {"input_ids": [1]}}, "/a", "has no text"),
        ("comments", COMMENT | {"text": "  "}, "/text", "empty"),
        ("comments", COMMENT | {"anchor": {"steps": [1, 0]}}, "/anchor/steps", "steps must be"),
        ("outcomes", OUTCOME | {"reward": "high"}, "/reward", "expected a number"),
        ("hh", {"chosen": "hello", "rejected": "x"}, None, "begin with"),
        ("pandalm", {"idx": 1}, "/0", "`response1`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(name, record, pointer, says):
    (error,) = read(name, record)
    assert isinstance(error, InvalidRecord)
    assert says in error.message
    assert error.pointer == pointer


def test_a_bad_line_is_named_and_reading_goes_on():
    lines = [json.dumps(PAIR), "{", json.dumps(PAIR | {"annotator": "bob"})]
    said = list(READERS["pairs"](BytesIO("\n".join(lines).encode())))
    assert [(number, isinstance(record, Incoming)) for number, record in said] == [
        (1, True),
        (2, False),
        (3, True),
    ]


def test_a_record_over_the_limit_is_named_and_reading_goes_on(settings):
    settings.MAX_RECORD_BYTES = 500
    lines = [json.dumps(PAIR), json.dumps(PAIR | {"annotator": "x" * 600}), json.dumps(PAIR)]
    said = list(READERS["pairs"](BytesIO("\n".join(lines).encode())))
    assert [(number, isinstance(record, Incoming)) for number, record in said] == [
        (1, True),
        (2, False),
        (3, True),
    ]


def test_a_record_of_an_atif_file_without_its_first_document_is_refused_with_its_place():
    feedback = {"kind": "pairwise", "a": "s1", "b": "s2", "choice": "a", "annotator": "ann"}
    step = {"step_id": 1, "source": "agent", "message": "Hi"}
    first, second = (
        {"schema_version": "ATIF-v1.5", "session_id": name, "agent": {"name": "x", "version": "1"}}
        | {
            "steps": [step | {"message": name}],
            "extra": {"task": {"id": "t"}, "feedback": [feedback | {"this": this}]},
        }
        for name, this in (("s1", "a"), ("s2", "b"))
    )
    (error,) = (found for found in read("atif", second) if not isinstance(found, UnreadField))
    assert isinstance(error, InvalidRecord)
    assert "no document of this task has the session_id 's1'" in error.message
    assert error.pointer == "/extra/feedback/0/a"
    (record,) = (found for found in read("atif", first, second) if not isinstance(found, UnreadField))
    assert isinstance(record, Incoming) and len(record.places) == 2


def test_a_table_with_other_columns_surplus_cells_and_blank_rows():
    header = "\ufeffkind,task,annotator,contents,trajectory,text,mood,,text"
    table = f'{header}\r\n,,,\r\n\r\ncomment,t,ann,"[""aa""]",1,x,calm,y,z,9\r\n'
    found = [*READERS["csv"](BytesIO(table.encode()))]
    assert isinstance(found[0][1], Incoming) and found[0][0] == 4
    assert [(each.path, each.use) for _, each in found[1:] if isinstance(each, UnreadField)] == [
        ("/mood", "dropped"),
        ("/8", "dropped"),
        ("/text", "dropped"),
        ("/10", "dropped"),
    ]


def test_fields_of_records_that_no_one_reads_are_named():
    row = {"prompt": "Hi", "response": "Hello"}
    found = read("pairs", PAIR | {"a": row | {"metadata": {"mood": "calm"}}})
    assert {each.path: each.use for each in found if isinstance(each, UnreadField)} == {
        "/a/metadata/mood": "kept"
    }
    hh = {
        "chosen": "\n\nHuman: Q\n\nAssistant: A",
        "rejected": "\n\nHuman: Q\n\nAssistant: B",
        "source": "web",
    }
    assert [each.path for each in read("hh", hh) if isinstance(each, UnreadField)] == ["/source"]

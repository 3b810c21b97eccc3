import pytest

from workers.errors import InvalidRecord
from workers.schema import Features, Text, TokenIds, Trajectory, TrajectoryId, parse_item, to_atif

CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


def test_the_same_words_in_three_forms_are_the_same_trajectory():
    forms = [{"messages": CHAT}, {"prompt": "Hi", "response": "Hello"}]
    first = parse_item(forms[0]).content
    assert isinstance(first, Trajectory)
    forms.append({"trajectory": to_atif(first)})
    assert {parse_item(form).content.content_hash for form in forms} == {first.content_hash}


@pytest.mark.parametrize(
    ("item", "content"),
    [
        ({"text": "a"}, Text("a")),
        ({"input_ids": [1, 2]}, TokenIds((1, 2))),
        ({"features": [[1, 2.5], [3, 4]]}, Features(((1.0, 2.5), (3.0, 4.0)))),
        ({"trajectory_id": "17"}, TrajectoryId("17")),
    ],
)
def test_the_other_forms(item, content):
    assert parse_item(item).content == content


def test_options_are_kept():
    item = parse_item(
        {"text": "a", "group": "g", "session": "s", "reference": "r", "logprob": -1, "ref_logprob": -2.5}
    )
    assert (item.group, item.session, item.reference, item.logprob, item.ref_logprob) == (
        "g",
        "s",
        "r",
        -1.0,
        -2.5,
    )


@pytest.mark.parametrize(
    ("item", "pointer", "says"),
    [
        ({}, "/inputs/0", "it has none"),
        ({"text": "a", "input_ids": [1]}, "/inputs/0", "it has text and input_ids"),
        ({"text": "a", "colour": 1}, "/inputs/0/colour", "unknown key 'colour'"),
        ({"text": None}, "/inputs/0/text", "got null"),
        ({"input_ids": []}, "/inputs/0/input_ids", "is empty"),
        ({"input_ids": [1, "a"]}, "/inputs/0/input_ids/1", "Expected `int`"),
        ({"features": [[1], [1, 2]]}, "/inputs/0/features/1", "has 2 numbers where the first row has 1"),
        ({"features": [[float("inf")]]}, "/inputs/0/features/0/0", "not a finite number"),
        ({"prompt": "a"}, "/inputs/0/response", "needs a response"),
        ({"messages": [{"role": "user", "content": "a"}]}, "/inputs/0/messages", "no agent step"),
        ({"text": "a", "logprob": "x"}, "/inputs/0/logprob", "expected a number"),
        ({"text": "a", "metadata": [1]}, "/inputs/0/metadata", "expected a JSON object"),
        ("text", "/inputs/0", "expected a JSON object, got a string"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(item, pointer, says):
    with pytest.raises(InvalidRecord, match=says) as caught:
        parse_item(item, pointer="/inputs/0")
    assert caught.value.pointer == pointer

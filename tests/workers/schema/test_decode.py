import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.errors import InvalidRecord
from workers.schema import clean, parse_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_cleaned_values_can_be_stored_and_cleaning_again_changes_nothing(value):
    cleaned, replaced = clean(value)
    encoded = repr(cleaned)
    encoded.encode("utf-8")
    assert "\\x00" not in encoded
    assert clean(cleaned) == (cleaned, 0)
    assert (cleaned == value) == (replaced == 0)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1', "not valid JSON: .* at line 1, column 8"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused_in_words(data, says):
    with pytest.raises(InvalidRecord, match=says):
        parse_json(data)


def test_lone_surrogates_are_let_through_to_be_cleaned():
    assert clean(parse_json(rb'"\ud800"')) == ("\ufffd", 1)

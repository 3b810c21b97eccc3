"""Documents that would become far more than they are: refused from their bytes, with the limit and the place."""

import json
import time
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.schema import BODY_LIMITS, ShapeLimits, TooMuchJson, check_json_shape, parse_json
from workers.schema import shape as shape_module

SMALL = ShapeLimits(depth=5, values=20, containers=10, string=100, key=30, digits=40)
WIDE = ShapeLimits(depth=10**6, values=10**9, containers=10**9, string=10**9, key=10**9, digits=10**9)


def found(document: bytes, limits: ShapeLimits = SMALL) -> str | None:
    try:
        check_json_shape(document + b" " * 50, limits)
    except TooMuchJson as error:
        return f"{error.name} {error.place}"
    return None


@pytest.mark.parametrize(
    ("document", "refused"),
    [
        (b"[[[[[]]]]]", None),
        (b"[[[[[[]]]]]]", "depth 5"),
        (b"[[],[],[]]" + b"[]" * 6, None),
        (b"[" + b"[]" * 10 + b"]", "containers 19"),
        (b"[" + b"1," * 18 + b"1]", None),
        (b"[" + b"1," * 19 + b"1]", "values 38"),
        (b'{"a":{"b":1}}' * 8, "containers 65"),
        (b'["' + b"[,{" * 30 + b'"]', None),  # within a string they are text
        (b'["\\"' + b"[,{" * 30 + b'"]', None),
        (b'["\\\\",' + b"[],[],[]," * 4, "containers 33"),  # an escaped backslash does not escape the quote
        (b'["' + b"a" * 100 + b'"]', None),
        (b'["' + b"a" * 101 + b'"]', "string 1"),
        (b'["' + b"a" * 101, "string 1"),
        (b'{"' + b"a" * 30 + b'":1}', None),
        (b'{"' + b"a" * 31 + b'" :1}', "key 1"),
        (b'["' + b"a" * 31 + b'" ,1]', None),
        (b'{"a":' + b"9" * 40 + b"}", None),
        (b'{"a":' + b"9" * 41 + b"}", "digits 5"),
        (b'{"a": \n' + b" " * 90 + b"9}", None),
        (b'{"a": \n' + b" " * 90 + b"9" * 41 + b"}", "digits 5"),
        (b"9" * 100, "digits 0"),
        (b'"' + b"a" * 101 + b'"', "string 0"),
    ],
)
def test_what_passes_a_limit_is_said_with_its_place(document, refused):
    assert found(document) == refused


def test_the_words_name_the_limit_and_the_place():
    with pytest.raises(TooMuchJson, match="nested too deeply: over 64 levels, at byte 64") as error:
        parse_json(b"[" * 1000, limits=BODY_LIMITS, pointer="/a")
    assert (error.value.limit, error.value.pointer) == (64, "/a")


JSON = st.recursive(
    st.none() | st.integers() | st.text('ab\\"[]{},:\n é\U0001f600', max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('a\\"[:', max_size=5), inner, max_size=4)
    ),
    max_leaves=30,
)


@given(JSON, st.booleans(), st.integers(1, 40))
def test_it_counts_as_a_reader_would_however_it_is_cut(value, ascii_only, size):
    document = json.dumps({"k": value}, ensure_ascii=ascii_only).encode()
    depth, containers, longest = _measured({"k": value}, ascii_only)
    old, shape_module._PIECE = shape_module._PIECE, size
    try:
        for limits in ({"depth": depth}, {"containers": containers}, {"string": longest, "key": longest}):
            shape_module._check(document, replace(WIDE, **limits))
            with pytest.raises(TooMuchJson) as error:
                shape_module._check(
                    document, replace(WIDE, **{name: limit - 1 for name, limit in limits.items()})
                )
            assert error.value.name in limits
    finally:
        shape_module._PIECE = old


def _measured(value, ascii_only):
    """depth, containers, and bytes of the longest string or key as it is sent."""
    if isinstance(value, str):
        return 0, 0, len(json.dumps(value, ensure_ascii=ascii_only).encode()) - 2
    if not isinstance(value, dict | list):
        return 0, 0, 0
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    inner = [_measured(part, ascii_only) for part in parts]
    depth, containers, longest = zip(*inner, strict=True) if inner else ((0,), (0,), (0,))
    return 1 + max(depth), 1 + sum(containers), max(longest)


def test_a_bomb_costs_neither_time_nor_memory():
    bomb = b'{"inputs":[' + b"[]," * (5 * 2**20) + b"[]]}"
    tracemalloc.start()
    began = time.perf_counter()
    with pytest.raises(TooMuchJson, match="over 250,000 arrays and objects"):
        parse_json(bomb, limits=BODY_LIMITS)
    seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 * 2**20  # decoded it would be a gigabyte
    assert seconds < 5


def test_a_key_that_stands_twice_is_refused_where_it_is_asked():
    assert parse_json(b'{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(Exception, match="key 'a' twice"):
        parse_json(b'[{"b": {"a": 1, "a": 2}}]', repeats=False)


@pytest.mark.parametrize("text", [False, True])
def test_of_several_documents_the_first_alone_is_looked_at(text):
    def check(document: bytes, start: int = 0) -> None:
        sent = document.decode() if text else document
        check_json_shape(sent, SMALL, start=start, first=True)

    good = b'{"a": [1, "]}", 2]}'
    check(good + b"," + b"[" * 50)
    check(b"[" * 50 + good + b"[" * 50, start=50)
    check(b'["cut off ' + b"a" * 60)
    with pytest.raises(TooMuchJson, match="nested too deeply"):
        check(b"[[" + good * 2 + b"[[[[" + b" " * 20)
    with pytest.raises(TooMuchJson, match="over 10 arrays"):
        check(b"[" + b"[]," * 20)


def test_text_is_counted_by_characters():
    check_json_shape('["' + "\U0001f600" * 100 + '"]', SMALL)
    with pytest.raises(TooMuchJson, match="a string of 101 bytes, of at most 100, at character 1"):
        check_json_shape('["' + "\U0001f600" * 101 + '"]', SMALL)

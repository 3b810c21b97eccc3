"""What is taken out before a request is kept, and what stays."""

import pytest

from apps.rewards.redaction import KINDS, MOST_PATTERNS, Redaction, parse_redaction
from workers.errors import InvalidRecord

ALL = Redaction(tuple(KINDS))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Mail eve.b+x@mail.example.org now", "Mail [email] now"),
        ("Call +44 20 7946 0958 or (030) 123-4567.", "Call [phone] or ([phone]."),
        ("card 4111 1111 1111 1111!", "card [card]!"),
        ("from 192.168.0.12 to 2001:0db8:85a3:0000:0000:8a2e:0370:7334", "from [ip] to [ip]"),
        ("use sk-proj_abcdefghijkl1234", "use [key]"),
        ("key tsk_0a1b2c3d_QWERTYuiop here", "key [key] here"),
        ("Authorization: Bearer abcdef.ghi-jklmno", "Authorization: [key]"),
        ("password=hunter2, user=eve", "[key], user=eve"),
        ("AKIAABCDEFGHIJKLMNOP", "[key]"),
        ('{"password": "hunter2 and more", "user": "eve"}', '{"[key], "user": "eve"}'),
        ('{\\"access_token\\": \\"hunter2\\"}', '{\\"access[key]}'),
        ("client_secret: 'a b'", "client[key]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- x", "[key] x"),
        ("eyJhbGciOi.eyJzdWIi.c2ln", "[key]"),
    ],
)
def test_what_goes(said: str, kept: str) -> None:
    assert ALL.apply(said) == kept


@pytest.mark.parametrize(
    "said", ["Order 12345 of 2024 costs 17.50 EUR.", "v1.2.3", "the secret of it", "a@b", "12:30"]
)
def test_what_stays(said: str) -> None:
    assert ALL.apply(said) == said


def test_a_number_that_is_no_card_is_not_called_one() -> None:
    assert Redaction(("card",)).apply("4111 1111 1111 1112") == "4111 1111 1111 1112"


def test_everywhere_in_a_value_but_in_names() -> None:
    value = {"a@example.org": ["x a@example.org", 7, None, True, {"y": "a@example.org"}]}
    assert Redaction(("email",)).apply(value) == {
        "a@example.org": ["x [email]", 7, None, True, {"y": "[email]"}]
    }
    assert Redaction().apply(value) is value


def test_a_text_by_the_name_of_a_secret() -> None:
    value = {"password": "hunter2", "api_key": "", "access-token": "x y", "tokens": "two", "apiKey": ["x"]}
    assert Redaction(("key",)).apply(value) == value | {"password": "[key]", "access-token": "[key]"}


def test_own_patterns() -> None:
    redaction = parse_redaction([], [r"(?i)order \d+", "Eve"])
    assert redaction.apply("ORDER 77 of Eve") == "[redacted] of [redacted]"
    assert redaction.apply("half a pair: \ud800") == "half a pair: ?"
    with pytest.raises(InvalidRecord):
        parse_redaction([], ["x"] * (MOST_PATTERNS + 1))


def test_it_is_quick_on_hostile_text() -> None:
    """Linear: RE2 does not go back."""
    hostile = "a" * 200_000 + "@" + "1" * 200_000 + "eyJ" * 50_000
    assert len(ALL.apply(hostile)) <= len(hostile)

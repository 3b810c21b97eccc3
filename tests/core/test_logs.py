"""What a log line carries, and what never gets into one."""

import json
import logging
from collections.abc import Callable

import pytest

from apps.core.logs import Json, Redactor, Text, context, current, request_id

SECRETS = [
    ("key tsk_0a1b2c3d_QWERTYuiop-_123 sent", "key tsk_0a1b2c3d_[redacted] sent"),
    ("POST /compat/x/get_reward?a=1&key=abcdef&b=2", "POST /compat/x/get_reward?a=1&key=[redacted]&b=2"),
    (
        "could not connect to postgresql://me:hush@db:5432/x",
        "could not connect to postgresql://me:[redacted]@db:5432/x",
    ),
    ("amqp://guest:gu%40st@mq//", "amqp://guest:[redacted]@mq//"),
    ("Authorization: Bearer abcdef.ghi-jkl", "Authorization: Bearer [redacted]"),
    ("token internal.ImRlc2si:1xYz:AbC_d was", "token [redacted] was"),
    (
        "{'Cookie': 'sessionid=abc123; csrftoken=def456'}",
        "{'Cookie': 'sessionid=[redacted]; csrftoken=[redacted]'}",
    ),
]
HARMLESS = [
    "the key is missing",
    "http://127.0.0.1:8000/p/desk/",
    "internal error",
    "a bearer of bad news",
    "12:30:01",
]


@pytest.mark.parametrize(("said", "seen"), SECRETS)
def test_secrets_are_taken_out_by_their_looks(said: str, seen: str) -> None:
    assert Redactor([])(said) == seen


@pytest.mark.parametrize("said", HARMLESS)
def test_the_rest_stays(said: str) -> None:
    assert Redactor([])(said) == said


def test_the_installations_own_secrets_are_known_by_value(settings: pytest.FixtureRequest) -> None:
    settings.KNOWN_SECRETS = ["canary-of-s3-secret"]
    settings.CELERY_BROKER_URL = "redis://:canary%2Fbroker@127.0.0.1/0"
    said = Redactor()("refused: canary-of-s3-secret, canary/broker and canary%2Fbroker")
    assert said == "refused: [redacted], [redacted] and [redacted]"


def _record(message: str, *args: object, error: Exception | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("apps.core.jobs.beat", logging.INFO, "beat.py", 1, message, args, info)


def test_a_line_for_people_carries_the_ids() -> None:
    with context(request="r1"), context(job="run-3.2"):
        line = Text().format(_record("%s is done", "it"))
    assert line.endswith("INFO apps.core.jobs.beat: request=r1 job=run-3.2 it is done")
    assert current("request") == ""


@pytest.mark.parametrize("make", [Text, Json])
def test_tracebacks_are_there_without_secrets(make: Callable[[], logging.Formatter]) -> None:
    line = make().format(_record("failed", error=ValueError("postgresql://me:hush@db/x")))
    assert "ValueError: postgresql://me:[redacted]@db/x" in line
    assert "hush" not in line


def test_a_line_for_a_collector_is_one_json_object() -> None:
    with context(request="r1"):
        document = json.loads(Json().format(_record("two\nlines")))
    when = document.pop("time")
    assert document == {
        "level": "INFO",
        "logger": "apps.core.jobs.beat",
        "request": "r1",
        "message": "two\nlines",
    }
    assert when.endswith("Z") and "T" in when


@pytest.mark.parametrize(
    ("sent", "kept"), [("abc-1.2_x", True), (None, False), ("", False), ("a b", False), ("a\n", False)]
)
def test_a_callers_id_is_kept_where_it_can_be_logged(sent: str | None, kept: bool) -> None:
    assert (request_id(sent) == sent) is kept
    assert len(request_id(sent)) >= 1


FORGED = "GET /a\n2026-01-01T00:00:00.000Z INFO apps.core: all is well\r\x1b[2K\u2028\x85"


def test_a_strangers_text_makes_no_line_that_looks_like_ours() -> None:
    line = Text().format(_record("%s 404", FORGED))
    assert len(line.splitlines()) == 1 and "\x1b" not in line
    assert r"GET /a\n2026-01-01" in line and r"\r\x1b[2K" in line


def test_nor_does_a_traceback() -> None:
    first, *rest = Text().format(_record("failed", error=ValueError(FORGED))).split("\n")
    assert first.endswith("failed") and rest
    assert all(line.startswith("    ") and "\r" not in line and "\x1b" not in line for line in rest)


def test_a_collector_gets_one_line_for_each_record() -> None:
    assert "\n" not in Json().format(_record("%s", FORGED, error=ValueError(FORGED)))

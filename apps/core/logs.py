"""Log lines: one a record, with the request or job they are about, and nothing secret.

Text for people, or JSON objects for a collector (TOUCHSTONE_LOG_FORMAT).
"""

import json
import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

from workers.schema.patterns import TextPattern

REDACTED = "[redacted]"
_about: ContextVar[Mapping[str, str]] = ContextVar("about", default=MappingProxyType({}))
_REQUEST_ID = TextPattern(r"[\w.\-]{1,100}")
_PATTERNS = [
    (
        TextPattern(r"(ts[ikl]_[0-9a-f]{8})_[\w\-]+"),
        r"\1_" + REDACTED,
    ),  # the prefix names an API key, an invitation or a link, and is no secret
    (TextPattern(r"\binternal\.[\w\-:.]+"), REDACTED),
    (TextPattern(r"(?i)([?&](?:key|token|password|secret)=)[^&\s'\"]+"), r"\1" + REDACTED),
    (TextPattern(r"(://[^/\s:@'\"]*:)[^@\s/'\"]+@"), rf"\1{REDACTED}@"),
    (TextPattern(r"(?i)(\b(?:bearer|basic)\s+)[\w\-.~+/=]{6,}"), r"\1" + REDACTED),
    (
        TextPattern(
            r"(?i)(\b(?:sessionid|csrftoken|csrfmiddlewaretoken|touchstone_device)['\"]?\s*[=:]\s*['\"]?)[\w\-]+"
        ),
        r"\1" + REDACTED,
    ),
]


@contextmanager
def context(**ids: str) -> Iterator[None]:
    """Put `ids` on every line logged within the block, by this thread or task: request=..., job=..."""
    token = _about.set({**_about.get(), **ids})
    try:
        yield
    finally:
        _about.reset(token)


def current(name: str) -> str:
    """The id this is logged under; empty without one."""
    return _about.get().get(name, "")


def request_id(sent: str | None) -> str:
    """The caller's id if it is one that can be logged, else a new one."""
    return sent if sent and _REQUEST_ID.fullmatch(sent) else secrets.token_hex(8)


class Redactor:
    """Takes out what looks like a secret, and the secrets this process was given, wherever they turn up."""

    def __init__(self, known: list[str] | None = None) -> None:
        self._known = known

    def __call__(self, text: str) -> str:
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        if self._known is None:
            self._known = secrets_of_settings()
        for secret in self._known:
            text = text.replace(secret, REDACTED)
        return text


def secrets_of_settings() -> list[str]:
    """Passwords and keys of this installation, the longest first. Short ones would redact ordinary words."""
    from django.conf import settings

    from apps.core.database import embedded_postgres

    urls = [settings.CELERY_BROKER_URL, settings.DATABASE_URL, settings.MIGRATION_DATABASE_URL]
    found = {settings.DATABASES["default"].get("PASSWORD") or ""}
    found |= {unquote(urlsplit(url).password or "") for url in urls}
    found |= {urlsplit(url).password or "" for url in urls}
    found |= set(settings.KNOWN_SECRETS) | set(embedded_postgres.passwords(settings.HOME))
    made = settings.HOME / "secret_key"  # read here only if it was made: a log line should make nothing
    found.add(made.read_text() if made.is_file() else "")
    return sorted((each for each in found if len(each) >= 8), key=len, reverse=True)


class _Formatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__()
        self._redact = Redactor()

    def _message_and_traceback(self, record: logging.LogRecord) -> tuple[str, str]:
        """The message, and the traceback or nothing; both without secrets."""
        trace = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        return self._redact(record.getMessage()), self._redact(trace)

    def _when(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC)
        return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# A path, a name or an error may hold line breaks and codes of terminals: of a stranger's text no line is made that
# looks like one of ours.
_ESCAPED = {code: ascii(chr(code))[1:-1] for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}


def _indented(trace: str) -> str:
    return "\n".join(f"    {line.translate(_ESCAPED)}" for line in trace.split("\n"))


class Text(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said, trace = self._message_and_traceback(record)
        about = "".join(f" {name}={value}" for name, value in _about.get().items())
        line = f"{self._when(record)} {record.levelname} {record.name}:{about} {said}".translate(_ESCAPED)
        return f"{line}\n{_indented(trace)}" if trace else line


class Json(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said, trace = self._message_and_traceback(record)
        document: dict[str, Any] = {
            "time": self._when(record),
            "level": record.levelname,
            "logger": record.name,
        }
        document |= dict(_about.get()) | {"message": said} | ({"traceback": trace} if trace else {})
        return json.dumps(document, ensure_ascii=False, default=str)

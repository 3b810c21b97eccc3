"""What is removed from requests before they are stored: addresses, numbers, keys, and matches of a project's patterns.

Regular expressions are RE2's, so that no text takes long. False matches are removed, too: a sample needs none of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workers.errors import InvalidRecord
from workers.schema.patterns import compiled

MOST_PATTERNS = 50


def _is_card(digits: str) -> bool:
    """Luhn's check (ISO/IEC 7812-1, annex B)."""
    numbers = [int(digit) for digit in digits if digit.isdecimal()][::-1]
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in numbers[1::2])
    return 13 <= len(numbers) <= 19 and (sum(numbers[::2]) + doubled) % 10 == 0


def _always(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RedactionKind:
    """Matches are replaced by `[name]`, where `holds` confirms them."""

    label: str
    expression: str
    holds: Callable[[str], bool] = _always


_KEY_FIELD = r"(?i)(?:^|[^a-z])(?:password|passwd|secret|api[_-]?key|token)$"  # names of fields
# In the order in which they are looked for: a card's number looks like a telephone's, too.
KINDS = {
    "key": RedactionKind(
        "Keys, tokens and passwords",
        r"(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----)"
        r"|\b(?:sk|pk|rk|tsk|ghp|gho|ghs|glpat|xox[abprs])[-_][A-Za-z0-9_\-]{12,}"
        r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_\-]{30,}"
        r"|\beyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+"
        r"|(?i:\bbearer\s+[A-Za-z0-9._~+/\-]{12,}=*)"
        r"|(?i:(?:\b|_)(?:password|passwd|secret|api[_-]?key|token)"
        r"(?:\\?[\"'])?\s*[=:]\s*(?:\\?\"[^\"\\]*\\?\"?|'[^']*'|[^\s,;\"']+))",
    ),
    "email": RedactionKind(
        "E-mail addresses", r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.[A-Za-z]{2,}"
    ),
    "ip": RedactionKind(
        "IP addresses",
        r"\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b"
        r"|\b(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}\b",
    ),
    "card": RedactionKind("Payment card numbers", r"\b\d(?:[ \-]?\d){12,18}\b", _is_card),
    "phone": RedactionKind("Telephone numbers", r"(?:\+|\b)\d[\d ().\-]{6,18}\d\b"),
}


@dataclass(frozen=True, slots=True)
class Redaction:
    """kinds: of KINDS. patterns: regular expressions of RE2; what they find becomes `[redacted]`."""

    kinds: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def apply(self, value: Any) -> Any:
        """A JSON value with every text in it redacted; the names in objects stay. With the kind `key`, a text by the
        name of a secret is one."""
        if not self.kinds and not self.patterns:
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list | tuple):
            return [self.apply(element) for element in value]
        if isinstance(value, dict):
            return {name: self._field(name, element) for name, element in value.items()}
        return value

    def _field(self, name: str, value: Any) -> Any:
        if "key" in self.kinds and isinstance(value, str) and value and compiled(_KEY_FIELD).search(name):
            return "[key]"
        return self.apply(value)

    def _text(self, text: str) -> str:
        text = text.encode(errors="replace").decode()  # half a surrogate pair is nothing that RE2 reads
        for pattern in self.patterns:
            text = compiled(pattern).sub("[redacted]", text)
        for name in (name for name in KINDS if name in self.kinds):
            text = _replaced(KINDS[name], name, text)
        return text


NO_REDACTION = Redaction()


def parse_redaction(kinds: Sequence[str], patterns: Sequence[str]) -> Redaction:
    """Raises InvalidRecord with the pointer of an unknown kind or invalid pattern."""
    for index, name in enumerate(kinds):
        if name not in KINDS:
            raise InvalidRecord(
                f"unknown kind {name!r}; known kinds are {', '.join(KINDS)}.", pointer=f"/kinds/{index}"
            )
    if len(patterns) > MOST_PATTERNS:
        raise InvalidRecord(
            f"has {len(patterns)} patterns; the limit is {MOST_PATTERNS}.", pointer="/patterns"
        )
    for index, pattern in enumerate(patterns):
        try:
            empty = compiled(pattern).search("") is not None
        except InvalidRecord as error:
            raise error.at(f"/patterns/{index}") from None
        if empty:
            raise InvalidRecord(
                f"{pattern!r} matches the empty text; write a pattern of what is to be removed.",
                pointer=f"/patterns/{index}",
            )
    return Redaction(tuple(kinds), tuple(patterns))


def _replaced(kind: RedactionKind, name: str, text: str) -> str:
    def put(match: Any) -> str:
        found: str = match.group(0)
        return f"[{name}]" if kind.holds(found) else found

    replaced: str = compiled(kind.expression).sub(put, text)
    return replaced

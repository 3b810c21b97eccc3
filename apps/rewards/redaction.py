"""What is taken out of requests before they are kept: addresses, numbers, keys, and what a project's own patterns find.

Regular expressions are RE2's, so that no text takes long. What looks like one of these and is none goes, too: a sample
is there to be judged, and can do without.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workers.errors import InvalidRecord
from workers.schema.patterns import compiled

MOST_PATTERNS = 50


def _is_card(digits: str) -> bool:
    """Luhn's check (ISO/IEC 7812-1, annex B)."""
    numbers = [int(one) for one in digits if one.isdecimal()][::-1]
    doubled = sum(sum(divmod(2 * one, 10)) for one in numbers[1::2])
    return 13 <= len(numbers) <= 19 and (sum(numbers[::2]) + doubled) % 10 == 0


def _always(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Kind:
    """What is found is replaced by `[name]`, where `holds` says that it is one."""

    label: str
    expression: str
    holds: Callable[[str], bool] = _always


# In the order in which they are looked for: a card's number looks like a telephone's, too.
KINDS = {
    "key": Kind(
        "Keys, tokens and passwords",
        r"(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----)"
        r"|\b(?:sk|pk|rk|tsk|ghp|gho|ghs|glpat|xox[abprs])[-_][A-Za-z0-9_\-]{12,}"
        r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_\-]{30,}"
        r"|\beyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+"
        r"|(?i:\bbearer\s+[A-Za-z0-9._~+/\-]{12,}=*)"
        r"|(?i:\b(?:password|passwd|secret|api[_-]?key|token)\s*[=:]\s*[^\s,;\"']+)",
    ),
    "email": Kind(
        "E-mail addresses", r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.[A-Za-z]{2,}"
    ),
    "ip": Kind(
        "IP addresses",
        r"\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b"
        r"|\b(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}\b",
    ),
    "card": Kind("Numbers of payment cards", r"\b\d(?:[ \-]?\d){12,18}\b", _is_card),
    "phone": Kind("Telephone numbers", r"(?:\+|\b)\d[\d ().\-]{6,18}\d\b"),
}


@dataclass(frozen=True, slots=True)
class Redaction:
    """kinds: of KINDS. patterns: regular expressions of RE2; what they find becomes `[redacted]`."""

    kinds: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def of(self, value: Any) -> Any:
        """A JSON value with every text in it redacted; the names in objects stay."""
        if not self.kinds and not self.patterns:
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list | tuple):
            return [self.of(one) for one in value]
        if isinstance(value, dict):
            return {name: self.of(one) for name, one in value.items()}
        return value

    def _text(self, text: str) -> str:
        text = text.encode(errors="replace").decode()  # half a surrogate pair is nothing that RE2 reads
        for pattern in self.patterns:
            text = compiled(pattern).sub("[redacted]", text)
        for name in (one for one in KINDS if one in self.kinds):
            text = _replaced(KINDS[name], name, text)
        return text


NO_REDACTION = Redaction()


def parse_redaction(kinds: Sequence[str], patterns: Sequence[str]) -> Redaction:
    """Raises InvalidRecord with the pointer of what is none."""
    for index, name in enumerate(kinds):
        if name not in KINDS:
            raise InvalidRecord(
                f"unknown kind {name!r}; known are {', '.join(KINDS)}.", pointer=f"/kinds/{index}"
            )
    if len(patterns) > MOST_PATTERNS:
        raise InvalidRecord(f"at most {MOST_PATTERNS} patterns.", pointer="/patterns")
    for index, pattern in enumerate(patterns):
        try:
            empty = compiled(pattern).search("") is not None
        except InvalidRecord as error:
            raise error.at(f"/patterns/{index}") from None
        if empty:
            raise InvalidRecord(
                f"{pattern!r} finds nothing at all, everywhere; write what is to be taken out.",
                pointer=f"/patterns/{index}",
            )
    return Redaction(tuple(kinds), tuple(patterns))


def _replaced(kind: Kind, name: str, text: str) -> str:
    def put(match: Any) -> str:
        found: str = match.group(0)
        return f"[{name}]" if kind.holds(found) else found

    replaced: str = compiled(kind.expression).sub(put, text)
    return replaced

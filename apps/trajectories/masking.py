"""Secrets and personal data replaced by tokens before a trajectory is stored.

A token names what it replaces and is the same for the same value within a trajectory: [EMAIL_1], [EMAIL_2]. In ids,
which have to stay distinct across trajectories, it has a keyed hash instead of a number. Expressions are those that
issuers of keys publish (detect-secrets has the same), by RE2, so that time grows with the text. Numbers, pictures and
keys of JSON objects are not changed. What was masked is counted, and kept nowhere.
"""

import hmac
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import msgspec
from django.conf import settings

from apps.core.errors import DomainError
from workers.schema import Trajectory
from workers.schema.patterns import PatternMatch, TextPattern

# What a picture or a file is by, all of the text: a digest, or the data in base64.
_UNTOUCHED = TextPattern(r"sha256:[0-9a-f]{64}|data:[a-zA-Z0-9.+/=;_-]*;base64,[A-Za-z0-9+/=_-]*")
# Names that passwords are assigned to; in JSON within a string, the quotes around them are escaped.
_KEY_NAMES = (
    r"[a-z0-9_.-]{0,40}(?:password|passwd|pwd|passphrase|secret|token|(?:api|access|secret|private)[_-]?key)"
)
_QUOTE = r"(?:\\*['\"])?"
_KEY_NAME = TextPattern(rf"(?i)^{_KEY_NAMES}$")
_SECRET_VALUE = TextPattern(r"^[^\s\[]\S{5,}$")


def _is_card(text: str) -> bool:
    """The check digit of Luhn."""
    digits = [int(character) for character in text if character.isdecimal()]
    doubled = [
        digit * 2 - 9 * (digit > 4) if place % 2 else digit for place, digit in enumerate(reversed(digits))
    ]
    return 13 <= len(digits) <= 19 and sum(doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    """The check digits of ISO 13616."""
    compact = "".join(text.split()).upper()
    number = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return 15 <= len(compact) <= 34 and int(number) % 97 == 1


def _is_phone(text: str) -> bool:
    return 8 <= sum(character.isdecimal() for character in text) <= 15


def _is_address(text: str) -> bool:
    parts = text.split(".")
    return all(int(part) < 256 for part in parts) and parts[0] not in ("0", "127")


@dataclass(frozen=True, slots=True)
class Detector:
    """name: in settings and results. token: its beginning. check: whether what was found is one."""

    name: str
    label: str
    token: str
    patterns: tuple[TextPattern, ...]
    check: Callable[[str], bool] = bool


def _detector(
    name: str, label: str, token: str, *patterns: str, check: Callable[[str], bool] = bool
) -> Detector:
    return Detector(name, label, token, tuple(TextPattern(pattern) for pattern in patterns), check)


_KEYS = (
    r"\b(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}\b",  # AWS
    r"\bAIza[0-9A-Za-z_-]{35}\b",  # Google
    r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{36,255}\b",  # GitHub
    r"\bgithub_pat_[A-Za-z0-9_]{22,255}\b",
    r"\bglpat-[A-Za-z0-9_-]{20,}\b",  # GitLab
    r"\bsk-(?:proj-|svcacct-|admin-|ant-|or-v1-)?[A-Za-z0-9_-]{20,}\b",  # OpenAI, Anthropic and others
    r"\bhf_[A-Za-z0-9]{30,}\b",  # Hugging Face
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}\b",  # Slack
    r"https://hooks\.slack\.com/services/[A-Za-z0-9/]{20,}",
    r"\b(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{10,}\b",  # Stripe
    r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}\b",  # SendGrid
    r"\bSK[0-9a-f]{32}\b",  # Twilio
    r"\bnpm_[A-Za-z0-9]{36}\b",
    r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}",
    r"\btsk_[A-Za-z0-9_-]{20,}\b",  # our own
)
DETECTORS: dict[str, Detector] = {
    detector.name: detector
    for detector in (
        _detector(
            "private_keys",
            "private keys (PEM)",
            "PRIVATE_KEY",
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\:,.-]*-----END (?:[A-Z0-9]+ )*"
            r"PRIVATE KEY(?: BLOCK)?-----",
        ),
        _detector("api_keys", "API keys of known services", "API_KEY", *_KEYS),
        _detector(
            "tokens",
            "JSON Web Tokens and bearer tokens",
            "TOKEN",
            r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
            rf"(?i)\b(?:authorization|proxy-authorization){_QUOTE}\s*[:=]\s*{_QUOTE}(?:bearer|basic|token)\s+"
            r"([A-Za-z0-9._~+/=-]{8,})",
        ),
        _detector(
            "passwords",
            "passwords in addresses and assignments",
            "PASSWORD",
            r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"]{1,100}:([^\s/:@'\"]{1,200})@",
            rf"(?i)\b{_KEY_NAMES}{_QUOTE}\s*[:=]\s*{_QUOTE}"
            r"((?:[^\s'\"`,;<>\[\]{}()\\]|\\[^\s'\"`,;<>\[\]{}()\\]){6,200})",
        ),
        _detector(
            "emails",
            "email addresses",
            "EMAIL",
            r"\b[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b",
        ),
        _detector(
            "phones",
            "phone numbers",
            "PHONE",
            r"\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){1,5}\b",
            r"(?:\(\d{3}\) ?|\b\d{3}[.-])\d{3}[.-]\d{4}\b",
            check=_is_phone,
        ),
        _detector("cards", "payment card numbers", "CARD", r"\b(?:\d[ -]?){12,18}\d\b", check=_is_card),
        _detector(
            "ibans",
            "bank accounts (IBAN)",
            "IBAN",
            r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b",
            check=_is_iban,
        ),
        _detector("ssns", "US social security numbers", "SSN", r"\b\d{3}-\d{2}-\d{4}\b"),
        _detector(
            "ip_addresses",
            "IP addresses (version 4)",
            "IP",
            r"\b(?:\d{1,3}\.){3}\d{1,3}\b",
            check=_is_address,
        ),
    )
}


def checked_detectors(names: Iterable[str]) -> tuple[str, ...]:
    """Names of detectors in the order of the table, each once. Raises DomainError for one that does not exist."""
    chosen = set(names)
    unknown = sorted(chosen - DETECTORS.keys())
    if unknown:
        raise DomainError(
            f"There is no detector {unknown[0]!r}; there are {', '.join(DETECTORS)}.", pointer="/mask"
        )
    return tuple(name for name in DETECTORS if name in chosen)


@dataclass(slots=True)
class TextMasker:
    """Masks the texts of one trajectory. counts: replacements by detector."""

    detectors: tuple[str, ...]
    counts: Counter[str] = field(default_factory=Counter)
    _tokens: dict[tuple[str, str], str] = field(default_factory=dict)

    def mask(self, text: str, *, is_id: bool = False) -> str:
        if _UNTOUCHED.fullmatch(text):
            return text
        for name in self.detectors:
            detector = DETECTORS[name]
            for pattern in detector.patterns:
                text = self._replace(text, detector, pattern, is_id)
        return text

    def mask_value(self, name: str, text: str) -> str:
        """The value of a key of a JSON object, which may be the name of a secret."""
        masked = self.mask(text)
        is_secret = "passwords" in self.detectors and _KEY_NAME.search(name) and _SECRET_VALUE.search(text)
        if masked != text or not is_secret:
            return masked
        self.counts["passwords"] += 1
        return self._token(DETECTORS["passwords"], text, False)

    def _replace(self, text: str, detector: Detector, pattern: TextPattern, is_id: bool) -> str:
        pieces, end = [], 0
        for match in pattern.finditer(text):
            start, stop = _span(match)
            value = text[start:stop]
            if start < end or value.startswith("[") or not detector.check(value):
                continue
            pieces += [text[end:start], self._token(detector, value, is_id)]
            end = stop
            self.counts[detector.name] += 1
        return "".join([*pieces, text[end:]]) if pieces else text

    def _token(self, detector: Detector, value: str, is_id: bool) -> str:
        if is_id:
            digest = hmac.new(settings.SECRET_KEY.encode(), value.encode("utf-8", "replace"), sha256)
            return f"[{detector.token}_{digest.hexdigest()[:12]}]"
        key = detector.token, value
        if key not in self._tokens:
            number = sum(token == detector.token for token, _ in self._tokens) + 1
            self._tokens[key] = f"[{detector.token}_{number}]"
        return self._tokens[key]


def _span(match: PatternMatch) -> tuple[int, int]:
    """Of the group of the expression, where it has one; else of all of it."""
    return match.span(1) if match.groups() else match.span()


def mask_trajectory(trajectory: Trajectory, detectors: tuple[str, ...]) -> tuple[Trajectory, Counter[str]]:
    """The trajectory with its texts masked, and the number of replacements by detector."""
    masker = TextMasker(detectors)
    values = msgspec.to_builtins(trajectory, str_keys=True)
    ids = {"id": values.get("id"), "task": values["task"].get("id")}
    masked = _masked(values, masker)
    if ids["id"] is not None:
        masked["id"] = masker.mask(ids["id"], is_id=True)
    if ids["task"] is not None:
        masked["task"]["id"] = masker.mask(ids["task"], is_id=True)
    return msgspec.convert(masked, Trajectory), masker.counts


def mask_text(text: str, detectors: tuple[str, ...]) -> str:
    """A single text, such as an error that quotes a record."""
    return TextMasker(detectors).mask(text)


def _masked(value: Any, masker: TextMasker) -> Any:
    if isinstance(value, str):
        return masker.mask(value)
    if isinstance(value, dict):
        return {
            key: masker.mask_value(key, inner) if isinstance(inner, str) else _masked(inner, masker)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_masked(inner, masker) for inner in value]
    return value

"""Query parameters."""

from apps.core.errors import DomainError


def parse_number(text: str, name: str, noun: str) -> int:
    """Raises DomainError."""
    if not text.isdecimal() or len(text) > 9:
        raise DomainError(f"{name} is {text!r}; it must be the number of {noun}.")
    return int(text)

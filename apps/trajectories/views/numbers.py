"""Numbers in addresses."""

from apps.core.errors import DomainError


def number_of(said: str, name: str, what: str) -> int:
    """Raises DomainError."""
    if not said.isdecimal() or len(said) > 9:
        raise DomainError(f"{name} is {said!r}; it must be the number of {what}.")
    return int(said)

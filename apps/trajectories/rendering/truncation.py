"""Where a long text is truncated: only where that hides enough to be worth a click."""

_WORTH_HIDING = 4  # at least a fourth of what is shown


def shown_length(text: str, most: int | None) -> int:
    """How many characters are shown. most: None shows all."""
    return len(text) if most is None or len(text) <= most + most // _WORTH_HIDING else most

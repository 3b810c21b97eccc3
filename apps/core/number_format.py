"""Numbers as pages and reports show them: 72.3 %, 0.41, [−0.67, −0.47]."""

from collections.abc import Sequence

_MINUS = "\N{MINUS SIGN}"


def percent(share: float) -> str:
    """A share with one decimal: 0.723 is 72.3 %."""
    return f"{100 * share:.1f} %".replace("-", _MINUS)


def decimal(value: float, places: int = 2) -> str:
    """With a real minus sign; 0 has none."""
    text = f"{value:.{places}f}"
    return text.lstrip("-") if not float(text) else text.replace("-", _MINUS)


def percent_interval(interval: Sequence[float]) -> str:
    """Of two shares: [70.0 %, 90.0 %]."""
    return f"[{percent(interval[0])}, {percent(interval[1])}]"


def decimal_interval(interval: Sequence[float], places: int = 2) -> str:
    """Of two numbers: [−0.67, −0.47]."""
    return f"[{decimal(interval[0], places)}, {decimal(interval[1], places)}]"

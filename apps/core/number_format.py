"""Numbers as pages and reports show them: 72.3 %, 0.41, [−0.67, −0.47]."""

from collections.abc import Sequence

_MINUS = "\N{MINUS SIGN}"


def percent(share: float) -> str:
    """A share with one decimal: 0.723 is 72.3 %."""
    return f"{decimal(100 * share, 1)} %"


def points(difference: float) -> str:
    """A difference of two shares, in percentage points: 0.75 minus 0.723 is 2.7 points."""
    return f"{decimal(100 * difference, 1)} points"


def points_interval(interval: Sequence[float]) -> str:
    """Of a difference of two shares, in percentage points: [1.2, 4.3]."""
    return decimal_interval([100 * bound for bound in interval], 1)


def decimal(value: float, places: int = 2) -> str:
    """With a real minus sign; 0 has none."""
    text = f"{value:.{places}f}"
    return text.lstrip("-") if not float(text) else text.replace("-", _MINUS)


def significant(value: float, digits: int = 4) -> str:
    """As many digits as tell something, with a real minus sign: 0.125, −196, 1.235e+08."""
    return f"{value:.{digits}g}".replace("-", _MINUS)


def duration(seconds: float) -> str:
    """The two largest units: 45 s, 3 min 20 s, 1 h 5 min, 2 d 3 h."""
    left = round(seconds)
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count) or "0 s"


def percent_interval(interval: Sequence[float]) -> str:
    """Of two shares: [70.0 %, 90.0 %]."""
    return f"[{percent(interval[0])}, {percent(interval[1])}]"


def decimal_interval(interval: Sequence[float], places: int = 2) -> str:
    """Of two numbers: [−0.67, −0.47]."""
    return f"[{decimal(interval[0], places)}, {decimal(interval[1], places)}]"

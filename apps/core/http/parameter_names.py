"""What is said of a query parameter that a call does not have."""

from collections.abc import Collection

LONGEST_NAME = 60  # characters of a name that are shown and compared


def unknown_parameter_message(name: str, known: Collection[str]) -> str:
    shown = name[:LONGEST_NAME]
    if not known:
        return f"There is no query parameter {shown!r}: this call has none. Leave it out."
    nearest = nearest_name(shown, known)
    guess = f" Did you mean {nearest}?" if nearest else " Leave it out."
    return f"There is no query parameter {shown!r}; this call has {', '.join(known)}.{guess}"


def nearest_name(name: str, known: Collection[str]) -> str | None:
    """The one of `known` that a slip of the keyboard may have meant, or None."""
    name = name[:LONGEST_NAME].lower()
    distances = {other: _edit_distance(name, other.lower()) for other in known}
    nearest = min(distances, key=lambda other: distances[other], default=None)
    return nearest if nearest is not None and distances[nearest] <= max(2, len(name) // 3) else None


def _edit_distance(a: str, b: str) -> int:
    """Levenshtein's: letters put in, taken out or changed."""
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (letter != other))
    return row[-1]

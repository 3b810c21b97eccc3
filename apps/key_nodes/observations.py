"""An expected observation next to the actual one, with the words marked that only one of them has."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from apps.key_nodes.selectors import NodeRow

_MOST = 20_000  # characters of each that are compared on a page


@dataclass(frozen=True, slots=True)
class ComparedObservation:
    """hidden: characters of the actual one that are not on the page."""

    expected: SafeString
    actual: SafeString
    is_same: bool
    hidden: int


def compare_observations(row: NodeRow) -> ComparedObservation | None:
    """None where nothing is expected, or the node is not reached."""
    from apps.trajectories.rendering.words import marked  # loads what compares texts

    expected, actual = row.node.expected, row.observed
    if expected is None or actual is None:
        return None
    cut = actual[:_MOST]
    return ComparedObservation(
        marked(expected, cut), marked(cut, expected), bool(row.is_expected), len(actual) - len(cut)
    )

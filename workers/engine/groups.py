"""Groups: the items of one request with an equal `group`. An item without one is a group of one."""

from collections.abc import Mapping, Sequence

from workers.errors import RewardError
from workers.schema import ScoreInput

GROUP_OF_ONE = "group_of_one"  # the flag of an item that was compared with no other


def named_groups(items: Sequence[ScoreInput]) -> dict[str, list[int]]:
    """The places of the items of each group, by its name."""
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        if item.group is not None:
            places.setdefault(item.group, []).append(place)
    return places


def all_groups(items: Sequence[ScoreInput]) -> list[list[int]]:
    """Every item's place once: those of each group, and each item without a group alone."""
    return [
        *named_groups(items).values(),
        *([place] for place, item in enumerate(items) if item.group is None),
    ]


def require_group_size(items: Sequence[ScoreInput], size: int) -> None:
    """Raises RewardError at `/<index>/group` where a group is incomplete: it was split over requests, or misnamed."""
    for place, item in enumerate(items):
        if item.group is None:
            raise RewardError(
                f"this endpoint compares {size} inputs of a group, and this one has no `group`; give the roll-outs of "
                "one prompt the same `group`.",
                pointer=f"/{place}/group",
            )
    for name, places in named_groups(items).items():
        if len(places) != size:
            raise RewardError(
                f"the group {name!r} has {len(places)} inputs in this request, and this endpoint compares {size}; send "
                "all inputs of a group in one request.",
                pointer=f"/{places[0]}/group",
            )


def group_flags(items: Sequence[ScoreInput]) -> Mapping[int, str]:
    """By place, the flag of those that are alone in their group."""
    return {places[0]: GROUP_OF_ONE for places in all_groups(items) if len(places) == 1}

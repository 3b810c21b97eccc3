"""What an attempt gained over the attempt before it: the component of a pair of episodes."""

import math
from collections import defaultdict
from collections.abc import Sequence

from workers.engine.groups import all_groups
from workers.errors import RewardError
from workers.schema import ScoreInput

ATTEMPT = "attempt"  # the key of `metadata` that numbers the attempts at one task


def improvements(items: Sequence[ScoreInput], values: Sequence[float]) -> list[float]:
    """values[i] less the mean of the group's items with the next lower `metadata.attempt`; 0 for the lowest. By item.

    values: of another component. Where they are within [a, b], it is within [a - b, b - a]; along single attempts, the
    sum is the last value less the first. Retroformer (Yao et al., arXiv 2308.02151): the difference of the
    returns of two episodes. Raises RewardError at `/<index>/metadata/attempt`.
    """
    found = [0.0] * len(items)
    for places in all_groups(items):
        if len(places) == 1:
            continue
        by_attempt: dict[int, list[int]] = defaultdict(list)
        for place in places:
            by_attempt[_attempt(items[place], place)].append(place)
        before: float | None = None
        for attempt in sorted(by_attempt):
            own = by_attempt[attempt]
            for place in own:
                found[place] = 0.0 if before is None else values[place] - before
            before = math.fsum(values[place] for place in own) / len(own)
    return found


def _attempt(item: ScoreInput, place: int) -> int:
    attempt = item.metadata.get(ATTEMPT)
    if not isinstance(attempt, int) or isinstance(attempt, bool):
        raise RewardError(
            "this endpoint pays what an attempt gains over the one before it, and this input of a group does not say "
            "which attempt it is; give it a whole number, such as 0 before feedback and 1 after.",
            pointer=f"/{place}/metadata/{ATTEMPT}",
        )
    return attempt
